import { stat, truncate } from 'node:fs/promises';
import type { LoadGenerator, LoadResult } from './load.ts';
import { requestOnce, type Answer } from './probe.ts';
import { coreMicroseconds, cpuMicroseconds, resetPeaks, peakBytes, residentBytes } from './proc.ts';
import { browserFields, isEncrypted, isSocket, type Scenario } from './scenarios.ts';
import type { BenchServer, RunningServer } from './servers/server.ts';

/** A running server and its name. */
export interface Contestant extends Pick<BenchServer, 'name' | 'below' | 'except'> {
  readonly server: RunningServer;
}

/** How long a measurement takes, and its connections. */
export interface Effort {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmUpSeconds: number;
  readonly connections: number;
}

/** The conditions that all scenarios share. */
export interface Conditions {
  readonly load: LoadGenerator;
  readonly effort: Effort;
  /** The core of the servers; undefined if they are not pinned to one. */
  readonly core: number | undefined;
}

/** One server under load for one round. */
export interface Sample {
  readonly requestsPerSecond: number;
  /** CPU time of the server's processes, divided by the requests done. */
  readonly cpuUsPerRequest: number;
  /** The same for the process that used most. */
  readonly busiestUsPerRequest: number;
  readonly p50Us: number;
  readonly p99Us: number;
  /** CPU time of the server's processes, divided by the elapsed time: 1 is a whole core. */
  readonly busy: number;
  /** The same for the load generator. */
  readonly generatorBusy: number;
  /**
   * CPU time of the load generator, divided by the requests: the cost of a response for a client.
   */
  readonly clientUsPerRequest: number;
  /**
   * Share of the server's core that other processes or the host took; undefined if the server is
   * not pinned to a core.
   */
  readonly others: number | undefined;
  /** Connections that failed. */
  readonly broken: number;
  /** Resident memory; undefined if the scenario does not measure it. */
  readonly memory: Memory | undefined;
}

/** Resident memory of a server's processes before, in and after a round, in bytes. */
export interface Memory {
  readonly before: number;
  readonly peak: number;
  readonly after: number;
}

/** All samples of one server in one scenario, by round. */
export interface Row {
  readonly name: string;
  readonly answer: Answer;
  readonly samples: readonly Sample[];
}

/**
 * Measures one scenario on all contestants, in turns. Rejects if one of them sends another response
 * than the scenario expects, before or during the measurement, or writes no access log.
 */
export async function measureScenario(
  scenario: Scenario,
  contestants: readonly Contestant[],
  conditions: Conditions,
): Promise<readonly Row[]> {
  const { effort } = conditions;
  const runs = [];
  for (const contestant of contestants) {
    const run = await prepare(scenario, contestant);
    await sample(run, effort.warmUpSeconds, conditions);
    runs.push({ ...run, samples: [] as Sample[] });
  }
  for (let round = 0; round < effort.rounds; round += 1) {
    for (const run of runs) {
      run.samples.push(await sample(run, scenario.seconds ?? effort.seconds, conditions));
    }
  }
  return runs.map(({ contestant: { name }, answer, samples }) => ({ name, answer, samples }));
}

/** A contestant that has sent the expected response once, and the request that it gets. */
interface Run {
  readonly scenario: Scenario;
  readonly contestant: Contestant;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly answer: Answer;
}

/** A websocket has no answer; the load checks its messages. */
const opened: Answer = { status: 101, contentBytes: 0, wireBytes: 0, etag: undefined };

async function prepare(scenario: Scenario, contestant: Contestant): Promise<Run> {
  const url = urlOf(scenario, contestant.server);
  const headers = {
    ...scenario.headers,
    ...(scenario.conditional && (await condition(url, scenario))),
  };
  if (isSocket(scenario.transport)) return { scenario, contestant, url, headers, answer: opened };
  // The load sends a browser's Accept too; it decides which error page a server sends.
  const answer = await requestOnce(url, { ...browserFields, ...headers });
  const { status, contentBytes = answer.contentBytes } = scenario;
  if (answer.status !== status || answer.contentBytes !== contentBytes) {
    throw new Error(
      `${contestant.name}, ${scenario.title}: answered ${answer.status} with ${answer.contentBytes} bytes, ` +
        `expected ${status} with ${contentBytes}`,
    );
  }
  return { scenario, contestant, url, headers, answer };
}

function urlOf(scenario: Scenario, { url, tlsUrl }: RunningServer): string {
  return (isEncrypted(scenario) ? (tlsUrl ?? '') : url) + scenario.path;
}

