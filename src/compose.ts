import { randomBytes } from 'node:crypto';
import { newId, now } from './model/clock.ts';
import { namesOrigin, type Config } from './config/config.ts';
import { builtInEngines } from './model/rule.ts';
import type { Logs } from './observability/log.ts';
import type { CacheUse, MemoryUse } from './observability/memory-use.ts';
import { createDialler, type Dialler } from './outbound/dialler.ts';
import { createDocuments } from './server/documents.ts';
import { createIndexPages } from './server/index-pages.ts';
import { createPublicAnswers } from './server/public-answers.ts';
import type { Serving } from './server/serving.ts';
import { cachedFetch } from './cache/cached-fetch.ts';
import type { CacheStore } from './cache/cache-store.ts';
import { createDisk } from './static/disk.ts';
import type { ResponseCompressor } from './compression/response-compressor.ts';
import { withCompression } from './proxy/response-compression.ts';
import type { SourceHealth } from './proxy/source-health.ts';
import { createFetcher, withFailureEvents, type Fetcher } from './proxy/fetcher.ts';
import { createGenericPages } from './pages/generic-pages.ts';
import type { PublicFileReplies, PublicFiles } from './pages/public-files.ts';
import type { RuleCache } from './rules/rule-cache.ts';
import { createSite, type Site } from './site/site.ts';
import type { StoredPages } from './pages/stored-pages.ts';
import type { Emit } from './store/emit.ts';
import { claimFolder } from './store/folder/folder-claim.ts';
import type { Store } from './store/store.ts';
import {
  createAuthenticate,
  requireUnrevoked,
  type Authenticate,
  type createWrongKeys,
} from './api/keys/authenticate.ts';
import { createExecute } from './api/execute.ts';
import type { KeyRates } from './api/keys/key-rates.ts';
import { bindOperations, type Operation } from './api/operation.ts';
import { writeInThread } from './api/write-thread.ts';
import type { CertificateState, ConfigurationState } from './api/server-status.ts';
import { createWebhookState } from './api/webhooks/hook-states.ts';
import { operations as definitions } from './api/table.ts';
import { createVisitors, identityFieldsOf, type Visitors } from './visitors/visitor.ts';
import { createAttempt, type DeliveryAttempt } from './webhooks/attempt.ts';
import { Deliverer } from './webhooks/deliverer.ts';
import { createReports } from './webhooks/reports.ts';
import { createSecret } from './webhooks/sign.ts';

/** What lives as long as the process, whatever the configuration. */
export interface AppContext {
  readonly store: Store;
  readonly logs: Logs;
  readonly publicFiles: PublicFiles;
  readonly rules: RuleCache;
  readonly ownFiles: PublicFileReplies;
  readonly storedPages: StoredPages;
  readonly responseCompressor: ResponseCompressor;
  readonly answers: CacheStore;
  readonly sourceHealth: SourceHealth;
  readonly wrongKeys: ReturnType<typeof createWrongKeys>;
  readonly keyRates: KeyRates;
  readonly emit: Emit;
  readonly version: string;
  readonly status: () => ConfigurationState;
  readonly metricsText: () => Promise<string>;
  readonly certificates: () => Promise<readonly CertificateState[]>;
  readonly memory: () => MemoryUse;
  readonly started: string;
}

/** Everything under one configuration, with what has to be closed when it is replaced. */
export interface AppInstance {
  readonly serving: Serving;
  /** Makes an attempt at a delivery. */
  readonly attempt: DeliveryAttempt;
  /** What is in memory of files and envelopes. */
  memory(): readonly CacheUse[];
  /** Lets what is under way end, then closes everything. */
  close(): Promise<void>;
  /** Breaks off what other servers are asked for: nobody waits for it any more. */
  cut(): void;
}

/** The names of all engines that a configuration knows. */
export function engineNames(config: Config): ReadonlySet<string> {
  return new Set([...builtInEngines, ...config.engines.map(({ name }) => name)]);
}

