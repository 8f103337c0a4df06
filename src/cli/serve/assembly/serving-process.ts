import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type {
  BackgroundTasks,
  ProcessState,
  RunningTask,
  Task,
} from '../../../core/background/tasks.ts';
import type { Config, ConfigResult } from '../../../core/config/config.ts';
import type { ConfigProblem } from '../../../core/config/problem.ts';
import { configAfterReload, restartNeeded } from '../../../core/config/restart.ts';
import { ineffectiveSettings } from '../../../core/config/warnings.ts';
import {
  RateCounts,
  type TakeToken,
  TokenBuckets,
  type TokenCounter,
} from '../../../core/fair/token-buckets.ts';
import { customModules } from '../../../core/custom/custom-module.ts';
import { OpenModules } from '../../../core/loader.ts';
import type { Emit } from '../../../core/log/events/emit.ts';
import type { Notice, Notices } from '../../../core/log/shared/entry.ts';
import type { Store } from '../../../core/log/store.ts';
import { createWrongKeys } from '../../../core/operations/keys/authenticate.ts';
import { createKeyRates } from '../../../core/operations/keys/key-rates.ts';
import { ServerMetrics } from '../../../core/pipeline/record/server-metrics.ts';
import { type Log, type Logs, silentLog } from '../../../core/report/log.ts';
import { type MemoryUse, memoryMetrics, memoryUse } from '../../../core/report/memory-use.ts';
import type { GatherMetrics, Metric } from '../../../core/report/metrics.ts';
import { modules } from '../../../modules.ts';
import { type PortOptions, type Server, startServer } from '../../../core/server/server.ts';
import { TicketKey } from '../../../core/server/tls/ticket-key.ts';
import { type OwnNames, ownNamesOf } from '../../../core/outbound/own-names.ts';
import { type Tls, openTls } from '../../../core/server/tls/tls.ts';
import { newId, now, uptimeMs } from '../../../core/values/clock.ts';
import { Failure } from '../../../core/values/failure.ts';
import { loadForVisitors } from '../../../core/values/lazy-packages.ts';
import { packageFolder, version } from '../../../core/values/version.ts';
import { closedRuleWarnings } from '../../../modules/access/narrow-paths.ts';
import { Passwords } from '../../../modules/access/passwords.ts';
import { AssetFiles } from '../../../modules/assets/asset-files.ts';
import { assetKeeping } from '../../../modules/assets/asset-keeper.ts';
import { createAssetPages } from '../../../modules/assets/asset-pages.ts';
import {
  assetFollowing,
  createMissingFiles,
  fromCentre,
  fromCluster,
} from '../../../modules/assets/missing-files.ts';
import { createVariants } from '../../../modules/assets/variants.ts';
import { VisitCounter } from '../../../modules/breadcrumbs/visit-counter.ts';
import type { CacheStore } from '../../../modules/cache/cache-store.ts';
import { openCacheStore } from '../../../modules/cache/open-cache-store.ts';
import { applyPurge } from '../../../modules/cache/operations.ts';
import { type Compressors, createCompressors } from '../../../modules/compression/compressors.ts';
import { type ConsoleFiles, loadConsoleFiles } from '../../../modules/console/console-files.ts';
import {
  type PublicFiles,
  createPublicFileReplies,
  loadPublicFiles,
} from '../../../modules/console/public-files.ts';
import { scheduledPublishing } from '../../../modules/drafts/operations/scheduled-publisher.ts';
import { TableHosts } from '../../../modules/hosts/hosts.ts';
import { KeyUseRecorder } from '../../../modules/keys/key-use-recorder.ts';
import { SignedInWatch } from '../../../modules/login/signed-in-watch.ts';
import { createCentralClient } from '../../../modules/nodes/central-client.ts';
import { nodeMetrics, nodeWatching } from '../../../modules/nodes/node-watch.ts';
import { SourceHealth } from '../../../modules/proxy/source-health.ts';
import { ServerPlaces } from '../../../core/outbound/server-places.ts';
import { SourceStatistics } from '../../../modules/proxy/source-statistics.ts';
import {
  type RenderedPages,
  createRenderedPages,
} from '../../../modules/rendering/rendered-pages.ts';
import { type Rendering, loadRendering } from '../../../modules/rendering/shared-rendering.ts';
import { TemplateThreads } from '../../../modules/rendering/template-threads.ts';
import { createStoredPages } from '../../../modules/rules/pages/stored-pages.ts';
import { createRuleCache, ruleStoreOf } from '../../../modules/rules/rule-cache.ts';
import { type AccessPeers, LiveAccess } from '../../../modules/status/live-access.ts';
import { seriesChangedMs, seriesRecording } from '../../../modules/status/series-recorder.ts';
import type {
  CertificateState,
  ConfigurationState,
} from '../../../modules/status/server-status.ts';
import { StateWatcher, stateVersions } from '../../../modules/status/state-watcher.ts';
import { indexBuilding } from '../../../modules/tables/log/index-build.ts';
import { writeConfiguredTables } from '../../../modules/tables/operations/configured-tables.ts';
import { type RowChecks, createRowChecks } from '../../../modules/tables/operations/row-checks.ts';
import { createAnonymousWrites } from '../../../modules/tables/rows/anonymous-writes.ts';
import { RequestVisits } from '../../../modules/visits/request-visits.ts';
import { VisitDatabase } from '../../../modules/visits/visit-database.ts';
import type { Deliverer } from '../../../modules/webhooks/deliverer.ts';
import { writeInThread } from '../write-thread.ts';
import { backgroundTasks, createDeliverer, emitFor } from './background.ts';
import { type AppInstance, compose } from './compose.ts';
import type { AppContext, CallerContext, ContentContext, SourceContext } from './context.ts';
import { hostKeyFiles } from './operations.ts';
import { rowLogPart } from '../../../modules/nodes/log/open-row-log.ts';

