import cluster from 'node:cluster';
import { existsSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { now } from '../model/clock.ts';
import type { Config, ConfigResult } from '../config/config.ts';
import { configInForce } from '../config/restart.ts';
import { watchConfig } from '../config/watch.ts';
import { openData } from '../data.ts';
import { makeFirstKey } from '../first-start.ts';
import { prepareData, startServing, startWaymark, type Running, type Waymark } from '../main.ts';
import { stopGraceMs } from './limits.ts';
import { createLogs, silentLog, type Logs } from '../observability/log.ts';
import { Certificates } from '../server/tls/certificates.ts';
import type { Store } from '../store/store.ts';
import { UsageError, type DefineCommand, type Terminal } from './command.ts';
import { greet } from './greeting.ts';
import { Leader, tellLeader } from './leader.ts';
import { configOption, readWholeConfig, requireConfigFile } from './options.ts';
import { MetricsOfAll } from './worker-metrics.ts';
import { Workers } from './workers.ts';
import type { LeaderMessage } from './worker-messages.ts';

interface ServeOptions {
  readonly config?: string;
  readonly listen?: readonly string[];
}

/** `waymark serve`: runs the server until a signal ends it, and follows changes of the ini file. */
export const defineServe: DefineCommand = (command, terminal) => {
  command
    .description(
      'Run the server. A change of the ini file is used as soon as it is saved. With a folder, ' +
        'serve its files without an ini file; page rules and keys are then kept in ' +
        '$XDG_DATA_HOME/waymark (~/.local/share/waymark).',
    )
    .argument('[dir]', 'a folder to serve')
    .option('--listen <address>', 'where to listen, with dir (127.0.0.1:8080); repeatable', append)
    .addOption(configOption().conflicts('listen'))
    .action(async (folder: string | undefined, options: ServeOptions) => {
      const file = folder === undefined ? iniFileOf(options, terminal) : folderOf(folder, options);
      terminal.exitCode = await serve(file, options, terminal);
    });
};

function append(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function iniFileOf({ config, listen }: ServeOptions, terminal: Terminal): string {
  const file = requireConfigFile(config, terminal);
  if (isFolder(file)) {
    throw new UsageError(`${file} is a folder. To serve its files: waymark serve ${file}`);
  }
  if (listen === undefined) return file;
  throw new UsageError(`--listen goes with a folder; ${file} has \`listen\` in [server].`);
}

function folderOf(folder: string, { config }: ServeOptions): string {
  if (config !== undefined) throw new UsageError('give a folder or --config, not both.');
  if (isFolder(folder)) return folder;
  throw new UsageError(
    existsSync(folder)
      ? `${folder} is no folder. To serve by an ini file: waymark serve --config ${folder}`
      : `there is no folder ${folder}.`,
  );
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

async function serve(
  file: string,
  { listen = [] }: ServeOptions,
  terminal: Terminal,
): Promise<number> {
  const leader = cluster.isWorker ? new Leader() : undefined;
  const config = await (leader?.config() ?? readWholeConfig(file, terminal, { listen }));
  const { out, err } = terminal;
  const logs = createLogs({
    settings: config.log,
    destination: out,
    colour: out.isTTY === true && terminal.env.NO_COLOR === undefined,
    now,
  });
  // The reader of the log may have gone; the site goes on.
  for (const stream of [out, err]) stream.on('error', () => undefined);
  const given = { file, config, terminal, logs };
  if (leader !== undefined) return serveAsWorker(given, leader);
  if (isFolder(file)) {
    const { data } = config.server;
    logs.log.info({}, `Serving the files of ${resolve(file)}. Page rules and keys are in ${data}.`);
  }
  return config.server.workers > 1 ? leadWorkers(given) : serveAlone(given);
}

interface Given {
  /** The ini file, and what it said when it was read. */
  readonly file: string;
  readonly config: Config;
  readonly terminal: Terminal;
  readonly logs: Logs;
}

async function serveAlone(given: Given): Promise<number> {
  const { config, logs } = given;
  const signals = listenToSignals(given);
  const waymark = await startWaymark(config, logs);
  await greet(waymark, given);
  const ended = new AbortController();
  const following = follow(iniFile(given, ended.signal), waymark, logs);
  await signals.first;
  logs.log.info({}, `Stopping: requests in flight have ${stopGraceMs / 1000} seconds.`);
  ended.abort();
  const { cut } = await waymark.stop(stopGraceMs);
  await following;
  signals.ignore();
  sayStopped(logs, cut);
  return 0;
}

/** The process that leads several: it keeps the data folder, and answers nothing itself. */
async function leadWorkers(given: Given): Promise<number> {
  const { config, logs, file } = given;
  let inForce = config;
  let pending: readonly ConfigResult[] = [];
  // A worker that is started later gets what the others use, whatever the files have become.
  const surroundings = { log: silentLog, now };
  const certificates = await Certificates.open(config.tls.certificates, undefined, surroundings);
  const workers = new Workers(['serve', '--config', file], logs.log, () => ({
    inForce: { ...inForce, tls: { ...inForce.tls, certificates: certificates.inUse() } },
    pending,
  }));
  const signals = listenToSignals(given, {
    kill: () => {
      workers.kill();
    },
    reopenLogs: () => {
      workers.reopenLogs();
    },
  });
  const prepared = await prepareData(config, logs).catch(async (error: unknown) => {
    await certificates.close();
    throw error;
  });
  try {
    const addresses = await workers.start(config.server.workers);
    if (addresses === undefined) return 1;
    await greet({ addresses, firstKey: await makeFirstKey(prepared.store) }, given);
    const ended = new AbortController();
    const reload = (result: ConfigResult): void => {
      if (result.ok) {
        inForce = configInForce(inForce, result.config);
        logs.configure(inForce.log);
        pending = isDeepStrictEqual(inForce, result.config) ? [] : [result];
      } else {
        pending = [...pending.filter(({ ok }) => ok), result];
      }
      workers.reload(result);
    };
    const following = follow(iniFile(given, ended.signal), { reload }, logs);
    await signals.first;
    ended.abort();
    await following;
    logs.log.info({}, `Stopping: requests in flight have ${stopGraceMs / 1000} seconds.`);
    sayStopped(logs, await workers.stop());
    signals.ignore();
    return 0;
  } finally {
    await certificates.close();
    await prepared.release();
  }
}

/** One of several processes on the same ports. */
async function serveAsWorker(given: Given, leader: Leader): Promise<number> {
  const asked = new Promise<void>((resolve) => {
    process.once('SIGTERM', resolve).on('message', (message: LeaderMessage) => {
      if (message.kind === 'stop') resolve();
    });
    // Without the process that leads it, nobody would ever end it.
    process.once('disconnect', resolve);
  });
  // A terminal sends them to all processes; the one that leads them passes on what they mean.
  for (const name of ['SIGINT', 'SIGHUP']) process.on(name, () => undefined);
  try {
    const store = await openData(given.config.server.data);
    try {
      await serveUntil(asked, given, { store, leader });
    } finally {
      await store.close();
    }
    return 0;
  } finally {
    // An open channel would keep the process.
    if (process.connected) process.disconnect?.();
  }
}

async function serveUntil(
  asked: Promise<void>,
  { config, logs, terminal }: Given,
  { store, leader }: { readonly store: Store; readonly leader: Leader },
): Promise<void> {
  const isPrimary = terminal.env.WAYMARK_WORKER === '1';
  let running: Running | undefined = undefined;
  const metrics = new MetricsOfAll({ tell: tellLeader, own: () => running?.metrics() ?? [] });
  process.on('message', (message: LeaderMessage) => {
    if (message.kind === 'reopen-logs') logs.reopen();
    if (message.kind === 'tell-metrics' || message.kind === 'all-metrics') metrics.take(message);
  });
  running = await startServing(config, logs, {
    store,
    isPrimary,
    gather: () => metrics.gather(),
  });
  tellLeader({ kind: 'serving', addresses: running.addresses });
  const following = follow(leader.results(), running, logs);
  await asked;
  await leader.end();
  const cut = await running.stop(stopGraceMs);
  await following;
  tellLeader({ kind: 'stopped', cut });
}

function sayStopped({ log }: Logs, cut: number): void {
  log.info({}, cut === 0 ? 'Stopped, nothing was cut off.' : `Stopped; ${cut} were cut off.`);
}

type ConfigResults = AsyncIterable<ConfigResult> | Iterable<ConfigResult>;

/** What the ini file comes to with each change, until the signal aborts; a folder has none. */
function iniFile({ file, config, terminal }: Given, signal: AbortSignal): ConfigResults {
  if (isFolder(file)) return [];
  const read = () => terminal.readConfig(file, { isReload: true });
  return watchConfig({ file, current: { ok: true, config }, read, now, signal });
}

/** Takes over what the ini file comes to. */
async function follow(
  results: ConfigResults,
  serving: Pick<Waymark, 'reload'>,
  logs: Logs,
): Promise<void> {
  try {
    for await (const result of results) serving.reload(result);
  } catch (error) {
    logs.log.error({ err: error }, 'The ini file is no longer watched; restart to read it again.');
  }
}

/**
 * The first SIGTERM or SIGINT ends gracefully, a second one at once; and so does SIGHUP when the
 * terminal that shows the log has gone. From elsewhere it opens the log file
 * again, as SIGUSR1 does.
 */
function listenToSignals(
  { logs, terminal }: Given,
  workers?: { readonly kill: () => void; readonly reopenLogs: () => void },
): { readonly first: Promise<unknown>; ignore(): void } {
  const isShown = terminal.out.isTTY === true;
  const names = ['SIGTERM', 'SIGINT', ...(isShown ? ['SIGHUP'] : [])];
  for (const name of ['SIGUSR1', ...(isShown ? [] : ['SIGHUP'])]) {
    process.on(name, () => {
      const file = logs.reopen();
      workers?.reopenLogs();
      const what =
        file === undefined ? 'there is no [log] file to open again' : `${file} is reopened`;
      logs.log.info({}, `${name}: ${what}. The ini file needs no signal.`);
    });
  }
  const again = (): never => {
    logs.access.flush();
    workers?.kill();
    process.exit(1);
  };
  const first = new Promise<void>((resolve) => {
    for (const name of names) process.once(name, resolve);
  }).then(() => {
    for (const name of names) process.removeAllListeners(name).on(name, again);
  });
  return {
    first,
    ignore() {
      for (const name of names) process.off(name, again);
    },
  };
}
