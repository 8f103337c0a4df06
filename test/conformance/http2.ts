import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { stripVTControlCharacters } from 'node:util';
import { startTlsSite } from '../server/tls/tls-rig.ts';

/**
 * Runs h2spec, a program that asks what RFC 7540 and 7541 say, against a server of its own:
 * `npm run conformance:http2`, with the program that H2SPEC names, else the one on PATH.
 */
async function main(): Promise<void> {
  const cleanups: (() => unknown)[] = [];
  try {
    const site = await startTlsSite(
      { after: (cleanup: () => unknown) => void cleanups.unshift(cleanup) },
      // Long enough for what is asked while an answer is under way.
      { rules: [{ path: '/', kind: 'content', content: 'x'.repeat(200_000) }] },
    );
    report(await runSpec(process.env.H2SPEC ?? 'h2spec', site.tlsPort));
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

/** All that h2spec says, in plain text; rejects when there is no such program. */
async function runSpec(program: string, port: number): Promise<string> {
  const given = ['--strict', '--tls', '--insecure', '--host', '127.0.0.1', '--port', String(port)];
  const child = spawn(program, given, { stdio: ['ignore', 'pipe', 'inherit'] });
  const said = text(child.stdout);
  await once(child, 'spawn').catch((error: unknown) => {
    throw new Error('There is no h2spec: put it on PATH, or name it by H2SPEC.', { cause: error });
  });
  return stripVTControlCharacters(await said);
}

/** Says how many cases pass, and which do not, by their sections. */
function report(said: string): void {
  const [, all, passed] = /^(\d+) tests, (\d+) passed/m.exec(said) ?? [];
  if (all === undefined || passed === undefined) throw new Error(`h2spec said: ${said}`);
  say(`${passed} of ${all}`);
  const [, failures = ''] = said.split(/^Failures:.*$/m);
  // A heading, a case, what it requires; what was seen and what should have been stays apart.
  const lines = failures.split('\n').filter((line) => /^ *(?:[\d.]+ |× )/.test(line));
  for (const line of lines) say(line.trimEnd());
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

await main();