/** How long attempts in flight may last after another process has replaced this one. */
const deliveryHandOverMs = 10_000;

const publicFolder = join(packageFolder, 'public');

/** The server of this process. */
export interface RunningServer {
  readonly addresses: readonly string[];
  /** See Waymark.reload. */
  reload(result: ConfigResult): void;
  /** The current metrics of this process. */
  metrics(): ProcessState;
  /** The access log for clients that read it live. */
  readonly liveAccess: LiveAccess;
  /**
   * Leaves new connections, and all work in the background, to another process that has the
   * listening sockets. Resolves when all connections are closed, after `graceMs`, or when the
   * signal aborts; `stop` follows.
   */
  drain(graceMs: number, signal: AbortSignal): Promise<void>;
  /** As Waymark.stop, but leaves the store open. */
  stop(graceMs: number): Promise<number>;
}

/** How a process serves, besides the configuration. */
export interface ServingOptions {
  readonly store: Store;
  readonly notices?: Notices | undefined;
  /** The work in the background of this process; it stops with the server. */
  readonly tasks?: BackgroundTasks;
  readonly isPrimary: boolean;
  readonly gather?: () => Promise<readonly ProcessState[]>;
  /** The other processes that share the ports. */
  readonly accessPeers?: AccessPeers;
  /** Takes tokens of rates from the buckets of all processes; by default, this is the only one. */
  readonly takeToken?: TakeToken;
  /** Counts wrong keys and the like for all processes; by default, this is the only one. */
  readonly counter?: TokenCounter;
  /** The key of session tickets that all processes share; by default, this process has its own. */
  readonly ticketKey?: TicketKey;
  /** The built documentation; by default that of the package. */
  readonly docsFolder?: string;
  readonly ports?: PortOptions;
}

