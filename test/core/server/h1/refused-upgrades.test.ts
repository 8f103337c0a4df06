import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { type TestContext, suite, test } from 'node:test';
import { wrongKeysPerMinuteMax } from '../../../../src/core/operations/keys/authenticate.ts';
import { freePort } from '../../../free-port.ts';
import { httpSource } from '../../outbound/sources.ts';
import { connectHttp2, readReply } from '../h2/client.ts';
import { websocketFields } from '../h2/websocket-client.ts';
import { type TlsSite, startTlsSite } from '../tls/tls-rig.ts';
import { upgradeRequest } from '../websocket/socket-rig.ts';

/** The answer to an upgrade: names of fields are in lower case. */
interface Refused {
  readonly status: number;
  readonly fields: Readonly<Record<string, string | undefined>>;
  readonly body: string;
}

/** Sends a request over HTTP/1.1 with TLS; resolves to the answer that ends the connection. */
async function refusedBy1(t: TestContext, site: TlsSite, sent: string): Promise<Refused> {
  const socket = connectTls({ port: site.tlsPort, host: '127.0.0.1', ca: site.authority.cert });
  t.after(() => socket.destroy());
  let text = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(sent);
  await once(socket, 'end');
  const end = text.indexOf('\r\n\r\n');
  const [line = '', ...lines] = text.slice(0, end).split('\r\n');
  const fields = lines.map((one) => {
    const at = one.indexOf(':');
    return [one.slice(0, at).toLowerCase(), one.slice(at + 1).trim()] as const;
  });
  return {
    status: Number(line.split(' ')[1]),
    fields: Object.fromEntries(fields),
    body: text.slice(end + 4),
  };
}

async function refusedBy2(
  t: TestContext,
  site: TlsSite,
  path: string,
  fields: Readonly<Record<string, string>>,
): Promise<Refused> {
  const client = await connectHttp2(t, site);
  const stream = client.begin(path, { ...websocketFields, ...fields }, false);
  const { status = 0, headers, body } = await readReply(stream);
  stream.close();
  return { status, fields: headers as Refused['fields'], body: body.toString('latin1') };
}

const accept = 'text/html';

/** Each way to ask for another protocol. */
const ways = {
  'a websocket over HTTP/1.1': (t: TestContext, site: TlsSite, path: string) =>
    refusedBy1(t, site, upgradeRequest({ Accept: accept }, `GET ${path} HTTP/1.1`)),
  'another protocol over HTTP/1.1': (t: TestContext, site: TlsSite, path: string) => {
    const fields = { Accept: accept, Upgrade: 'tailscale-control-protocol' };
    return refusedBy1(t, site, upgradeRequest(fields, `POST ${path} HTTP/1.1`));
  },
  'a websocket over HTTP/2': (t: TestContext, site: TlsSite, path: string) =>
    refusedBy2(t, site, path, { accept }),
} as const;

const ini = (source: string) => `
[disk.site]
path = /
root = site
errors = errors
[proxy.app]
path = /app/
source = ${source}/
[access.inside]
path = /app/inside/*
deny = 0.0.0.0/0
[access.people]
path = /app/people/*
password_file = users.txt
[rate.few]
path = /app/few/*
rate = 1/h
burst = 1
[headers.all]
Content-Security-Policy = frame-ancestors 'none'
`;

/** How often the server has counted an answer with a status. */
async function counted(site: TlsSite, status: number): Promise<number> {
  const { body: text } = await site.ask(`https://localhost:${site.tlsPort}/svc1/metrics`);
  const lines = text.matchAll(/^waymark_requests_total\{([^}]*)\} (\d+)$/gm);
  let sum = 0;
  for (const [, labels = '', count] of lines) {
    if (labels.includes(`status="${Math.floor(status / 100)}xx"`)) sum += Number(count);
  }
  return sum;
}

