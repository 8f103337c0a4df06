import cluster from 'node:cluster';
import { existsSync, statSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { isServer } from '../../core/config/addresses.ts';
import type { Config, ConfigResult } from '../../core/config/config.ts';
import type { FolderSettings } from '../../core/config/read.ts';
import { configAfterReload } from '../../core/config/restart.ts';
import { watchConfig } from '../../core/config/watch.ts';
import { Notices } from '../../core/log/shared/entry.ts';
import type { Store } from '../../core/log/store.ts';
import { type Logs, createLogs, reasonOf, silentLog } from '../../core/report/log.ts';
import { Certificates } from '../../core/server/tls/certificates.ts';
import { now } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { startWaymark } from '../../main.ts';
import { LogRotation } from '../../modules/logs/log-rotation.ts';
import { openSyslog } from '../../modules/logs/syslog.ts';
import { type DefineCommand, type Terminal, UsageError } from '../command.ts';
import { stopGraceMs } from '../limits.ts';
import { openData } from '../open-data.ts';
import { configOption, readWholeConfig, requireConfigFile } from '../options.ts';
import type { ProcessState } from '../../core/background/tasks.ts';
import { backgroundTasks } from './assembly/background.ts';
import { type ConfigResults, configurationWatch } from './configuration-watch.ts';
import { makeFirstKey } from './assembly/first-start.ts';
import { prepareData } from './assembly/prepare-data.ts';
import { type RunningServer, startServing } from './assembly/serving-process.ts';
import { endAtOnce, endOnBug } from './end-at-once.ts';
import { type ListeningSocket, matchSockets, ownPath } from './inherited-sockets.ts';
import { LeaderChannel, sendToLeader } from './leader.ts';
import {
  type Inheritance,
  announceToPredecessor,
  closeUnused,
  handOver,
  receiveInheritance,
  reportToPredecessor,
} from './predecessor.ts';
import { ServiceManager } from './service-manager.ts';
import { announceStart, readsJournal } from './startup.ts';
import type { LeaderMessage } from './worker-messages.ts';
import { WorkerMetrics, WorkerTokens } from './worker-metrics.ts';
import { Workers } from './workers.ts';

/** How long a process that was replaced keeps its connections open. */
const drainMsMax = 600_000;

interface ServeOptions {
  readonly config?: string;
  readonly listen?: readonly string[];
  readonly proxy?: string;
}

/** `waymark serve`: runs the server until a signal, and reloads the ini file when it changes. */
export const defineServe: DefineCommand = (command, terminal) => {
  command
    .description(
      'Run the server. It reads the ini file again when it changes. With a folder or --proxy, ' +
        'serve files or an application without an ini file; page rules and keys are then stored ' +
        'in $XDG_DATA_HOME/waymark (~/.local/share/waymark).',
    )
    .argument('[dir]', 'a folder to serve')
    .option(
      '--proxy <url>',
      'an application (a URL, or unix:/run/app.sock) that answers for all paths; with dir, for ' +
        'those without a file',
      withScheme,
    )
    .option(
      '--listen <address>',
      'with dir or --proxy: an address to listen on (127.0.0.1:8080); may be repeated',
      append,
    )
    .addOption(configOption().conflicts(['listen', 'proxy']))
    .action(async (folder: string | undefined, options: ServeOptions) => {
      const file = servedOf(folder, options, terminal);
      terminal.exitCode = await serve(file, options, terminal);
    });
};

/** The ini file, the folder, or the URL of the application that is served. */
function servedOf(folder: string | undefined, options: ServeOptions, terminal: Terminal): string {
  if (folder !== undefined) return folderOf(folder, options);
  const { proxy } = options;
  if (proxy === undefined) return iniFileOf(options, terminal);
  if (isServer(proxy)) return proxy;
  throw new UsageError(notUrl(proxy));
}

/** Most applications listen without TLS on this machine: `localhost:3000` and `:3000` mean them. */
function withScheme(proxy: string): string {
  const [, host = '', port] = /^([\w.-]+|\[[\da-f:.]+\])?:(\d{1,5})$/i.exec(proxy) ?? [];
  return port === undefined ? proxy : `http://${host === '' ? '127.0.0.1' : host}:${port}`;
}

function notUrl(proxy: string): string {
  const shapes = '--proxy http://127.0.0.1:3000, or --proxy unix:/run/app.sock';
  return `--proxy ${proxy} is not a URL: write one such as ${shapes}.`;
}

function append(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

function iniFileOf({ config, listen }: ServeOptions, terminal: Terminal): string {
  const file = requireConfigFile(config, terminal);
  if (isFolder(file)) {
    throw new UsageError(`${file} is a folder. To serve its files: waymark serve ${file}`);
  }
  if (listen === undefined) return file;
  throw new UsageError(
    `--listen needs a folder or --proxy: with an ini file, set \`listen\` in [server] of ${file}.`,
  );
}

function folderOf(folder: string, { config, proxy }: ServeOptions): string {
  if (config !== undefined) throw new UsageError('give a folder or --config, not both.');
  if (proxy !== undefined && !isServer(proxy)) throw new UsageError(notUrl(proxy));
  if (isFolder(folder)) return folder;
  throw new UsageError(
    existsSync(folder)
      ? `${folder} is not a folder. To use it as ini file: waymark serve --config ${folder}`
      : `there is no folder ${folder}.`,
  );
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

async function serve(file: string, options: ServeOptions, terminal: Terminal): Promise<number> {
  endOnBug();
  if (cluster.isWorker) return serveAsWorker(file, terminal);
  const inheritance = receiveInheritance(process.env);
  try {
    const { listen = [], proxy } = options;
    const config = await readWholeConfig(file, terminal, { listen, proxy });
    const settings = { listen, proxy };
    const context = { ...serveContext(file, config, terminal), settings };
    const { log } = context.logs;
    if (isFolder(file) || isServer(file)) {
      const { data } = config.server;
      const behind = proxy === undefined ? '' : `, and ${proxy}`;
      const what = isServer(file) ? file : `the files of ${resolve(file)}${behind}`;
      log.info({}, `Serving ${what}. Page rules and keys are in ${data}.`);
    }
    const sockets = await closeUnused(inheritance, config.server.listen, log);
    const manager = new ServiceManager(terminal.env, log);
    const leading = { ...context, inheritance: { ...inheritance, sockets }, manager };
    const code = await serveUntilStopped(leading);
    await context.logs.end();
    return code;
  } catch (error) {
    if (inheritance.predecessor !== undefined) await reportToPredecessor(error);
    throw error;
  }
}

function serveContext(file: string, config: Config, terminal: Terminal): ServeContext {
  const { out, err } = terminal;
  const logs = createLogs({
    settings: config.log,
    destination: out,
    colour: out.isTTY === true && terminal.env.NO_COLOR === undefined,
    isJournal: readsJournal(terminal.env),
    openSyslog: (address, failed) => {
      return openSyslog(address, { origin: { host: hostname(), pid: process.pid }, now, failed });
    },
    now,
  });
  // If the reader of the log has closed the pipe, the server still runs.
  for (const stream of [out, err]) stream.on('error', () => undefined);
  return { file, config, terminal, logs };
}

interface ServeContext {
  /** The ini file, and its configuration at the start. */
  readonly file: string;
  readonly config: Config;
  readonly terminal: Terminal;
  readonly logs: Logs;
  /** What the command line says of a folder or an application. */
  readonly settings?: FolderSettings;
}

/** The context of the process that has the data folder. */
interface LeadingContext extends ServeContext {
  readonly inheritance: Inheritance;
  readonly manager: ServiceManager;
}

/** Serves; starts again with the new data if the log of the centre had to be copied again. */
async function serveUntilStopped(context: LeadingContext): Promise<number> {
  const { file, terminal, config, inheritance } = context;
  const lead = config.server.workers > 1 ? leadWorkers : serveAlone;
  const code = await lead(context);
  if (code !== 'copied') return code;
  // The stop has closed the sockets of systemd, which passes them to a new process only.
  if (inheritance.sockets.length > 0) return 1;
  return serveUntilStopped({ ...context, config: await readWholeConfig(file, terminal, {}) });
}

async function serveAlone(context: LeadingContext): Promise<number | 'copied'> {
  const { config, logs, manager } = context;
  const { predecessor, sockets: inherited } = context.inheritance;
  const signals = handleSignals(context);
  const tasks = backgroundTasks(logs);
  const given = { predecessor, inherited, tasks, signal: signals.stopping };
  const waymark = await startWaymark(config, logs, given);
  const rotation = rotateLogs(logs);
  const watch = Promise.withResolvers<undefined>();
  const reloading = tasks.start(
    configurationWatch({
      ...{ config, results: configChanges(context) },
      reload: (result) => {
        waymark.reload(result);
      },
      began: () => {
        watch.resolve(undefined);
      },
    }),
  );
  // The watch needs file descriptors, which visitors may take as soon as they know of the server.
  await Promise.race([watch.promise, reloading.over]);
  await announceStart(waymark, context);
  await announceServing(context);
  const end = await endOf(signals, context, waymark.copied);
  if (end === 'replaced') {
    manager.leave();
    await Promise.all([reloading.stop(), rotation.stop()]);
    await waymark.drain(drainMsMax, signals.stopping);
  } else {
    if (end === 'stopped') await manager.stopping();
    logStopping(logs);
  }
  const [{ cut }] = await Promise.all([waymark.stop(stopGraceMs), reloading.stop()]);
  await rotation.stop();
  signals.ignore();
  logStopped(logs, cut);
  return end === 'copied' ? end : 0;
}

/** The process that leads workers: it holds the data folder, and serves nothing itself. */
async function leadWorkers(context: LeadingContext): Promise<number | 'copied'> {
  const { config, logs, file, manager, inheritance } = context;
  const { predecessor, sockets } = inheritance;
  let current = config;
  let pending: readonly ConfigResult[] = [];
  const tasks = backgroundTasks(logs);
  // A worker that starts later gets the certificates that the others use, not the current files.
  const dependencies = { log: silentLog, now, tasks };
  const certificates = await Certificates.open(config.tls.certificates, undefined, dependencies);
  const workers = new Workers(['serve', '--config', file], { log: logs.log, tasks }, () => ({
    config: {
      ...current,
      tls: { ...current.tls, certificates: certificates.activeCertificates() },
    },
    pending,
    sockets,
  }));
  const signals = handleSignals(context, workers);
  const given = { predecessor, signal: signals.stopping, tasks };
  const prepared = await prepareData(config, logs, given).catch(async (error: unknown) => {
    await tasks.stop();
    throw error;
  });
  try {
    const addresses = await workers.start(config.server.workers);
    if (addresses === undefined) {
      if (predecessor !== undefined) await reportToPredecessor(workers.failure);
      return 1;
    }
    await prepared.takeOver();
    const isOwn = config.node.central === undefined;
    const firstKey = isOwn ? await makeFirstKey(prepared.store) : undefined;
    await announceStart({ addresses, firstKey }, context);
    const rotation = rotateLogs(logs, () => {
      workers.reopenLogs();
    });
    const reload = (result: ConfigResult): void => {
      if (result.ok) {
        current = configAfterReload(current, result.config);
        logs.configure(current.log);
      }
      pending = pendingAfter(pending, result, current);
      workers.reload(result);
    };
    const reloading = tasks.start(
      configurationWatch({ config, results: configChanges(context), reload }),
    );
    await announceServing(context);
    const end = await endOf(signals, context, prepared.copied);
    await Promise.all([reloading.stop(), rotation.stop()]);
    if (end === 'replaced') {
      manager.leave();
      prepared.handOver();
      await workers.drain(signals.stopping);
    }
    await stopWorkers(workers, end, context);
    signals.ignore();
    return end === 'copied' ? end : 0;
  } finally {
    await certificates.close();
    await prepared.release();
    await tasks.stop();
  }
}

/** The results of reading the ini file that a worker gets which starts after one more of them. */
function pendingAfter(
  before: readonly ConfigResult[],
  result: ConfigResult,
  current: Config,
): readonly ConfigResult[] {
  if (!result.ok) return [...before.filter(({ ok }) => ok), result];
  return isDeepStrictEqual(current, result.config) ? [] : [result];
}

/** Rotates the file of the access log in the process that leads, for all that write it. */
function rotateLogs(logs: Logs, reopenOthers?: () => void): LogRotation {
  return new LogRotation({
    settings: () => logs.settings(),
    reopen: () => {
      logs.reopen();
      reopenOthers?.();
    },
    failed: (error) => {
      const fields = { reason: reasonOf(error) };
      logs.log.error(fields, 'Cannot rotate the access log file. Its lines go on in it.');
    },
    now,
  });
}

async function stopWorkers(
  workers: Workers,
  end: End,
  { config, logs, manager, inheritance }: LeadingContext,
): Promise<void> {
  if (end === 'stopped') await manager.stopping();
  if (end !== 'replaced') logStopping(logs);
  logStopped(logs, await workers.stop());
  if (end !== 'replaced') await removeSockets(config, inheritance.sockets);
}

/** Removes the unix sockets that the workers have created. */
async function removeSockets(
  { server: { listen } }: Config,
  inherited: readonly ListeningSocket[],
): Promise<void> {
  const matched = await matchSockets(listen, inherited);
  for (const [at, where] of listen.entries()) {
    const path = ownPath(where, matched[at]);
    if (path !== undefined) await rm(path, { force: true });
  }
}

/** Tells the service manager and a process that this one replaces that it serves. */
async function announceServing({ manager, inheritance }: LeadingContext): Promise<void> {
  await manager.ready();
  if (inheritance.predecessor !== undefined) await announceToPredecessor();
}

/** Why a server ends: by a signal, because another process serves, or for a new copy of the log. */
type End = 'stopped' | 'replaced' | 'copied';

/** Waits for the end of the server; `copied` resolves when it has to start again. */
async function endOf(
  signals: Pick<Signals, 'first' | 'stopping'>,
  { config, logs }: ServeContext,
  copied: Promise<void>,
): Promise<End> {
  const replaced = Promise.withResolvers<End>();
  let isRestarting = false;
  const restart = (): void => {
    if (isRestarting) {
      logs.log.warn({}, 'SIGUSR2: this process has started another one already.');
      return;
    }
    isRestarting = true;
    void handOver(config, { log: logs.log, signal: signals.stopping }).then(({ state }) => {
      isRestarting = state === 'done';
      if (isRestarting) replaced.resolve('replaced');
    });
  };
  process.on('SIGUSR2', restart);
  const stopped = signals.first.then((): End => 'stopped');
  const again = copied.then((): End => 'copied');
  const end = await Promise.race([stopped, replaced.promise, again]);
  if (end !== 'replaced') process.off('SIGUSR2', restart);
  return end;
}

/** Serves as one of several processes on the same ports. */
async function serveAsWorker(file: string, terminal: Terminal): Promise<number> {
  const leader = new LeaderChannel();
  const context = serveContext(file, await leader.config(), terminal);
  const stopRequested = new Promise<void>((resolve) => {
    process.once('SIGTERM', resolve).on('message', (message: LeaderMessage) => {
      if (message.kind === 'stop') resolve();
    });
    // Without the leading process, nothing would ever stop the worker.
    process.once('disconnect', resolve);
  });
  // These signals may reach all processes; the leading one tells the workers what to do.
  for (const name of ['SIGINT', 'SIGHUP', 'SIGUSR2']) process.on(name, () => undefined);
  try {
    const { server, node, cluster: settings } = context.config;
    const notices = new Notices(context.logs.log);
    const cluster = { settings, log: silentLog, notices };
    const store = await openData(server.data, { cluster, node });
    try {
      await serveUntil(stopRequested, context, { store, notices, leader });
    } finally {
      await store.close();
    }
    return 0;
  } catch (error) {
    if (error instanceof Failure) sendToLeader({ kind: 'failed', message: error.message });
    throw error;
  } finally {
    // Node ends the process at once when the channel is closed.
    await context.logs.end();
    leader.close();
  }
}

async function serveUntil(
  stopRequested: Promise<void>,
  { config, logs, terminal }: ServeContext,
  {
    store,
    notices,
    leader,
  }: {
    readonly store: Store;
    readonly notices: Notices;
    readonly leader: LeaderChannel;
  },
): Promise<void> {
  const isPrimary = terminal.env.WAYMARK_WORKER === '1';
  let running: RunningServer | undefined = undefined;
  const drainRequested = Promise.withResolvers<true>();
  const tasks = backgroundTasks(logs);
  const own = (): ProcessState => running?.metrics() ?? { metrics: [], tasks: [] };
  const metrics = new WorkerMetrics({ send: sendToLeader, own });
  const tokens = new WorkerTokens(sendToLeader);
  process.on('message', (message: LeaderMessage) => {
    if (message.kind === 'reopen-logs') logs.reopen();
    if (message.kind === 'drain') drainRequested.resolve(true);
    if (message.kind === 'watch-access') {
      running?.liveAccess.setWatchedElsewhere(message.isWatching);
    }
    if (message.kind === 'access-lines') running?.liveAccess.receive(message.lines);
    if (message.kind === 'get-metrics' || message.kind === 'all-metrics') metrics.handle(message);
    if (message.kind === 'token') tokens.handle(message);
    if (message.kind === 'counted-token') tokens.handleCounted(message);
  });
  running = await startServing(config, logs, {
    store,
    notices,
    tasks,
    isPrimary,
    gather: () => metrics.gather(),
    takeToken: (order) => tokens.take(order),
    counter: tokens.counter,
    ticketKey: leader.ticketKey,
    accessPeers: {
      watch: (isWatching) => {
        sendToLeader({ kind: 'watch-access', isWatching });
      },
      send: (lines) => {
        sendToLeader({ kind: 'access-lines', lines });
      },
    },
    ports: { inherited: leader.sockets, isWorker: true },
  });
  sendToLeader({ kind: 'serving', addresses: running.addresses });
  const serving = running;
  const reloading = tasks.start(
    configurationWatch({
      config,
      results: () => leader.results(),
      reload: (result) => {
        serving.reload(result);
      },
    }),
  );
  const isDraining = await Promise.race([stopRequested, drainRequested.promise]);
  if (isDraining === true) await drainUntil(stopRequested, running);
  await leader.end();
  metrics.freeze();
  await reloading.over;
  const cut = await running.stop(stopGraceMs);
  sendToLeader({ kind: 'stopped', cut });
}

async function drainUntil(stopRequested: Promise<void>, running: RunningServer): Promise<void> {
  const stopped = new AbortController();
  void stopRequested.then(() => {
    stopped.abort();
  });
  await running.drain(drainMsMax, stopped.signal);
}

function logStopping({ log }: Logs): void {
  log.info({}, `Stopping: running requests have ${stopGraceMs / 1000} seconds to end.`);
}

function logStopped({ log }: Logs, cut: number): void {
  log.info(
    {},
    cut === 0 ? 'Stopped; all requests ended.' : `Stopped; ${cut} requests were cut off.`,
  );
}

/** The configuration after each change of the ini file; none without one. */
function configChanges({ file, terminal, settings = {} }: ServeContext): ConfigResults {
  if (isServer(file)) return () => [];
  const isServed = isFolder(file);
  const read = () =>
    terminal.readConfig(file, isServed ? { folder: settings } : { isReload: true });
  const ini = isServed ? undefined : file;
  return (given) => watchConfig({ ...given, file: ini, read, now });
}

/** The signals of a serving process. */
interface Signals {
  /** Resolves at the first signal to stop. */
  readonly first: Promise<unknown>;
  /** Aborts then. */
  readonly stopping: AbortSignal;
  /** Ignores further ones. */
  ignore(): void;
}

/**
 * Handles signals. The first SIGTERM or SIGINT stops gracefully, a second one at once. SIGHUP does
 * the same if the log goes to a terminal, which was closed then; otherwise, it reopens the log
 * file, as SIGUSR1 does.
 */
function handleSignals(
  { logs, terminal }: ServeContext,
  workers?: Pick<Workers, 'kill' | 'reopenLogs'>,
): Signals {
  const logsToTerminal = terminal.out.isTTY === true;
  const names = ['SIGTERM', 'SIGINT', ...(logsToTerminal ? ['SIGHUP'] : [])];
  const reopening = ['SIGUSR1', ...(logsToTerminal ? [] : ['SIGHUP'])];
  const reopen = (name: string): void => {
    const file = logs.reopen();
    workers?.reopenLogs();
    const what = file === undefined ? 'there is no [log] file to reopen' : `reopened ${file}`;
    logs.log.info({}, `${name}: ${what}. Changes of the ini file need no signal.`);
  };
  for (const name of reopening) process.on(name, reopen);
  const stopping = new AbortController();
  const stopAtOnce = (): void => {
    logs.access.flush();
    workers?.kill();
    endAtOnce();
  };
  const first = new Promise<void>((resolve) => {
    for (const name of names) process.once(name, resolve);
  }).then(() => {
    stopping.abort();
    for (const name of names) process.removeAllListeners(name).on(name, stopAtOnce);
  });
  return {
    first,
    stopping: stopping.signal,
    ignore() {
      for (const name of names) process.off(name, stopAtOnce);
      for (const name of reopening) process.off(name, reopen);
    },
  };
}
