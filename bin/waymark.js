#!/usr/bin/env node
// Starts the command line: from the sources in a clone, from the built files in the published package.
import { existsSync } from 'node:fs';
import { enableCompileCache } from 'node:module';

const engineMajor = 24;
if (Number(process.versions.node.split('.')[0]) < engineMajor) {
  process.stderr.write(
    `waymark needs Node ${engineMajor} or newer, and this is ${process.versions.node}.\n` +
      'In a clone, npm brings a newer one along: npm run waymark -- <command>\n',
  );
  process.exit(1);
}

const words = process.argv.slice(2);
if (words[0] === 'serve') startAgainWithSmallNursery();

enableCompileCache();
const sources = new URL('../src/cli/cli.ts', import.meta.url);
const { run } = await import(
  existsSync(sources) ? sources.href : new URL('../dist/cli/cli.js', import.meta.url).href
);
process.exitCode = await run(words);

/**
 * Becomes the same process with room for young objects that fits into a core's cache: a server that
 * streams has 30 MiB less resident, and needs no more CPU time (bench/README.md). V8 takes the
 * size only when it starts, and a line `#!` that could say it is not understood everywhere. Whoever
 * sets the size keeps theirs, and Windows, where no process can become another, V8's own.
 */
function startAgainWithSmallNursery() {
  const flag = '--max-semi-space-size';
  const flags = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  if (process.execve === undefined || process.platform === 'win32' || flags.includes(flag)) return;
  const args = [process.execPath, `${flag}=1`, ...process.execArgv, ...process.argv.slice(1)];
  process.execve(process.execPath, args);
}
