import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { startSite } from '../harness.ts';
import { startTlsSite } from '../core/server/tls/tls-rig.ts';

/**
 * Runs h2spec, which tests a server against RFC 7540 and 7541, over TLS and without it (h2c with
 * prior knowledge): `npm run conformance:http2`. The
 * environment variable H2SPEC names the program (by default, the one on PATH).
 */
async function main(): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  try {
    const cleaning = { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) };
    // Long enough for cases that send frames while the server sends a response.
    const rules = [{ path: '/', kind: 'content', content: 'x'.repeat(200_000) }];
    const program = process.env.H2SPEC ?? 'h2spec';
    say('Over TLS:');
    const { tlsPort } = await startTlsSite(cleaning, { rules });
    report(await runSpec(program, ['--tls', '--insecure', '--port', String(tlsPort)]));
    say('Without TLS:');
    // A server with TLS would lead its visitors there.
    const { port } = await startSite(cleaning, { rules });
    report(await runSpec(program, ['--port', String(port)]));
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

/** The output of h2spec as plain text; rejects if there is no such program. */
async function runSpec(program: string, more: readonly string[]): Promise<string> {
  const given = ['--strict', '--host', '127.0.0.1', ...more];
  const child = spawn(program, given, { stdio: ['ignore', 'pipe', 'inherit'] });
  const output = text(child.stdout);
  await once(child, 'spawn').catch((error: unknown) => {
    throw new Error('No h2spec: put it on PATH, or set H2SPEC to its path.', { cause: error });
  });
  return stripVTControlCharacters(await output);
}

/** Prints how many cases pass, and which fail, by section. */
function report(output: string): void {
  const [, all, passed] = /^(\d+) tests, (\d+) passed/m.exec(output) ?? [];
  if (all === undefined || passed === undefined) throw new Error(`h2spec printed: ${output}`);
  say(`${passed} of ${all}`);
  const [, failures = ''] = output.split(/^Failures:.*$/m);
  // Headings and cases; not the lines with the expected and the actual frames.
  const lines = failures.split('\n').filter((line) => /^ *(?:[\d.]+ |× )/.test(line));
  for (const line of lines) say(line.trimEnd());
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main();