/**
 * Listens on the ports with an open store. Of several processes on the same ports, the primary one
 * logs what concerns all of them, and orders certificates; `gather` collects the metrics of all.
 * Rejects with `unavailable` if a port cannot be opened.
 */
export async function startServing(
  config: Config,
  logs: Logs,
  given: ServingOptions,
): Promise<RunningServer> {
  const publicFiles = await loadPublicFiles(publicFolder);
  const consoleFiles = await loadConsoleFiles(join(publicFolder, 'console'));
  const rendering = await loadRendering(publicFiles);
  const files = { publicFiles, consoleFiles, rendering };
  const { store } = given;
  const emit = emitFor(config, logs, store);
  let running: ServingProcess | undefined = undefined;
  const opened = await OpenModules.open([...modules, ...(await customModules(config))], {
    ...{ store, emit, version, newId, now, log: logs.log, random: Math.random },
    folders: { public: publicFolder, docs: given.docsFolder ?? join(publicFolder, 'docs') },
    config: () => running?.config ?? config,
    gatherMetrics: async () => (await running?.gather()) ?? [],
  });
  running = new ServingProcess({ config, logs, emit, modules: opened, ...files, ...given });
  try {
    await running.listen(given);
    await given.notices?.applyBy((notice) => running.apply(notice));
    return running;
  } catch (error) {
    await running.stop(0);
    throw error;
  }
}

const monotonicMs = (): number => performance.now();

/** How tokens of rates are taken: elsewhere, or from buckets of this process. */
function tokensOf(elsewhere: TakeToken | undefined): Omit<CallerContext['rates'], 'counts'> {
  if (elsewhere !== undefined) return { take: elsewhere, isElsewhere: true };
  const buckets = new TokenBuckets({ monotonicMs });
  return { take: (order) => buckets.take(order), isElsewhere: false };
}

/** The names of the server in the requests that it sends. */
function namesInVia({ node }: Config, store: Store): OwnNames {
  return ownNamesOf({ log: store.part(rowLogPart).identity().id, node: node.name });
}

/** Makes the function that makes rendered pages, each with a cache of its own. */
function renderedPagesMaker({
  thread,
  rendering: { shared },
  compressors: { pages: compressor },
  logs: { log },
}: {
  readonly thread: TemplateThreads;
  readonly rendering: Rendering;
  readonly compressors: Compressors;
  readonly logs: Logs;
}): () => RenderedPages {
  return () => createRenderedPages({ thread, shared, compressor, now, log });
}

/** The files of assets in the data folder, and the replies with them. */
function assetsOf(
  { server: { data }, asset: { variantsBytesMax: bytesMax }, node }: Config,
  { compressors, log, store }: { compressors: Compressors; log: Log; store: Store },
): Pick<ContentContext, 'assetFiles' | 'assetPages' | 'variants' | 'missingFiles'> {
  const assetFiles = new AssetFiles(data);
  const variants = createVariants({ files: assetFiles, bytesMax, now, log });
  const { central, keyFile = '' } = node;
  const apikey = async (): Promise<string> => (await readFile(keyFile, 'utf8')).trim();
  const origin =
    central === undefined
      ? store.shared && fromCluster(store.shared.files)
      : fromCentre(createCentralClient(central, store), apikey);
  const missing = origin && createMissingFiles({ files: assetFiles, origin, log });
  const assetPages = createAssetPages(assetFiles, { compressors, variants, missing });
  return { assetFiles, assetPages, variants, missingFiles: missing };
}

