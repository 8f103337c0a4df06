import { fileURLToPath } from 'node:url';
import { newId, now, uptimeMs } from './model/clock.ts';
import { compose, createDeliverer, type AppInstance, type AppContext } from './compose.ts';
import type { Config, ConfigResult } from './config/config.ts';
import type { ConfigProblem } from './config/problem.ts';
import { ineffectiveSettings } from './config/warnings.ts';
import { configInForce, restartNeeded } from './config/restart.ts';
import { openData } from './data.ts';
import { importOnce, makeFirstKey } from './first-start.ts';
import { accessFlushMs } from './observability/limits.ts';
import { Failure } from './model/failure.ts';
import { silentLog, type Logs } from './observability/log.ts';
import { memoryMetrics, memoryUse, type MemoryUse } from './observability/memory-use.ts';
import type { Gather, Metric } from './observability/metrics.ts';
import { ServerMetrics } from './server/server-metrics.ts';
import { startServer, type Server } from './server/server.ts';
import { openTls, type Tls } from './server/tls/tls.ts';
import type { CacheStore } from './cache/cache-store.ts';
import { openCacheStore, prepareCacheStore, settleCacheStore } from './cache/open-cache-store.ts';
import { createPageCompressor, type PageCompressor } from './compression/page-compressor.ts';
import { createResponseCompressor } from './compression/response-compressor.ts';
import { SourceHealth } from './proxy/source-health.ts';
import {
  createPublicFileReplies,
  loadPublicFiles,
  type PublicFiles,
} from './pages/public-files.ts';
import { createRuleCache } from './rules/rule-cache.ts';
import { createStoredPages } from './pages/stored-pages.ts';
import { createEmit } from './store/emit.ts';
import { claimFolder } from './store/folder/folder-claim.ts';
import type { Store } from './store/store.ts';
import { createWrongKeys } from './api/keys/authenticate.ts';
import { createKeyRates } from './api/keys/key-rates.ts';
import type { ConfigurationState } from './api/server-status.ts';
import { version } from './version.ts';
import type { Deliverer } from './webhooks/deliverer.ts';

/** A running Waymark. */
export interface Waymark {
  /** Where it can be reached, one URL a listener. */
  readonly addresses: readonly string[];
  /** The admin key that was made because there was none: nothing can show it again. */
  readonly firstKey: string | undefined;
  /**
   * Takes over a configuration that was read again: the next request sees it, those under way keep
   * theirs. A broken one changes nothing but what server.status says.
   */
  reload(result: ConfigResult): void;
  /** Ends requests in flight, or cuts them after the grace; resolves to how many were cut. */
  stop(graceMs: number): Promise<{ readonly cut: number }>;
}

const publicFolder = fileURLToPath(new URL('../public', import.meta.url));

/**
 * Starts serving. Rejects with a Failure of one clear line: the data folder is in use, locked or
 * foreign, a port is taken, the rules to import have mistakes. Nothing is left open then.
 */
export async function startWaymark(
  config: Config,
  logs: Logs,
  { hasFastPath = true }: { readonly hasFastPath?: boolean } = {},
): Promise<Waymark> {
  const prepared = await prepareData(config, logs);
  try {
    const { store } = prepared;
    const running = await startServing(config, logs, { store, isPrimary: true, hasFastPath });
    return {
      addresses: running.addresses,
      // Last of all: a key that was made at a start that failed would never be shown.
      firstKey: await makeFirstKey(store),
      reload: (result) => {
        running.reload(result);
      },
      async stop(graceMs) {
        const cut = await running.stop(graceMs);
        await prepared.release();
        return { cut };
      },
    };
  } catch (error) {
    await prepared.release();
    throw error;
  }
}

/** A data folder that is this process's to serve, with everything in it that has to be there. */
interface PreparedData {
  readonly store: Store;
  /** Closes the store and gives the folder back. */
  release(): Promise<void>;
}

/**
 * Claims a data folder and imports what belongs into an empty one. Rejects as startWaymark does,
 * and leaves nothing open then.
 */
