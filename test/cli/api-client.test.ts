import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { runHere, startClient } from './here.ts';

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