class ServingProcess implements RunningServer {
  readonly #context: AppContext;
  readonly #isPrimary: boolean;
  readonly #templates: TemplateThreads;
  readonly #answers: CacheStore;
  readonly #visitDatabase: VisitDatabase;
  readonly #visits: VisitCounter;
  readonly #requestVisits: RequestVisits;
  readonly #keyUses: KeyUseRecorder;
  /** Instances of previous configurations with running requests. */
  readonly #previous = new Set<AppInstance>();
  readonly #metrics: ServerMetrics;
  readonly liveAccess: LiveAccess;
  readonly #deliverer: Deliverer;
  readonly #rowChecks: RowChecks;
  readonly #rateCounts = new RateCounts();
  /** The definitions of tables that reloads write. */
  #tableWrites: Promise<void> = Promise.resolve();
  readonly #hosts: TableHosts;
  /** The tasks that run while this process serves, or until another process takes them over. */
  readonly #background: readonly Task[];
  #running: readonly RunningTask[] = [];
  #ofConfiguration: Promise<readonly RunningTask[]> = Promise.resolve([]);
  #isStopping = false;
  #instance: AppInstance;
  #server: Server | undefined;
  #tls: Tls | undefined;
  #tlsPort: string | undefined;
  readonly #signedIn: SignedInWatch;
  #since = new Date(now()).toISOString();
  #restartNeeded: readonly string[] = [];
  #problems: readonly ConfigProblem[] = [];

