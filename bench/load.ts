import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endedMicroseconds } from './proc.ts';
import { startProcess } from './processes.ts';
import { isSocket, overHttp2, type Transport } from './scenarios.ts';
import { visitorArguments } from './visitors.ts';

/** The task of a load generator: keep every connection busy with requests, or with visits. */
export interface LoadOrder {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly transport?: Transport;
  /** Requests at a time on each connection of HTTP/2; 1 if absent. */
  readonly streams?: number;
  readonly connections: number;
  readonly seconds: number;
}

/** What a load generator measured. */
export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  /** Bytes read, headers included. */
  readonly bytes: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** Responses with a status of 400 or more. */
  readonly refused: number;
  /** Connections that failed, and responses that did not come in time. */
  readonly broken: number;
  /** The generator's own CPU time. */
  readonly cpuUs: number;
}

/** Makes requests from a process of its own. */
export interface LoadGenerator {
  readonly name: string;
  run(order: LoadOrder): Promise<LoadResult>;
}

/** The generator wrk, with one thread. */
export function wrk(program: string, parts: GeneratorParts): LoadGenerator {
  const script = fileURLToPath(new URL('./wrk.lua', import.meta.url));
  return {
    name: 'wrk',
    run: (order) => {
      const { url, headers, transport, connections, seconds } = order;
      const own = ownProgram(order);
      if (own !== undefined) return programOf(parts, own, order);
      const all = transport === 'connection' ? { ...headers, Connection: 'close' } : headers;
      return runGenerator(parts, program, [
        ...['-t', '1', '-c', String(connections), '-d', `${seconds}s`, '-s', script],
        ...Object.entries(all).flatMap(([name, value]) => ['-H', `${name}: ${value}`]),
        ...[url, '--', ...visitorArguments()],
      ]);
    },
  };
}

/** The generator of this folder for what wrk does not speak; undefined for HTTP/1.1. */
function ownProgram({ transport }: LoadOrder): string | undefined {
  if (isSocket(transport)) return './generator-sockets.ts';
  return overHttp2.has(transport ?? 'http') ? './generator-h2.ts' : undefined;
}

function programOf(parts: GeneratorParts, program: string, order: LoadOrder): Promise<LoadResult> {
  const file = fileURLToPath(new URL(program, import.meta.url));
  return runGenerator(parts, process.execPath, [file, JSON.stringify(order)]);
}

/**
 * The generator of this folder for machines without wrk (generator.ts). It takes more CPU time a
 * request than wrk.
 */
export function ownGenerator(parts: GeneratorParts): LoadGenerator {
  return {
    name: 'the generator of bench/',
    run: (order) => programOf(parts, ownProgram(order) ?? './generator.ts', order),
  };
}

/** Where a generator runs. */
export interface GeneratorParts {
  readonly core: number | undefined;
  /** A folder for its output. */
  readonly folder: string;
}

/** The first line that a program prints to stdout or stderr, such as its version. */
export async function firstLine(program: string, args: readonly string[]): Promise<string> {
  // Some exit with an error after the report, so the exit code is ignored.
  const text = await new Promise<string>((resolve) => {
    execFile(program, args, (_error, stdout, stderr) => {
      resolve(stdout === '' ? stderr : stdout);
    });
  });
  return text.split('\n')[0]?.trim() ?? '';
}

async function runGenerator(
  parts: GeneratorParts,
  program: string,
  args: readonly string[],
): Promise<LoadResult> {
  const before = await endedMicroseconds();
  const result = await reportOf<Omit<LoadResult, 'cpuUs'>>(parts, program, args);
  return { ...result, cpuUs: (await endedMicroseconds()) - before };
}

/**
 * Runs a program to its end and parses its last line as JSON; rejects with its output otherwise.
 */
export async function reportOf<Report>(
  { core, folder }: GeneratorParts,
  program: string,
  args: readonly string[],
): Promise<Report> {
  const own = await mkdtemp(join(folder, 'load-'));
  const stdout = join(own, 'stdout');
  const child = startProcess(program, args, { core, stdout, stderr: join(own, 'stderr') });
  const how = await child.ended;
  // The last line is the report; wrk prints a text for people above it.
  const line = (await readFile(stdout, 'utf8')).trimEnd().split('\n').at(-1) ?? '';
  if (!line.startsWith('{')) throw new Error(how);
  await rm(own, { recursive: true });
  return JSON.parse(line) as Report;
}
