import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { temporaryFolder, writeFiles } from '../folder.ts';
import { copyWithout, removable } from './without.ts';

test('a server without each module that can be taken out serves, and answers operations', async (t) => {
  assert.ok(removable.length >= 5, removable.join(' '));
  const folder = await temporaryFolder(t);
  await copyWithout(folder, removable);
  const ini = [
    ...['[server]', 'listen = 127.0.0.1:0', 'data = data', 'import = rules.ndjson'],
    ...['[disk.main]', 'root = site'],
  ];
  await writeFiles(folder, {
    'server.ini': ini.join('\n'),
    'rules.ndjson': JSON.stringify({ path: '/rule', content: 'of a rule' }),
    'site/file.txt': 'of a file',
  });
  const words = [join(folder, 'bin/waymark.js'), 'serve', '--config', 'server.ini'];
  const child = spawn(process.execPath, words, { cwd: folder });
  t.after(async () => {
    child.kill('SIGKILL');
    await once(child, 'close');
  });
  let [url, err] = ['', ''];
  child.stderr.on('data', (chunk: Buffer) => (err += chunk.toString()));
  for await (const line of createInterface(child.stdout)) {
    url = /serves (http:\S+)/.exec(line)?.[1] ?? '';
    if (url !== '') break;
  }
  child.stdout.resume();
  assert.notEqual(url, '', err);
  const textOf = async (path: string) => (await fetch(`${url}${path}`)).text();
  assert.equal(await textOf('/file.txt'), 'of a file');
  assert.equal(await textOf('/rule'), 'of a rule');
  assert.match(
    await textOf('/svc1/userinterface/get_content?_v.origin=http://a.example&_v.path=/rule'),
    /of a rule/,
  );
  assert.equal((await fetch(`${url}/svc1/mcp`)).status, 404);
  assert.equal((await fetch(`${url}/svc1/openapi.json`)).status, 404);
});
