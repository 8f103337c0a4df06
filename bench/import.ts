// Measures `waymark import` of page rules, with a vk and without, then export, backup and
// check --data; see bench/README.md.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, createWriteStream } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { findPrograms, surroundings } from './machine.ts';
import { placeOf } from './rules/fill.ts';
import { createWorkspace } from './workspace.ts';

const { values: options } = parseArgs({
  options: { rules: { type: 'string', default: '1000000' } },
});
const rules = Number(options.rules);
const program = fileURLToPath(new URL('../bin/waymark.js', import.meta.url));

const workspace = await createWorkspace();
for (const [name, value] of Object.entries(await surroundings(findPrograms()))) {
  console.log(`${name.padEnd(7)} ${value}`);
}
for (const withVk of [true, false]) {
  const folder = await workspace.folderFor(`import-${withVk ? 'vk' : 'fields'}`);
  const config = join(folder, 'server.ini');
  await writeFile(config, '[server]\nlisten = 127.0.0.1:0\ndata = data\n');
  const file = join(folder, 'rules.ndjson');
  await pipeline(Readable.from(lines(withVk)), createWriteStream(file));
  console.log(`\n${rules} rules, ${withVk ? 'each with a vk' : 'recognised by their fields'}`);
  for (const words of [['import'], ['import'], ['export'], ['backup', join(folder, 'copy')]]) {
    print(words[0] ?? '', await measure([...words, '--config', config], file));
  }
  print('check --data', await measure(['check', '--data', '--config', config], file));
}

function* lines(withVk: boolean): Iterable<string> {
  for (let at = 0; at < rules; at += 1) {
    const vk = withVk ? { vk: `page-${String(at).padStart(9, '0')}` } : {};
    const rule = { ...placeOf(at), kind: 'content', content: `<h1>Page ${at}</h1>`, ...vk };
    yield `${JSON.stringify(rule)}\n`;
  }
}

/** Runs a command with a file as its standard input; resolves to the seconds it took. */
async function measure(words: readonly string[], file: string): Promise<number> {
  const started = performance.now();
  const child = spawn(process.execPath, [program, ...words], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  // A command that reads no input closes the stream early.
  const fed = pipeline(createReadStream(file), child.stdin).catch(() => undefined);
  const [code] = (await once(child, 'close')) as [number | null];
  await fed;
  if (code !== 0) throw new Error(`${words.join(' ')} ended with ${String(code)}`);
  return (performance.now() - started) / 1000;
}

function print(name: string, seconds: number): void {
  const rate = (rules / seconds).toFixed(0).padStart(8);
  console.log(`${name.padEnd(14)} ${seconds.toFixed(1).padStart(6)} s ${rate} a second`);
}
