import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, request, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { suite, test, type TestContext } from 'node:test';
import { freePort } from '../free-port.ts';
import { startSite, type TestSite } from '../harness.ts';
import { startNginx, versionOf } from '../other-servers.ts';

const page = await readFile(new URL('../../docs/start/behind-nginx.md', import.meta.url), 'utf8');
const blockOf = (language: string): string =>
  new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, 'm').exec(page)?.[1] ?? '';
const nginx = blockOf('nginx');

/** The address of a visitor: `trust_proxy` of the page does not name it. */
const visitor = '127.0.0.2';

/** Starts the site of the page, with pages that only programs on this machine see. */
async function startPageSite(t: TestContext): Promise<TestSite> {
  const [server = ''] = /^trust_proxy = .*$/m.exec(blockOf('ini')) ?? [];
  assert.equal(server, 'trust_proxy = 127.0.0.1');
  return startSite(t, {
    server,
    ini:
      '[auth]\nuser_header = X-User\n' +
      '[access.inside]\npath = /inside/*\nallow = 127.0.0.1\n' +
      '[access.outside]\npath = /outside/*\ndeny = 127.0.0.2\n' +
      '[access.users]\npath = /users/*\nusers = yes\n' +
      '[log]\nline = "line of {address}: {path} {status}"\n',
    rules: ['/inside/a', '/outside/a', '/users/a', '/a'].map((path) => ({ path, content: 'x' })),
  });
}

/** What nginx does with the fields of a request, by the `proxy_set_header` of the page. */
async function startLikeNginx(t: TestContext, site: TestSite): Promise<number> {
  const lines = [...nginx.matchAll(/^ *proxy_set_header (\S+) (.*);$/gm)];
  assert.ok(lines.length > 4);
  const passOn = (message: IncomingMessage): Record<string, string> => {
    const { headers, socket } = message;
    const before = headers['x-forwarded-for'];
    const values: Record<string, string> = {
      $host: headers.host ?? '',
      $scheme: 'http',
      $proxy_add_x_forwarded_for: [before ?? [], socket.remoteAddress].flat().join(', '),
      $http_upgrade: headers.upgrade ?? '',
      $connection_upgrade: '',
      '""': '',
    };
    const sent = new Map(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    for (const [, name = '', value = ''] of lines) {
      assert.ok(value in values, value);
      sent.set(name.toLowerCase(), values[value] ?? '');
    }
    return Object.fromEntries([...sent].filter(([, value]) => value !== ''));
  };
  const proxy = createServer((message, response) => {
    const { url: path, method } = message;
    const headers = passOn(message);
    request({ port: site.port, path, method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    }).end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => proxy.close());
  return (proxy.address() as AddressInfo).port;
}

/** Starts nginx with the lines of the page, in the clear. */
async function startRealNginx(t: TestContext, site: TestSite): Promise<number> {
  const port = await freePort();
  const lines = nginx
    .replace(/^ *ssl_.*\n/gm, '')
    .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
    .replace('http://127.0.0.1:8080', `http://127.0.0.1:${site.port}`);
  await startNginx(t, lines, { folder: site.folder, port });
  return port;
}

async function ask(port: number, path: string, headers: Record<string, string>): Promise<number> {
  const asked = request({ port, path, headers, localAddress: visitor, agent: false });
  asked.end();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  await text(answer);
  return answer.statusCode ?? 0;
}

/** Fields of a visitor who wants to seem another one. */
const forged: readonly Readonly<Record<string, string>>[] = [
  {},
  { Forwarded: 'anything' },
  { Forwarded: 'for=127.0.0.1' },
  { Forwarded: 'for=127.0.0.1;host=localhost;proto=https' },
  { 'X-Forwarded-Host': 'a b' },
  { 'X-Forwarded-Host': 'localhost' },
  { 'X-Forwarded-For': '127.0.0.1' },
  { 'X-Forwarded-For': 'garbage"' },
  { 'X-Forwarded-Proto': 'gopher' },
  { 'X-User': 'root' },
];

suite('the lines for nginx', () => {
  const starts = { 'as they are meant': startLikeNginx, 'in nginx': startRealNginx };
  for (const [name, start] of Object.entries(starts)) {
    const isMissing = start === startRealNginx && versionOf('nginx') === undefined;
    const skip = isMissing && 'nginx is not installed';
    test(`leave a visitor its own address, ${name}`, { skip }, async (t) => {
      const site = await startPageSite(t);
      const port = await start(t, site);
      for (const fields of forged) {
        const seen: number[] = [];
        for (const path of ['/a', '/inside/a', '/outside/a', '/users/a']) {
          seen.push(await ask(port, path, fields));
        }
        // nginx adds its own entry behind what the visitor has sent, whatever that is.
        assert.deepEqual(seen, [200, 403, 403, 401], JSON.stringify(fields));
      }
      assert.doesNotMatch(site.logged(), /line of (?!127\.0\.0\.2:)/);
    });
  }

  test('may lack those that clear fields: a request that is forged gets 400', async (t) => {
    const site = await startPageSite(t);
    for (const fields of forged.slice(1, 5)) {
      const answer = await fetch(`${site.url}/inside/a`, {
        headers: { 'X-Forwarded-For': visitor, ...fields },
      });
      assert.equal(answer.status, 400, JSON.stringify(fields));
    }
  });
});
