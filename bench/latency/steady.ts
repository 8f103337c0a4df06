import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { reportOf, type GeneratorParts } from '../load.ts';
import { findProgram } from '../processes.ts';

/** Requests at a constant rate, over persistent connections in turn. */
export interface SteadyOrder {
  readonly url: string;
  /** What every answer has to be. */
  readonly status: number;
  readonly contentBytes: number;
  readonly connections: number;
  /** Requests a second of all connections together. */
  readonly rate: number;
  /** How long it goes on before anything counts. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** How soon the answers were there, each counted from when its request was due. */
export interface SteadyResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** How late the generator itself was with its requests; what was late counts as latency, too. */
  readonly lateP99Ms: number;
}

const source = fileURLToPath(new URL('./steady.c', import.meta.url));
const flags = ['-O2', '-Wall', '-Wextra', '-Wconversion', '-Werror'];

/**
 * Builds the generator, in a folder that goes when this process ends: not where the servers' files
 * are, for what lies in memory may often not be run. Resolves to its path; rejects without a C
 * compiler.
 */
export async function buildGenerator(): Promise<string> {
  const compiler = findProgram('cc');
  if (compiler === undefined) throw new Error('a C compiler is needed: apt-get install gcc');
  const folder = mkdtempSync(join(tmpdir(), 'waymark-bench-'));
  process.once('exit', () => {
    rmSync(folder, { recursive: true, force: true });
  });
  const program = join(folder, 'steady');
  await promisify(execFile)(compiler, [...flags, '-o', program, source]);
  return program;
}

/**
 * Asks at a constant rate from a process of its own, which never waits for an answer before it goes
 * on (no coordinated omission). Rejects when a connection breaks or an answer is not as ordered.
 */
export function askSteadily(
  program: string,
  parts: GeneratorParts,
  { url, status, contentBytes, connections, rate, warmUpSeconds, seconds }: SteadyOrder,
): Promise<SteadyResult> {
  const { hostname, port, host, pathname, search } = new URL(url);
  const order = [status, contentBytes, connections, rate, warmUpSeconds, seconds].map(String);
  return reportOf(parts, program, [hostname, port, host, pathname + search, ...order]);
}
