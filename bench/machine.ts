import { cpus, release, type } from 'node:os';
import { firstLine } from './load.ts';
import { findProgram } from './processes.ts';
import { allowedCores } from './proc.ts';

/**
 * The programs that the benchmark compares with Waymark, by path; undefined if one is not
 * installed.
 */
export interface Programs {
  readonly nginx: string | undefined;
  readonly caddy: string | undefined;
  readonly h2o: string | undefined;
  readonly wrk: string | undefined;
}

/**
 * The core of the servers and the core of the load; undefined if the machine cannot separate them.
 */
export interface Cores {
  readonly server: number | undefined;
  readonly load: number | undefined;
}

/** What the figures depend on, as lines of text. */
export type Surroundings = Readonly<Record<string, string>>;

/** Looks for the programs. */
export function findPrograms(): Programs {
  return {
    nginx: findProgram('nginx'),
    caddy: findProgram('caddy'),
    h2o: findProgram('h2o'),
    wrk: findProgram('wrk'),
  };
}

/**
 * Chooses the cores: the first for the server, the second for the load, when there are two and
 * taskset exists.
 */
export async function chooseCores(): Promise<Cores> {
  const [server, load] = await allowedCores();
  const apart = findProgram('taskset') !== undefined && load !== undefined;
  return apart ? { server, load } : { server: undefined, load: undefined };
}

/** Versions, kernel and CPU. */
export async function surroundings({ nginx, caddy, h2o, wrk }: Programs): Promise<Surroundings> {
  const version = (program: string | undefined, arg: string): Promise<string> | string =>
    program === undefined ? 'not installed' : firstLine(program, [arg]);
  return {
    node: process.version,
    nginx: (await version(nginx, '-v')).replace(/^nginx version: nginx\//, ''),
    caddy: await version(caddy, 'version'),
    h2o: (await version(h2o, '--version')).replace(/^h2o version /, ''),
    wrk: (await version(wrk, '-v')).replace(/^wrk (\S+).*/, '$1'),
    kernel: `${type()} ${release()}`,
    cpu: `${cpus()[0]?.model.trim() ?? 'unknown'}, ${cpus().length} cores`,
  };
}