/** Builds what answers requests under a configuration: nothing of it changes afterwards. */
export function compose(config: Config, foundation: AppContext): AppInstance {
  const { store, publicFiles, ownFiles, storedPages, wrongKeys } = foundation;
  const { base, publicUrl } = config.server;
  const disk = createDisk({ mounts: config.disk, now });
  const dialler = createDialler(config.fetch);
  const generic = createGenericPages({
    engines: config.engines,
    builtInPage: publicFiles.page({ base, nonce: '' }),
    ownFiles,
  });
  const fetch = composeFetch(config, foundation, dialler);
  const visitors = createVisitors({ config, now, log: foundation.logs.log });
  const site = createSite({ rules: foundation.rules, disk, stored: storedPages, generic, fetch });
  const authenticate = createAuthenticate({
    keys: store,
    anonymous: config.auth.anonymous,
    keyRate: config.auth.keyRate,
    wrongKeys,
  });
  const operations = composeOperations(config, foundation, {
    site,
    authenticate,
    visitors,
  });
  const execute = createExecute(operations, foundation);
  const hookDialler = createDialler(config.webhook);
  const publicAnswers = createPublicAnswers(ownFiles);
  return {
    serving: {
      config,
      site,
      refresh: () => {
        foundation.rules.refresh();
      },
      seq: () => foundation.rules.seq(),
      execute,
      authenticate,
      visitors,
      requireUnrevoked: (caller) => {
        requireUnrevoked(store, caller);
      },
      publicFiles,
      ownFiles,
      metricsText: foundation.metricsText,
      publicAnswers,
      indexPages: createIndexPages({ base, engines: config.engines, publicFiles }),
      documents: createDocuments({
        operations,
        version: foundation.version,
        base,
        publicUrl,
        anonymous: config.auth.anonymous,
      }),
    },
    attempt: createAttempt({
      dialler: hookDialler,
      userAgent: `Waymark/${foundation.version}`,
      now,
      monotonicMs: () => performance.now(),
    }),
    memory: () => [disk.memory(), publicAnswers.memory()],
    async close() {
      await disk.close();
      await Promise.all([dialler.close(), hookDialler.close(), visitors.close()]);
    },
    cut: () => {
      dialler.cut();
    },
  };
}

/** Fetched content: the source, the cache in front of it, and compression in front of both. */
function composeFetch(
  config: Config,
  { answers, responseCompressor, emit, sourceHealth: health }: AppContext,
  dialler: Dialler,
): Fetcher {
  const via = 'waymark';
  const { bodyBytesMax, cacheBytesMax } = config.fetch;
  const fetch = withFailureEvents(
    createFetcher({ dialler, health, bodyBytesMax, via }),
    (failure) => void emit('error.detected', failure),
  );
  const identityFields = identityFieldsOf(config);
  const parts = { fetch, answers, now, newId, via, identityFields };
  return withCompression(cacheBytesMax === 0 ? fetch : cachedFetch(parts), responseCompressor);
}

function composeOperations(
  config: Config,
  foundation: AppContext,
  {
    site,
    authenticate,
    visitors,
  }: {
    readonly site: Site;
    readonly authenticate: Authenticate;
    readonly visitors: Visitors;
  },
): readonly Operation[] {
  const { store } = foundation;
  const { base, publicUrl, data } = config.server;
  return bindOperations(definitions, {
    store,
    newId,
    now,
    randomBytes,
    newSecret: () => createSecret(randomBytes),
    log: foundation.logs.log,
    node: config.node,
    engines: engineNames(config),
    allowPrivate: config.fetch.allowPrivate,
    view: { base, publicUrl, engines: config.engines, tables: config.tables },
    site,
    locationOf: (address) => visitors.locationOf(address),
    namesOrigin: (origin) => namesOrigin(config, origin),
    revertInThread: (request) => writeInThread(data, 'revert', request),
    importInThread: (request) => writeInThread(data, 'import', request),
    cache: foundation.answers,
    authenticate,
    status: {
      version: foundation.version,
      started: foundation.started,
      counts: () => store.counts(),
      webhooks: createWebhookState(store, {
        node: config.node,
        localAddress: config.webhook.localAddress,
      }),
      configuration: foundation.status,
      certificates: foundation.certificates,
      memory: foundation.memory,
    },
  });
}

/** Makes what delivers the webhooks of a data folder, under the configuration of each moment. */
export function createDeliverer(
  folder: string,
  { store, emit, logs: { log } }: AppContext,
  composition: () => AppInstance,
): Deliverer {
  return new Deliverer({
    store,
    log,
    attempt: (...given) => composition().attempt(...given),
    settings: () => {
      const { webhook, node } = composition().serving.config;
      return { ...webhook, node };
    },
    claim: () => claimFolder(folder, { pid: process.pid }, 'deliver'),
    now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    report: createReports({ store, emit, log }),
  });
}
