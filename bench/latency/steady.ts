import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { reportOf, type GeneratorParts } from '../load.ts';
import { findProgram } from '../processes.ts';

/** Requests at a constant rate, each over the next of some keep-alive connections. */
export interface SteadyOrder {
  readonly url: string;
  /** The expected status of every response. */
  readonly status: number;
  readonly contentBytes: number;
  readonly connections: number;
  /** Requests a second of all connections together. */
  readonly rate: number;
  /** Seconds before the measurement. */
  readonly warmUpSeconds: number;
  readonly seconds: number;
}

/** The latencies, each counted from when the request was due. */
export interface SteadyResult {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  /** How late the generator itself sent its requests; the latencies include this. */
  readonly lateP99Ms: number;
}

const source = fileURLToPath(new URL('./steady.c', import.meta.url));
const flags = ['-O2', '-Wall', '-Wextra', '-Wconversion', '-Werror'];

/**
 * Builds the generator in a temporary folder, which is removed when this process ends. It is not
 * the folder of the servers' files: /dev/shm is often mounted with noexec. Resolves to the path of
 * the program; rejects without a C compiler.
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
 * Sends requests at a constant rate from another process. It does not wait for responses, so there
 * is no coordinated omission. Rejects if a connection breaks or a response is not as expected.
 */
export function sendAtConstantRate(
  program: string,
  parts: GeneratorParts,
  { url, status, contentBytes, connections, rate, warmUpSeconds, seconds }: SteadyOrder,
): Promise<SteadyResult> {
  const { hostname, port, host, pathname, search } = new URL(url);
  const order = [status, contentBytes, connections, rate, warmUpSeconds, seconds].map(String);
  return reportOf(parts, program, [hostname, port, host, pathname + search, ...order]);
}