const refusals = [
  ['a network that is denied', '/app/inside/x', 403],
  ['nobody who is signed in', '/app/people/x', 401],
  ['a rate that is used up', '/app/few/x', 429],
  ['a source that is down', '/app/x', 502],
] as const;

suite('a refused upgrade has the fields and the page of any other refusal', () => {
  for (const [way, ask] of Object.entries(ways)) {
    test(way, async (t) => {
      const site = await startTlsSite(t, {
        tls: 'hsts = 1m',
        ini: ini(`http://127.0.0.1:${await freePort()}`),
        files: {
          'site/errors/4xx.html': 'own page',
          'site/errors/502.html': 'own page',
          'users.txt': '',
        },
      });
      // The token that there is.
      await site.ask(`https://localhost:${site.tlsPort}/app/few/first`);
      for (const [what, path, status] of refusals) {
        const before = await counted(site, status);
        const refused = await ask(t, site, path);
        assert.equal(refused.status, status, what);
        const { fields, body } = refused;
        assert.equal(fields['content-security-policy'], "frame-ancestors 'none'", what);
        assert.equal(fields['strict-transport-security'], 'max-age=60', what);
        assert.match(fields['content-type'] ?? '', /text\/html/, what);
        assert.equal(body, 'own page', what);
        assert.equal(await counted(site, status), before + 1, what);
        const lines = site.logged().match(new RegExp(` ${status} [^\n]*${path} `, 'g'));
        assert.equal(lines?.length, 1, site.logged());
      }
    });
  }
});

suite('an upgrade passes no redirect and no page rule that refuses', () => {
  for (const [way, ask] of Object.entries(ways)) {
    test(way, async (t) => {
      const asked: string[] = [];
      const app = await httpSource(t, ({ url = '' }, response) => {
        asked.push(url);
        response.end('app');
      });
      const content = { kind: 'content', content: 'page' };
      const site = await startTlsSite(t, {
        ini:
          `[proxy.app]\npath = /\nsource = ${app.origin}\n` +
          '[redirect.old]\npath = /old/*\nto = /new/{splat}\n' +
          '[rewrite.short]\nmatch = ^/a/(.*)$\nto = /admin/$1\n',
        rules: [
          { ...content, path: '/admin/*', httpresponse: 403 },
          { ...content, path: '/page' },
          { path: '/link', kind: 'resolve', enginedata: { target: '/page' } },
        ],
      });
      const [isGet, statuses] = [way !== 'another protocol over HTTP/1.1', [] as number[]];
      for (const path of ['/admin/x', '/a/x', '/link', '/old/x', '/page', '/other']) {
        statuses.push((await ask(t, site, path)).status);
      }
      const refused = isGet ? [403, 403, 302] : [405, 405, 405];
      assert.deepEqual(statuses, [...refused, 301, 200, 200]);
      assert.deepEqual(asked, ['/page', '/other']);
    });
  }
});

test('any protocol but websocket over HTTP/2 gets a refusal with the fields of its path', async (t) => {
  const site = await startTlsSite(t, { ini: '[headers.all]\nX-Own = all\n' });
  const { status, fields } = await refusedBy2(t, site, '/none', { ':protocol': 'connect-udp' });
  assert.deepEqual([status, fields['x-own']], [501, 'all']);
  assert.equal(site.logged().match(/ 501 [^\n]*\/none /g)?.length, 1, site.logged());
});

test('a wrong key on an upgrade counts once', async (t) => {
  const site = await startTlsSite(t, {
    ini: '[auth]\ncors_origins = https://other.example\n[rate.all]\nrate = 100/m\nby = key\n',
  });
  const fields = { Origin: 'https://other.example', apikey: `wmk_${'a'.repeat(43)}` };
  const statuses: number[] = [];
  while (statuses.at(-1) !== 429) {
    statuses.push((await refusedBy1(t, site, upgradeRequest(fields))).status);
  }
  assert.deepEqual(statuses, [...Array<number>(wrongKeysPerMinuteMax).fill(401), 429]);
});
