import assert from 'node:assert/strict';
import { writeFile, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { serverFolder, startServed } from '../../process.ts';

const pollMs = 20;
const site = (name: string, version: number) =>
  `[disk.${name}]\npath = /${name}/\nroot = ${name}\n` +
  `[disk.${name}.headers]\nX-Version = ${version}\n`;

test('a mistake in the file of one site leaves all sites as they were', async (context) => {
  const { iniFile } = await serverFolder(context, 'include = sites/*.ini\n', {
    'sites/one.ini': site('one', 1),
    'sites/one/index.html': 'one',
    'sites/two.ini': site('two', 1),
    'sites/two/index.html': 'two',
    'sites/three/index.html': 'three',
  });
  const served = await startServed(context, iniFile);
  const sites = join(dirname(iniFile), 'sites');
  const answer = async (name: string): Promise<string> => {
    const reply = await fetch(`${served.url}/${name}/`);
    return `${reply.status} ${reply.headers.get('x-version') ?? ''} ${await reply.text()}`;
  };
  const until = async (name: string, expected: RegExp): Promise<void> => {
    while (!expected.test(await answer(name))) await wait(pollMs);
  };
  await writeFile(join(sites, 'three.ini'), site('three', 1));
  await until('three', /^200 1 three$/);

  await writeFile(join(sites, 'two.ini'), `${site('two', 2)}nonsense\n`);
  while (!served.out().includes('two.ini')) await wait(pollMs);
  assert.match(served.out(), /nonsense/);
  assert.deepEqual(await Promise.all(['one', 'two', 'three'].map(answer)), [
    '200 1 one',
    '200 1 two',
    '200 1 three',
  ]);

  await writeFile(join(sites, 'two.ini'), site('two', 3));
  await until('two', /^200 3 two$/);
  await unlink(join(sites, 'one.ini'));
  await until('one', /^404 /);
  assert.equal(await answer('three'), '200 1 three');
});