  constructor({
    config,
    logs,
    store,
    publicFiles,
    rendering,
    consoleFiles,
    modules,
    emit,
    isPrimary,
    gather,
    accessPeers: peers,
    takeToken,
    counter = new TokenBuckets({ monotonicMs }),
    tasks = backgroundTasks(logs),
  }: Parameters<typeof startServing>[2] & {
    readonly config: Config;
    readonly logs: Logs;
    readonly publicFiles: PublicFiles;
    readonly rendering: Rendering;
    readonly consoleFiles: ConsoleFiles;
    readonly modules: OpenModules;
    readonly emit: Emit;
  }) {
    this.#isPrimary = isPrimary;
    this.#metrics = new ServerMetrics({ store, gather, tasks, server: () => this.#server });
    this.liveAccess = new LiveAccess({ now, ...(peers && { peers }) });
    const compressors = createCompressors();
    this.#templates = new TemplateThreads(rendering.modules);
    this.#answers = openCacheStore(config, { now, uptimeMs, log: logs.log });
    this.#visitDatabase = new VisitDatabase(config.server.data);
    const counted = { retentionMs: config.stats.retentionMs, now, log: logs.log };
    this.#visits = new VisitCounter({ ...counted, table: this.#visitDatabase.breadcrumbs });
    this.#requestVisits = new RequestVisits(this.#visitDatabase, counted);
    this.#keyUses = new KeyUseRecorder({ store, now, log: logs.log });
    const thread = this.#templates;
    const newRenderedPages = renderedPagesMaker({ thread, rendering, compressors, logs });
    this.#signedIn = this.#watchSignedIn(logs);
    this.#context = {
      ...{ store, logs, version, tasks, modules, emit },
      ownNames: namesInVia(config, store),
      content: {
        ...{ publicFiles, consoleFiles, compressors },
        rules: createRuleCache(ruleStoreOf(store), now),
        ownFiles: createPublicFileReplies(compressors.pages),
        storedPages: createStoredPages(compressors),
        ...assetsOf(config, { compressors, log: logs.log, store }),
        renderedPages: newRenderedPages(),
        newRenderedPages,
      },
      sources: { answers: this.#answers, ...this.#sources(logs) },
      callers: {
        wrongKeys: createWrongKeys(counter),
        passwords: new Passwords({ monotonicMs, counter }),
        keyRates: createKeyRates(counter),
        rates: { ...tokensOf(takeToken), counts: this.#rateCounts },
        ...{ keyUses: this.#keyUses, visits: this.#visits, requestVisits: this.#requestVisits },
        anonymousWrites: createAnonymousWrites(counter),
      },
      state: this.#state(config, store),
      port: { tls: () => this.#tls, tlsPort: () => this.#tlsPort },
      signedIn: this.#signedIn,
    };
    this.#instance = compose(config, this.#context);
    this.#deliverer = createDeliverer(config.server.data, this.#context, () => this.#instance);
    this.#rowChecks = createRowChecks({ store, log: logs.log });
    this.#hosts = this.#tableHosts();
    this.#background = isPrimary ? this.#primaryTasks(config) : [];
    this.#addMetrics();
  }

  #watchSignedIn({ log }: Logs): SignedInWatch {
    return new SignedInWatch({ serving: () => this.#instance.serving, log });
  }

  #state({ server: { data } }: Config, store: Store): AppContext['state'] {
    return {
      started: this.#since,
      liveAccess: this.liveAccess,
      stateWatcher: this.#stateWatcher(data, store),
      status: () => this.#configurationState(),
      metricsText: () => this.#metrics.text(),
      gatherMetrics: () => this.#metrics.gather(),
      certificates: () => this.#certificates(),
      memory: () => this.#memory(),
      hostStates: () => this.#hosts.states(),
      rowChecks: () => this.#rowChecks.progress(),
      tasks: () => this.#metrics.tasks(),
    };
  }

  /** The configuration in use. */
  get config(): Config {
    return this.#instance.serving.config;
  }

  /** The metrics of all processes of the server. */
  gather(): ReturnType<GatherMetrics> {
    return this.#metrics.gather();
  }

  get addresses(): readonly string[] {
    return this.#server?.addresses ?? [];
  }

  async listen({
    ports,
    ticketKey = this.#ownTicketKey(),
  }: Pick<ServingOptions, 'ports' | 'ticketKey'>): Promise<void> {
    const { store, logs, tasks } = this.#context;
    const { log, access } = logs;
    const { config } = this.#instance.serving;
    // A process that replaces another one gets its visitors at once.
    if (ports?.inherited !== undefined && ports.inherited.length > 0) loadForVisitors();
    const { shared } = store;
    const tls = await openTls({
      ...{ config, log, tasks, shared, ticketKey, via: this.#context.ownNames.ofNode },
      isPrimary: this.#isPrimary,
    });
    this.#tls = tls;
    this.#server = await startServer(
      {
        serving: () => this.#instance.serving,
        tls,
        listensTls: (port) => {
          this.#tlsPort = port;
        },
        log,
        access,
        liveAccess: this.liveAccess,
        metrics: this.#metrics.requests,
        visits: this.#requestVisits,
        newId,
        now,
        monotonicMs,
      },
      config.server.listen,
      ports,
    );
    this.#warnOfIneffective(config);
    this.#deliverer.start();
    this.#running = this.#background.map((task) => tasks.start(task));
    this.#startTasks();
    tls.start();
    this.#visits.start();
    this.#requestVisits.start();
    this.#checkPages();
  }

  /** Starts the tasks of the configuration in use, once those of the former one have stopped. */
  #startTasks(): void {
    if (!this.#isPrimary) return;
    const { tasks } = this.#instance;
    const before = this.#ofConfiguration;
    this.#ofConfiguration = before.then(async (running) => {
      await Promise.all(running.map((task) => task.stop()));
      return this.#isStopping ? [] : tasks.map((task) => this.#context.tasks.start(task));
    });
  }

  /** Stops the work in the background that another process takes over. */
  async #stopTasks(): Promise<void> {
    this.#isStopping = true;
    const running = [...this.#running, ...(await this.#ofConfiguration)];
    await Promise.all(running.map((task) => task.stop()));
  }

  #ownTicketKey(): TicketKey {
    const key = new TicketKey();
    this.#context.tasks.start(key.rotation());
    return key;
  }

