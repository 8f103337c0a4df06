import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { runWaymark } from '../../process.ts';
import { postToApi } from '../../../src/cli/remote/api-client.ts';
import { runHere, startClient } from '../here.ts';

test('commands of the API find the server by its ini file', async (t) => {
  const { site, env } = await startClient(t, {
    server: 'base = /own',
    rules: [{ path: '/a', kind: 'content', content: 'x' }],
  });
  const file = join(site.folder, 'other.ini');
  const nowhere = 'http://127.0.0.1:1';
  const list = async (server: string, ...more: string[]) => {
    await writeFile(file, `[server]\ndata = data\nbase = /own\n${server}\n`);
    const words = ['rule', 'list', '--config', file, ...more];
    return runHere(words, { env: { ...env, WAYMARK_URL: nowhere } });
  };
  for (const listen of [`127.0.0.1:${site.port}`, `:${site.port}`]) {
    const { out, err } = await list(`listen[] = unix:/x\nlisten[] = ${listen}`);
    assert.match(out, / \/a\n$/, err);
  }
  const byOrigin = await list(`listen = 127.0.0.1:1\npublic_url = ${site.url}`);
  assert.match(byOrigin.out, / \/a\n$/, byOrigin.err);
  const explained = await runHere(['explain', '/a', '--config', file], { env });
  assert.match(explained.out, /is answered by the page rule/, explained.err);

  const given = await list(`listen = 127.0.0.1:${site.port}`, '--url', nowhere);
  assert.match(given.err, /No server answers/, '--url takes precedence');
  const unreachable = await list('listen = unix:/x');
  assert.deepEqual([unreachable.code, unreachable.out], [2, '']);
  assert.match(unreachable.err, /other\.ini has no TCP address in `listen`\. Give --url/);
  const broken = await list('lisen = x');
  assert.equal(broken.code, 1);
  assert.match(broken.err, /other\.ini:4: /);
});

test('a refused command names the page of the documentation that helps', async (t) => {
  const { waymark, site } = await startClient(t, {});
  const invalid = await waymark('rule', 'insert', '{"kind":"content"}');
  assert.equal(invalid.code, 1);
  const page = `${site.url}/svc1/docs/reference/operations.html#svc1userinterfaceinsert`;
  assert.match(invalid.err, /^waymark: .*\nSee (.*)\n$/);
  assert.ok(invalid.err.endsWith(`See ${page}\n`), invalid.err);
  const missing = await waymark('rule', 'read', 'none');
  assert.match(missing.err, /^waymark: [^\n]*\n$/, 'the message says everything');
});

test('a command quotes a server that does not answer as Waymark does', async (t) => {
  let answer: { readonly type: string; readonly body: string } = { type: 'text/html', body: '<p>' };
  const other = createServer((_request, response) => {
    response.writeHead(403, { 'content-type': answer.type }).end(answer.body);
  }).listen(0, '127.0.0.1');
  t.after(() => other.close());
  await once(other, 'listening');
  const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const said = async () => (await runHere(['server', 'status', '--url', url], { env: {} })).err;
  assert.equal(await said(), `waymark: ${url} answers 403, but not as a Waymark server.\n`);
  answer = {
    type: 'text/plain; charset=utf-8',
    body: '403 Forbidden\nOver https \u001b[1monly.\n',
  };
  assert.equal(
    await said(),
    `waymark: ${url} answers 403, but not as a Waymark server: 403 Forbidden Over https [1monly.\n`,
  );
});

test('an import without --url and ini file says what is missing', async (t) => {
  const folder = await temporaryFolder(t);
  const env = { WAYMARK_URL: 'http://127.0.0.1:1', WAYMARK_CONFIG: '' };
  const { code, err } = await runWaymark(['import', 'rules.ndjson'], { env, cwd: folder });
  assert.equal(code, 2);
  assert.match(err, /nothing to import to\. Give --url for a running server/);
});

test('a server that is too slow may still have done what a command asked', async (t) => {
  const server = createServer(() => undefined).listen(0, '127.0.0.1');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const content = { type: 'application/x-ndjson', body: '{}', timeoutMs: 1 };
  const target = { url: `http://127.0.0.1:${port}`, apikey: undefined };
  await assert.rejects(postToApi(target, 'svc1.userinterface.import', content), {
    code: 'unavailable',
    message: /did not answer within 0\.001 s\. It may still carry out the request/,
  });
});
