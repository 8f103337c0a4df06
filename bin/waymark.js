#!/usr/bin/env node
// Starts the command line: from `src/` in a clone, and from `dist/` in the npm package.
import { existsSync } from 'node:fs';
// The whole module, because an older Node refuses a file that imports a name that it does not have.
import module from 'node:module';

const engineMajor = 24;
if (Number(process.versions.node.split('.')[0]) < engineMajor) {
  process.stderr.write(
    `waymark needs Node ${engineMajor} or newer, and this is ${process.versions.node}.\n` +
      'In a clone, npm has installed a newer one: npx waymark <command>\n',
  );
  process.exit(1);
}

// Without a handler, SIGUSR1 makes Node open its debugger on a port, to every user of the machine.
// The flag --disable-sigusr1 would block the signal, and the server could not reopen its log by it.
process.on('SIGUSR1', () => undefined);
// SIGUSR2 restarts a server (src/cli/serve/hand-over.ts). Without a handler, it would end a process
// that is not ready for a restart.
process.on('SIGUSR2', () => undefined);

const words = process.argv.slice(2);
if (words[0] === 'serve') startAgainWithFlags();

module.enableCompileCache();
const sources = new URL('../src/cli/cli.ts', import.meta.url);
const isClone = existsSync(sources);
if (isClone) module.registerHooks({ resolve });
const bundle = words[0] === 'serve' ? '../dist/serve.js' : '../dist/cli.js';
const { run } = await import(isClone ? sources.href : new URL(bundle, import.meta.url).href);
process.exitCode = await run(words);

/**
 * Resolves the imports of a clone, which name built-in modules and files of `src/` exactly: to let
 * Node search for them takes a fifth of a start.
 */
function resolve(specifier, context, next) {
  if (specifier.startsWith('node:'))
    return { url: specifier, format: 'builtin', shortCircuit: true };
  if (!/^\.\.?\/.*\.ts$/.test(specifier)) return next(specifier, context);
  const { href } = new URL(specifier, context.parentURL);
  return { url: href, format: 'module-typescript', shortCircuit: true };
}

/**
 * Executes Node again in this process, with flags that V8 reads only at its start; not all systems
 * accept arguments in a line `#!`. bench/README.md has the measurements:
 *
 * - a semi-space of 16 MiB, unless the user has set a size, which one thread collects;
 * - no pretenuring: V8 does not allocate objects as old because others of their kind became old;
 * - `gc()`, for src/core/outbound/passed-bytes.ts.
 *
 * Windows has no `execve`, so the process there keeps V8's defaults.
 */
function startAgainWithFlags() {
  const exposeGc = '--expose-gc';
  const given = [...process.execArgv, process.env.NODE_OPTIONS ?? ''].join(' ');
  if (process.execve === undefined || process.platform === 'win32') return;
  if (given.includes(exposeGc)) return;
  // execve would close the sockets that the service manager or another process has passed on.
  if (process.env.LISTEN_PID === String(process.pid) || process.env.WAYMARK_HAND_OVER) return;
  const size = given.includes('--max-semi-space-size') ? [] : ['--max-semi-space-size=16'];
  const flags = [exposeGc, '--no-parallel-scavenge', '--no-allocation-site-pretenuring', ...size];
  process.execve(process.execPath, [
    process.execPath,
    ...flags,
    ...process.execArgv,
    ...process.argv.slice(1),
  ]);
}
