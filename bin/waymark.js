#!/usr/bin/env node
// Starts the command line: from the sources in a clone, from the built files in the published package.
import { existsSync } from 'node:fs';
// As a whole: an older Node could not read a file that names what its module does not have.
import module from 'node:module';

const engineMajor = 24;
if (Number(process.versions.node.split('.')[0]) < engineMajor) {
  process.stderr.write(
    `waymark needs Node ${engineMajor} or newer, and this is ${process.versions.node}.\n` +
      'In a clone, npm brings a newer one along: npx waymark <command>\n',
  );
  process.exit(1);
}

// Unheard, it would have Node open a port to its debugger, to everybody on the machine. Where Node is
// told --disable-sigusr1 instead, the signal is blocked, and the log of a server could not tell of it.
process.on('SIGUSR1', () => undefined);
// A restart (src/cli/serve/hand-over.ts) that a server is not ready for; unheard, it would end the process.
process.on('SIGUSR2', () => undefined);

const words = process.argv.slice(2);
if (words[0] === 'serve') startAgainWithFlags();

module.enableCompileCache();
const sources = new URL('../src/cli/cli.ts', import.meta.url);
const { run } = await import(
  existsSync(sources) ? sources.href : new URL('../dist/cli.js', import.meta.url).href
);
process.exitCode = await run(words);

/**
 * Becomes the same process with flags that V8 takes only when it starts (measured in bench/README.md),
 * and that a line `#!` could say is not understood everywhere: room for young objects that fits into
 * a core's cache, one thread that looks through it, no object taken for an old one because others of
 * its kind have grown old, and a way to have that done in time (src/outbound/passed-bytes.ts).
 * Whoever sets the size keeps theirs, and Windows, where no process can become another, V8's own.
 */
function startAgainWithFlags() {
  const asked = '--expose-gc';
  const started = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  if (process.execve === undefined || process.platform === 'win32') return;
  if (started.includes(asked)) return;
  // The sockets that the service manager or another process hands over would be closed.
  if (process.env.LISTEN_PID === String(process.pid) || process.env.WAYMARK_HAND_OVER) return;
  const size = started.includes('--max-semi-space-size') ? [] : ['--max-semi-space-size=8'];
  const flags = [asked, '--no-parallel-scavenge', '--no-allocation-site-pretenuring', ...size];
  process.execve(process.execPath, [
    process.execPath,
    ...flags,
    ...process.execArgv,
    ...process.argv.slice(1),
  ]);
}
