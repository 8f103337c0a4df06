import assert from 'node:assert/strict';
import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { test } from 'node:test';
import { httpSource } from '../../core/outbound/sources.ts';
import { connectHttp2 } from '../../core/server/h2/client.ts';
import { startTlsSite } from '../../core/server/tls/tls-rig.ts';
import { basic, scryptLine } from './passwords.ts';

const requestsMax = 100_000;
const connections = 32;
/** Requests of each connection of HTTP/2 at the same time. */
const streams = 8;

const names = ['ann', 'bob', 'nobody', 'wrong'] as const;
/** A wrong password would be limited; a malformed one is none. */
const credentials: Readonly<Record<(typeof names)[number], Readonly<Record<string, string>>>> = {
  ann: { authorization: basic('ann', 'secret of ann') },
  bob: { 'x-user': 'bob' },
  nobody: {},
  wrong: { authorization: 'Basic !' },
};

/** Paths by the user that may see them; each answer begins with its own path. */
const paths = ['ann', 'bob', 'open'].flatMap((owner) =>
  ['file.txt', 'page', 'app/cached', 'app/fresh', 'rendered'].map((name) => ({
    owner,
    path: `/${owner}/${name}`,
  })),
);

type Ask = (
  path: string,
  fields: Readonly<Record<string, string>>,
) => Promise<{ readonly status: number; readonly body: string }>;

test('of 100,000 mixed requests on kept connections, each gets its own answer', async (t) => {
  const { origin } = await httpSource(t, (request, response) => {
    const { url = '' } = request;
    response.setHeader('cache-control', url.endsWith('cached') ? 'public, max-age=60' : 'no-store');
    response.end(`${url} of the application`);
  });
  const site = await startTlsSite(t, {
    tls: 'http_redirect = no',
    server: 'trust_proxy = 127.0.0.0/8',
    ini: `
[disk.site]
root = site
[proxy.ann]
path = /ann/app/
source = ${origin}
[proxy.bob]
path = /bob/app/
source = ${origin}
[proxy.open]
path = /open/app/
source = ${origin}
[access.ann]
path = /ann/*
password_file = ann.txt
[access.bob]
path = /bob/*
users = bob
[auth]
user_header = X-User
[log]
access = no
`,
    files: {
      'ann.txt': scryptLine('ann', 'secret of ann'),
      ...Object.fromEntries(
        ['ann', 'bob', 'open'].map((owner) => [
          `site/${owner}/file.txt`,
          `/${owner}/file.txt of the disk`,
        ]),
      ),
    },
    rules: ['ann', 'bob', 'open'].flatMap((owner) => [
      { path: `/${owner}/page`, kind: 'content', content: `/${owner}/page of a rule` },
      {
        ...{ path: `/${owner}/rendered`, kind: 'resolve' },
        enginedata: { html: `/${owner}/rendered of a breadcrumb` },
      },
    ]),
  });
  let left = requestsMax;
  const seen = new Map<string, number>();
  const visit = async (ask: Ask, seed: number): Promise<void> => {
    for (let at = seed; left > 0; at += 1) {
      left -= 1;
      const { owner, path } = paths[(at * 7 + seed) % paths.length] ?? { owner: '', path: '' };
      const name = names[(at * 3 + Math.floor(at / 5)) % names.length] ?? 'nobody';
      const { status, body } = await ask(path, credentials[name]);
      const mayNot = owner !== 'open' && owner !== name;
      assert.equal(status, mayNot ? 401 : 200, `${path} for ${name}`);
      assert.equal(body.includes(' of '), !mayNot, body);
      if (!mayNot) assert.ok(body.startsWith(`${path} of `), `${path}: ${body}`);
      seen.set(`${owner} ${status}`, (seen.get(`${owner} ${status}`) ?? 0) + 1);
    }
  };
  const overHttp1 = async (seed: number): Promise<void> => {
    const socket = connect(site.port, '127.0.0.1').setEncoding('latin1');
    await once(socket, 'connect');
    await visit((...asked) => exchange(socket, ...asked), seed);
    socket.destroy();
  };
  const overHttp2 = async (seed: number): Promise<void> => {
    const client = await connectHttp2(t, site);
    const ask: Ask = async (path, fields) => {
      const { status = 0, body } = await client.ask(path, fields);
      return { status, body: body.toString() };
    };
    await Promise.all(Array.from({ length: streams }, (_, at) => visit(ask, seed + at)));
  };
  await Promise.all(
    Array.from({ length: connections }, (_, at) => (at % 8 === 0 ? overHttp2(at) : overHttp1(at))),
  );
  for (const key of ['ann 200', 'ann 401', 'bob 200', 'bob 401', 'open 200']) {
    assert.ok((seen.get(key) ?? 0) > requestsMax / 50, `${key}: ${seen.get(key) ?? 0}`);
  }
});

async function exchange(socket: Socket, ...[path, fields]: Parameters<Ask>) {
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nUser-Agent: test\r\n`;
  socket.write(`${head}${lines.join('')}\r\n`);
  let text = '';
  for (;;) {
    const [chunk] = (await once(socket, 'data')) as [string];
    text += chunk;
    const end = text.indexOf('\r\n\r\n');
    const length = Number(/content-length: (\d+)/i.exec(text)?.[1]);
    if (end === -1 || text.length < end + 4 + length) continue;
    return { status: Number(text.slice(9, 12)), body: text.slice(end + 4) };
  }
}
