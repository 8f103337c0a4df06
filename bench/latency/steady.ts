import { fileURLToPath } from 'node:url';
import { reportOf, type GeneratorParts } from '../load.ts';

/** What is asked for at a constant rate, over kept connections in turn. */
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

const program = fileURLToPath(new URL('./steady-process.ts', import.meta.url));

/**
 * Asks at a constant rate from a process of its own, which never waits for an answer before it goes
 * on (no coordinated omission). Rejects when a connection breaks or an answer is not as ordered.
 */
export function askSteadily(parts: GeneratorParts, order: SteadyOrder): Promise<SteadyResult> {
  return reportOf<SteadyResult>(parts, process.execPath, [program, JSON.stringify(order)]);
}