export async function prepareData(config: Config, logs: Logs): Promise<PreparedData> {
  const claim = await claimFolder(config.server.data, { pid: process.pid });
  const { data } = config.server;
  let store: Store | undefined;
  const release = async (): Promise<void> => {
    await store?.close();
    if (store !== undefined) await settleCacheStore(data);
    await claim.release();
  };
  try {
    await prepareCacheStore(data);
    store = await openData(data);
    await importOnce(store, config, logs);
    return { store, release };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Requests being answered, in this process. */
export interface Running {
  readonly addresses: readonly string[];
  /** As Waymark.reload. */
  reload(result: ConfigResult): void;
  /** How the metrics of this process stand. */
  metrics(): readonly Metric[];
  /** As Waymark.stop, but for the store, which stays open; resolves to how many were cut off. */
  stop(graceMs: number): Promise<number>;
}

/**
 * Opens the ports over a store. Of several processes on the same ports one is the spokesman, who
 * tells the log what happens to all of them; `gather` asks all for their metrics. Rejects with
 * `unavailable` when a port cannot be had.
 */
export async function startServing(
  config: Config,
  logs: Logs,
  given: {
    readonly store: Store;
    readonly isPrimary: boolean;
    readonly gather?: Gather;
    /** Whether requests may be answered without Node's HTTP server; true unless said otherwise. */
    readonly hasFastPath?: boolean;
  },
): Promise<Running> {
  const publicFiles = await loadPublicFiles(publicFolder);
  const running = new Process({ config, logs, publicFiles, ...given });
  try {
    await running.listen();
    return running;
  } catch (error) {
    await running.stop(0);
    throw error;
  }
}

class Process implements Running {
  readonly #foundation: AppContext;
  readonly #isPrimary: boolean;
  readonly #hasFastPath: boolean;
  readonly #pageCompressor: PageCompressor;
  readonly #answers: CacheStore;
  /** Those of former configurations that still answer somebody. */
  readonly #former = new Set<AppInstance>();
  readonly #flushing: NodeJS.Timeout;
  readonly #measures: ServerMetrics;
  readonly #deliverer: Deliverer;
  #composition: AppInstance;
  #server: Server | undefined;
  #tls: Tls | undefined;
  #since = new Date(now()).toISOString();
  #restartNeeded: readonly string[] = [];
  #problems: readonly ConfigProblem[] = [];

  constructor({
    config,
    logs,
    store,
    publicFiles,
    isPrimary,
    gather,
    hasFastPath = true,
  }: Parameters<typeof startServing>[2] & {
    readonly config: Config;
    readonly logs: Logs;
    readonly publicFiles: PublicFiles;
  }) {
    this.#isPrimary = isPrimary;
    this.#hasFastPath = hasFastPath;
    this.#measures = new ServerMetrics({ store, gather, server: () => this.#server });
    this.#pageCompressor = createPageCompressor();
    this.#answers = openCacheStore(config, { now, uptimeMs, log: logs.log });
    const monotonicMs = (): number => performance.now();
    const fetchHealth = new SourceHealth({ monotonicMs, log: logs.log });
    this.#measures.add(() => fetchHealth.metrics());
    this.#foundation = {
      store,
      logs,
      publicFiles,
      rules: createRuleCache(store),
      ownFiles: createPublicFileReplies(this.#pageCompressor),
      storedPages: createStoredPages(this.#pageCompressor),
      responseCompressor: createResponseCompressor(),
      answers: this.#answers,
      sourceHealth: fetchHealth,
      wrongKeys: createWrongKeys({ now }),
      emit: createEmit({ store, newId, now, by: 'serve', log: logs.log }),
      keyRates: createKeyRates({ monotonicMs }),
      version,
      status: () => this.#configurationState(),
      metricsText: () => this.#measures.text(),
      certificates: () => this.#tls?.certificates.states() ?? Promise.resolve([]),
      memory: () => this.#memory(),
      started: this.#since,
    };
    this.#composition = compose(config, this.#foundation);
    this.#deliverer = createDeliverer(
      config.server.data,
      this.#foundation,
      () => this.#composition,
    );
    this.#measures.add(() => this.#deliverer.metrics());
    this.#measures.add(() => this.#answers.metrics());
    this.#measures.add(() => this.#tls?.metrics() ?? []);
    this.#measures.add(() => memoryMetrics(this.#memory()));
    this.#flushing = setInterval(() => {
      logs.access.flush();
    }, accessFlushMs);
    this.#flushing.unref();
  }

  get addresses(): readonly string[] {
    return this.#server?.addresses ?? [];
  }

  async listen(): Promise<void> {
    const { log, access } = this.#foundation.logs;
    const { config } = this.#composition.serving;
    const tls = await openTls({ config, log, isPrimary: this.#isPrimary });
    this.#tls = tls;
    this.#server = await startServer(
      {
        serving: () => this.#composition.serving,
        tls,
        log,
        access,
        metrics: this.#measures.requests,
        newId,
        now,
        monotonicMs: () => performance.now(),
        hasFastPath: this.#hasFastPath,
      },
      config.server.listen,
    );
    this.#warnOfIneffective(config);
    this.#deliverer.start();
    tls.start();
    this.#checkPages();
  }

  /** Looks at all of the data file while the server runs; at its start there was no time for it. */
  #checkPages(): void {
    const { store, logs } = this.#foundation;
    store.checkPages().catch((error: unknown) => {
      const isDamage = error instanceof Failure && error.code === 'unavailable';
      if (isDamage) logs.log.error({}, `${error.message}. Changes are refused until then.`);
      else logs.log.error({ err: error }, 'The data file could not be checked.');
    });
  }

  metrics(): readonly Metric[] {
    return this.#measures.metrics();
  }

  reload(result: ConfigResult): void {
    const { logs } = this.#foundation;
    const log = this.#isPrimary ? logs.log : silentLog;
    if (!result.ok) {
      this.#problems = result.problems;
      for (const { line, message } of result.problems) {
        log.error({ line }, `The changed ini file is not used: ${message}`);
      }
      return;
    }
    const before = this.#composition;
    const { config } = before.serving;
    this.#restartNeeded = restartNeeded(config, result.config);
    this.#problems = [];
    this.#since = new Date(now()).toISOString();
    const next = configInForce(config, result.config);
    this.#composition = compose(next, this.#foundation);
    logs.configure(next.log);
    this.#answers.limit(next.fetch.cacheBytesMax);
    this.#tls?.reload(next.tls.acme);
    log.info({}, 'The changed ini file is in force.');
    for (const name of this.#restartNeeded) log.warn({}, `${name} has changed: restart to use it.`);
    this.#warnOfIneffective(next);
    this.#former.add(before);
    const failed = (error: unknown): void => {
      logs.log.error({ err: error }, 'closing the former configuration failed');
    };
    void before.close().then(() => this.#former.delete(before), failed);
  }

  #warnOfIneffective(config: Config): void {
    if (!this.#isPrimary) return;
    for (const said of ineffectiveSettings(config)) this.#foundation.logs.log.warn({}, said);
  }

  async stop(graceMs: number): Promise<number> {
    const delivered = this.#deliverer.stop(graceMs);
    const { cut } = (await this.#server?.stop(graceMs)) ?? { cut: 0 };
    await this.#tls?.close();
    await delivered;
    clearInterval(this.#flushing);
    // What still comes is for the cache alone, which is about to be closed.
    for (const one of [this.#composition, ...this.#former]) one.cut();
    await this.#composition.close();
    this.#pageCompressor.close();
    await this.#answers.close();
    this.#foundation.logs.access.flush();
    return cut;
  }

  #memory(): MemoryUse {
    const { rules, responseCompressor, store } = this.#foundation;
    return memoryUse([
      ...(this.#server === undefined ? [] : [this.#server.memory()]),
      ...this.#composition.memory(),
      this.#pageCompressor.memory(),
      this.#answers.memory(),
      responseCompressor.memory(),
      ...rules.memory(),
      store.memory(),
    ]);
  }

  #configurationState(): ConfigurationState {
    return {
      since: this.#since,
      state: this.#problems.length > 0 ? 'broken' : 'current',
      restart_needed: this.#restartNeeded,
      problems: this.#problems.map(({ line, message }) => ({ line, message })),
    };
  }
}