async function condition(
  url: string,
  { headers = {} }: Scenario,
): Promise<Readonly<Record<string, string>>> {
  const { etag } = await requestOnce(url, headers);
  if (etag === undefined) throw new Error(`${url} is answered without an ETag`);
  return { 'If-None-Match': etag };
}

async function sample(
  { scenario, contestant, url, headers, answer }: Run,
  seconds: number,
  { load, effort, core }: Conditions,
): Promise<Sample> {
  const { pids, accessLog } = contestant.server;
  const { connections = effort.connections, watchesMemory = false } = scenario;
  const clock = cpuClock(pids, core);
  const memory = watchesMemory ? await watchMemory(pids) : undefined;
  const before = await clock();
  const { transport = 'http', streams = 1 } = scenario;
  const result = await load.run({ url, headers, transport, streams, connections, seconds });
  const after = await clock();
  const each = after.server.map((us, at) => us - (before.server[at] ?? 0));
  const cpuUs = each.reduce((sum, one) => sum + one, 0);
  const what = `${contestant.name}, ${scenario.title}`;
  const requests = checkedRequests(result, { what, scenario, answer, connections });
  await emptyLog(what, accessLog);
  return {
    requestsPerSecond: requests / result.seconds,
    cpuUsPerRequest: cpuUs / requests,
    busiestUsPerRequest: Math.max(...each) / requests,
    p50Us: result.p50Us,
    p99Us: result.p99Us,
    busy: cpuUs / 1e6 / result.seconds,
    generatorBusy: result.cpuUs / 1e6 / result.seconds,
    clientUsPerRequest: result.cpuUs / requests,
    others:
      core === undefined
        ? undefined
        : Math.max(0, after.core - before.core - cpuUs) / (after.wall - before.wall),
    broken: result.broken,
    memory: await memory?.(),
  };
}

/**
 * The number of responses, with a fraction for those that the end of the round cut off. Throws if
 * there was none, one with an unexpected status, or another number of bytes than expected.
 */
function checkedRequests(
  { requests, bytes, refused }: LoadResult,
  {
    what,
    scenario,
    answer,
    connections,
  }: {
    readonly what: string;
    readonly scenario: Scenario;
    readonly answer: Answer;
    readonly connections: number;
  },
): number {
  if (requests === 0) throw new Error(`${what}: no request was answered`);
  if (refused !== (scenario.status >= 400 ? requests : 0)) {
    throw new Error(`${what}: ${refused} of ${requests} answers had a status of 400 or more`);
  }
  // wrk does not count the bytes of TLS, and HTTP/2 encodes heads differently.
  if (isEncrypted(scenario)) {
    if (bytes < requests * answer.contentBytes) throw new Error(`${what}: content is missing`);
    return requests;
  }
  // An error page may depend on the browser: nginx makes that of Chrome longer.
  if (scenario.status >= 400) return requests;
  const received = bytes / answer.wireBytes;
  const [least, most] = [(1 - wireTolerance) * requests, (1 + wireTolerance) * requests];
  if (received < least || received > most + connections) {
    throw new Error(`${what}: ${bytes / requests} bytes an answer, expected ${answer.wireBytes}`);
  }
  return Math.max(requests, received);
}

/**
 * Starts to measure memory of processes; returns a function that ends this and returns the figures.
 */
async function watchMemory(pids: readonly number[]): Promise<() => Promise<Memory>> {
  await resetPeaks(pids);
  const before = await residentBytes(pids);
  return async () => ({
    before,
    peak: await peakBytes(pids),
    after: await residentBytes(pids),
  });
}

/**
 * Returns a function that reads, in microseconds: CPU time of each process of the server, CPU time
 * used on its core, and the elapsed time.
 */
function cpuClock(pids: readonly number[], core: number | undefined) {
  return async () => ({
    server: await Promise.all(pids.map((pid) => cpuMicroseconds([pid]))),
    core: core === undefined ? 0 : await coreMicroseconds(core),
    wall: performance.now() * 1000,
  });
}

// A date or a count may be longer in one answer than in another.
const wireTolerance = 0.05;

/** Checks that a server writes its access log, and truncates it: five minutes of it fill a disk. */
async function emptyLog(what: string, file: string): Promise<void> {
  const { size } = await stat(file);
  if (size === 0) throw new Error(`${what}: the access log is empty`);
  await truncate(file);
}