  /** Does what a notice of the cluster says. */
  apply(notice: Notice): Promise<void> {
    return applyPurge(this.#answers, notice);
  }

  /** The work that one process of a server does for all of them. */
  #primaryTasks({ node, cluster, server: { data } }: Config): readonly Task[] {
    const { store, emit, logs } = this.#context;
    const { log } = logs;
    const drafts = scheduledPublishing({
      ...{ store, newId, now, log },
      review: () => this.#instance.serving.config.review,
      anonymous: () => this.#instance.serving.config.auth.anonymous,
      publishInThread: (request) => writeInThread({ folder: data, cluster }, 'publish', request),
    });
    const { assetFiles: files, missingFiles: missing } = this.#context.content;
    // A node that follows a centre gets the changes of these with its log.
    const ownLogTasks =
      node.central === undefined ? [this.#rowChecks.task, this.#hosts.task, drafts] : [];
    return [
      ...ownLogTasks,
      indexBuilding({ store, log }),
      ...(missing === undefined ? [] : [assetFollowing({ files, missing, store, log })]),
      assetKeeping({
        ...{ files, store, now, log },
        retentionMs: () => this.#instance.serving.config.asset.retentionMs,
      }),
      seriesRecording({ folder: data, gather: () => this.#metrics.gather(), now }),
      // Only a centre has followers; each machine of a cluster knows the others.
      ...nodeWatching({ store, emit, node, version, now, log }),
    ];
  }

  /** Checks all pages of the data file in the background; the start checks only a part of them. */
  #checkPages(): void {
    const { store, logs } = this.#context;
    store.checkPages().catch((error: unknown) => {
      const isDamage = error instanceof Failure && error.code === 'unavailable';
      if (isDamage) logs.log.error({}, `${error.message}. The server refuses changes until then.`);
      else logs.log.error({ err: error }, 'Cannot check the data file.');
    });
  }

  metrics(): ProcessState {
    return this.#metrics.own();
  }

  reload(result: ConfigResult): void {
    const { logs } = this.#context;
    const log = this.#isPrimary ? logs.log : silentLog;
    if (!result.ok) {
      this.#problems = result.problems;
      for (const { file, line, message } of result.problems) {
        log.error({ file, line }, `The server ignores the changed ini file: ${message}`);
      }
      return;
    }
    const previous = this.#instance;
    const { config } = previous.serving;
    this.#restartNeeded = restartNeeded(config, result.config);
    this.#problems = [];
    this.#since = new Date(now()).toISOString();
    const next = configAfterReload(config, result.config);
    this.#instance = compose(next, this.#context);
    logs.configure(next.log);
    this.#startTasks();
    const { store } = this.#context;
    if (next.node.central === undefined) {
      // One reload after the other: the newest definition is written last.
      const write = () => writeConfiguredTables(next, { store, newId, log });
      this.#tableWrites = this.#tableWrites.then(write);
    }
    this.#answers.limit(next.fetch.cacheBytesMax);
    this.#context.content.variants.limit(next.asset.variantsBytesMax);
    this.#visits.retain(next.stats.retentionMs);
    this.#requestVisits.retain(next.stats.retentionMs);
    this.#tls?.reload(next);
    log.info({}, 'The server uses the changed ini file.');
    for (const name of this.#restartNeeded)
      log.warn({}, `${name} has changed: restart the server to use it.`);
    this.#warnOfIneffective(next);
    this.#previous.add(previous);
    const failed = (error: unknown): void => {
      logs.log.error({ err: error }, 'Cannot close the previous configuration.');
    };
    void previous.close().then(() => this.#previous.delete(previous), failed);
  }

  #warnOfIneffective(config: Config): void {
    if (!this.#isPrimary) return;
    const { store, logs } = this.#context;
    const closed = closedRuleWarnings(config.access, store);
    for (const warning of [...ineffectiveSettings(config), ...closed]) logs.log.warn({}, warning);
  }

  async drain(graceMs: number, signal: AbortSignal): Promise<void> {
    // The other process delivers as soon as the attempts in flight have ended.
    const delivered = this.#deliverer.stop(deliveryHandOverMs);
    await this.#stopTasks();
    await Promise.all([this.#server?.drain(graceMs, signal), this.#tls?.stopOrders(), delivered]);
  }

  async stop(graceMs: number): Promise<number> {
    // At once: the log says that the server stops.
    const stopped = this.#server?.stop(graceMs);
    const background = Promise.all([
      this.#deliverer.stop(graceMs),
      this.#stopTasks(),
      this.#tableWrites,
    ]);
    const { cut } = (await stopped) ?? { cut: 0 };
    this.#signedIn.stop();
    await this.#tls?.close();
    await background;
    await this.#context.tasks.stop();
    // Content that still arrives is only for the cache, which is closed next.
    for (const one of [this.#instance, ...this.#previous]) one.cut();
    await this.#instance.close();
    await Promise.all([this.#visits.close(), this.#requestVisits.close()]);
    await this.#visitDatabase.close();
    await this.#keyUses.close();
    await this.#templates.close();
    this.#context.content.compressors.pages.close();
    await this.#answers.close();
    await this.#context.modules.close();
    this.#context.logs.access.flush();
    return cut;
  }

  #tableHosts(): TableHosts {
    const { store, logs, tasks } = this.#context;
    return new TableHosts({
      ...{ store, newId, now, tasks, log: logs.log },
      client: () => this.#instance.hosts,
      keyFileOf: (table) => hostKeyFiles(this.#instance.serving.config)(table),
    });
  }

  #addMetrics(): void {
    this.#metrics.add(() => this.#deliverer.metrics());
    this.#metrics.add(() => this.#context.modules.reports().flatMap(({ metrics = [] }) => metrics));
    this.#metrics.add(() => this.#context.tasks.metrics());
    this.#metrics.add(() => this.#rateCounts.metrics());
    this.#metrics.add(() => [...this.#answers.metrics(), ...this.#visits.metrics()]);
    this.#metrics.add(() => this.#requestVisits.metrics());
    this.#metrics.add(() => [
      ...this.#context.callers.anonymousWrites.metrics(),
      ...(this.#tls?.metrics() ?? []),
    ]);
    this.#metrics.add(() => [...memoryMetrics(this.#memory()), ...this.#nodeMetrics()]);
  }

  /** The state of the sources in this process. */
  #sources({ log }: Logs): Omit<SourceContext, 'answers'> {
    const health = new SourceHealth({ monotonicMs, log });
    const statistics = new SourceStatistics({ now });
    this.#metrics.add(() => [...health.metrics(), ...statistics.metrics()]);
    return { health, statistics, places: new ServerPlaces() };
  }

  #nodeMetrics(): readonly Metric[] {
    const { config } = this.#instance.serving;
    return this.#isPrimary ? nodeMetrics(config.node, this.#context.store) : [];
  }

  #stateWatcher(folder: string, store: Store): StateWatcher {
    return new StateWatcher(
      stateVersions({
        ...{ store, now, cache: this.#answers },
        gatherMetrics: () => this.#metrics.gather(),
        status: () => this.#configurationState(),
        certificates: () => this.#certificates(),
        seriesChangedMs: () => seriesChangedMs(folder),
      }),
    );
  }

  async #certificates(): Promise<readonly CertificateState[]> {
    return (await this.#tls?.certificates.states()) ?? [];
  }

  #memory(): MemoryUse {
    const { store, content } = this.#context;
    const { rules, compressors, renderedPages, assetPages } = content;
    return memoryUse([
      ...(this.#server === undefined ? [] : [this.#server.memory()]),
      ...this.#instance.memory(),
      compressors.pages.memory(),
      renderedPages.memory(),
      assetPages.memory(),
      this.#answers.memory(),
      compressors.responses.memory(),
      ...rules.memory(),
      ...this.#context.modules.reports().flatMap(({ memory = [] }) => memory),
      store.memory(),
    ]);
  }

  #configurationState(): ConfigurationState {
    return {
      since: this.#since,
      state: this.#problems.length > 0 ? 'broken' : 'current',
      restart_needed: this.#restartNeeded,
      problems: this.#problems,
    };
  }
}
