import { createAccessGuard, type AccessGuard } from './access/access-guard.ts';
import { createRates, type RateParts, type Rates } from './access/rates.ts';
import { openLinkKeys } from './access/link-keys.ts';
import { openNetworkFile } from './access/network-file.ts';
import { openPasswordFile } from './access/password-file.ts';
import type { Passwords } from './access/passwords.ts';
import {
  createResponseHeaders,
  matchesPattern,
  strictFields,
  type HeaderRule,
} from './http/response-headers.ts';
import { createAccessRules } from './observability/access-rules.ts';
import { writeAssetTable } from './api/assets/asset-table.ts';
import { createAssetReader } from './assets/asset.ts';
import type { AssetFiles } from './assets/asset-files.ts';
import type { AssetPages } from './assets/asset-pages.ts';
import { randomBytes } from 'node:crypto';
import { newId, now } from './model/clock.ts';
import { proxyId } from './model/rule.ts';
import { namesOrigin, type AccessConfig, type Config } from './config/config.ts';
import { builtInEngines } from './model/rule.ts';
import type { JsonObject } from './model/json.ts';
import type { Logs } from './observability/log.ts';
import type { LiveAccess } from './observability/live-access.ts';
import type { StateWatcher } from './observability/state-watcher.ts';
import type { GatherMetrics } from './observability/metrics.ts';
import type { CacheUse, MemoryUse } from './observability/memory-use.ts';
import { readSeries } from './observability/series-recorder.ts';
import { createCentralClient } from './nodes/central-client.ts';
import { createHostClient, type HostClient } from './hosts/host-client.ts';
import type { RowCheckProgress } from './api/tables/row-checks.ts';
import type { TableHostState } from './hosts/host-follower.ts';
import { createPassOn, type PassOn } from './nodes/pass-on.ts';
import { createConnector, createDialler, type Dialler } from './outbound/dialler.ts';
import { createDocuments } from './server/documents.ts';
import { createIndexPages, type IndexPages } from './server/index-pages.ts';
import { createPublicAnswers } from './server/public-answers.ts';
import type { Serving } from './server/serving.ts';
import type { VisitCounter } from './breadcrumbs/visit-counter.ts';
import { cachedFetch } from './cache/cached-fetch.ts';
import type { CacheStore } from './cache/cache-store.ts';
import { createDisk, type Disk } from './static/disk.ts';
import type { Compressors } from './compression/compressors.ts';
import { withCompression } from './proxy/response-compression.ts';
import type { SourceHealth } from './proxy/source-health.ts';
import type { SourceStatistics } from './proxy/source-statistics.ts';
import { HealthChecks } from './proxy/health-checks.ts';
import { SourceNames } from './proxy/source-names.ts';
import { createLookup } from './outbound/dns-lookup.ts';
import { createServiceLookup } from './outbound/srv-lookup.ts';
import { configuredProxies } from './proxy/configured-proxies.ts';
import { createSourceDiallers, type SourceDiallers } from './proxy/source-diallers.ts';
import {
  createFetcher,
  withFailureEvents,
  withOwnFields,
  withUsers,
  type Fetcher,
} from './proxy/fetcher.ts';
import { createGenericPages } from './pages/generic-pages.ts';
import type { ConsoleFiles } from './pages/console-files.ts';
import type { PublicFileReplies, PublicFiles } from './pages/public-files.ts';
import type { RenderedPages, RowReader } from './rendering/rendered-pages.ts';
import type { RuleCache } from './rules/rule-cache.ts';
import { configuredRedirects, mountRedirects } from './site/redirect-lists.ts';
import { createRewriter } from './site/rewrite-source.ts';
import { createSite, type SiteParts } from './site/site.ts';
import type { StoredPages } from './pages/stored-pages.ts';
import { createEmit, type Emit } from './store/emit.ts';
import { claimFolder } from './store/folder/folder-claim.ts';
import { eventInsert, rowInsert } from './store/outbox.ts';
import type { Store } from './store/store.ts';
import {
  createAuthenticate,
  requireUnrevoked,
  type Authenticate,
  type createWrongKeys,
} from './api/keys/authenticate.ts';
import { withDataHosts } from './api/rows/hosted-rows.ts';
import { createPageRows, createPastRows, createRowsFor } from './api/rows/page-rows.ts';
import { takeRows } from './api/nodes/taken-rows.ts';
import { composeDrafts, type Drafts, type DraftsParts } from './compose-drafts.ts';
import { createExecute, type Execute, type ExecuteParts } from './api/execute.ts';
import type { KeyUseRecorder } from './api/keys/key-use-recorder.ts';
import type { KeyRates } from './api/keys/key-rates.ts';
import { followerSessions, loggedSessions, type SessionStore } from './api/keys/session-store.ts';
import type { AnonymousWrites } from './api/rows/anonymous-writes.ts';
import { bindOperations, type Operation } from './api/operation.ts';
import { writeInThread } from './write-thread.ts';
import {
  createNodeStatus,
  createWebhookState,
  type CertificateState,
  type ConfigurationState,
} from './api/server-status.ts';
import { operations as definitions, type OperationParts } from './api/table.ts';
import { createLogin, type Login } from './login/login.ts';
import { createVisitors, identityFieldsOf, type Visitors } from './visitors/visitor.ts';
import { createAttempt, type DeliveryAttempt } from './webhooks/attempt.ts';
import { Deliverer } from './webhooks/deliverer.ts';
import { createReports } from './webhooks/reports.ts';
import { createSecret } from './webhooks/sign.ts';

/** Everything that lives as long as the process and does not depend on the configuration. */
export interface AppContext {
  readonly store: Store;
  readonly logs: Logs;
  readonly publicFiles: PublicFiles;
  readonly consoleFiles: ConsoleFiles;
  readonly rules: RuleCache;
  readonly ownFiles: PublicFileReplies;
  readonly storedPages: StoredPages;
  readonly assetFiles: AssetFiles;
  readonly assetPages: AssetPages;
  readonly renderedPages: RenderedPages;
  /** Makes rendered pages that are apart from those of visitors. */
  readonly newRenderedPages: () => RenderedPages;
  readonly compressors: Compressors;
  readonly answers: CacheStore;
  readonly sourceHealth: SourceHealth;
  readonly sourceStatistics: SourceStatistics;
  readonly wrongKeys: ReturnType<typeof createWrongKeys>;
  readonly passwords: Passwords;
  readonly keyRates: KeyRates;
  readonly rates: RateParts;
  readonly keyUses: Pick<KeyUseRecorder, 'note' | 'last'>;
  readonly anonymousWrites: AnonymousWrites;
  readonly visits: Pick<VisitCounter, 'count' | keyof OperationParts['visits']>;
  readonly emit: Emit;
  readonly version: string;
  readonly liveAccess: LiveAccess;
  readonly stateWatcher: StateWatcher;
  readonly status: () => ConfigurationState;
  readonly metricsText: () => Promise<string>;
  readonly gatherMetrics: GatherMetrics;
  readonly certificates: () => Promise<readonly CertificateState[]>;
  readonly memory: () => MemoryUse;
  readonly hostStates: () => readonly TableHostState[];
  readonly rowChecks: () => readonly RowCheckProgress[];
  readonly started: string;
}

/** Everything that depends on one configuration; a reload replaces and closes it. */
export interface AppInstance {
  readonly serving: Serving;
  /** Makes one attempt at a delivery. */
  readonly attempt: DeliveryAttempt;
  /** Calls the data hosts of tables. */
  readonly hosts: HostClient;
  /** The memory of its caches. */
  memory(): readonly CacheUse[];
  /** Waits until running requests have ended, then closes everything. */
  close(): Promise<void>;
  /** Aborts requests to other servers when no client waits for their responses any more. */
  cut(): void;
}

/** The names of all engines: the built-in ones and those of the configuration. */
export function engineNames(config: Config): ReadonlySet<string> {
  return new Set([...builtInEngines, ...config.engines.map(({ name }) => name)]);
}

/** Creates the immutable instance that answers requests with a configuration. */
export function compose(config: Config, context: AppContext): AppInstance {
  const { store, publicFiles, ownFiles } = context;
  const { base, publicUrl } = config.server;
  const disk = createDisk({ mounts: config.disk, compressors: context.compressors, now });
  const access = composeSourceAccess(config, context);
  const { dialler, diallers, checks } = access;
  const hosts = createHostClient({ dialler, connect: createConnector(config.fetch) });
  const { login, visitors } = composeVisitors(config, context, diallers);
  const sessions = composeSessions(config, store);
  const authenticate = composeAuthenticate(config, context, sessions);
  const { pageRows, ...readers } = composeRows(store, authenticate, () => execute);
  const rates = createRates(config.rates, context.rates);
  const siteParts = composeSite(config, context, { disk, ...access, pageRows, rates, login });
  const site = createSite({ ...siteParts, countVisit: context.visits.count });
  // A page that an operation reads does not count as a visit.
  const reads = { site: createSite(siteParts), ...readers };
  const drafts = composeDrafts({
    ...composeDraftParts(config, context, { siteParts, access, hosts }),
    ...{ authenticate, parts: () => parts },
  });
  const given = { ...reads, authenticate, sessions, login, visitors, hosts, drafts };
  const parts = composeParts(config, context, given);
  const operations = composeOperations(config, hosts, parts);
  const execute = createExecute(operations, {
    ...executeParts(config, context),
    inDraft: (draft, name, caller) => drafts.operation(draft, name, caller),
  });
  const hookDialler = createDialler(config.webhook);
  const publicAnswers = createPublicAnswers(ownFiles);
  return {
    serving: {
      ...{ config, site, version: context.version },
      refresh: () => {
        context.rules.refresh();
      },
      period: () => context.rules.period(),
      execute,
      ...{ authenticate, visitors, login },
      requireUnrevoked: (caller) => {
        requireUnrevoked(sessions, caller, now);
        if (caller.keyId !== undefined) context.keyUses.note(caller.keyId);
      },
      ...{ publicFiles, ownFiles, consoleFiles: context.consoleFiles },
      metricsText: context.metricsText,
      ...composeFieldsAndLines(config, siteParts),
      ...{ publicAnswers, indexPages: composeIndexPages(config, context) },
      ...{ previews: drafts.previews, rates, assets: composeUploads(context) },
      documents: createDocuments({
        ...{ operations, version: context.version, anonymous: config.auth.anonymous },
        ...{ base, publicUrl },
      }),
    },
    attempt: createAttempt({
      ...{ dialler: hookDialler, userAgent: `Waymark/${context.version}`, now },
      monotonicMs: () => performance.now(),
    }),
    hosts,
    memory: () => [disk.memory(), publicAnswers.memory()],
    async close() {
      checks.close();
      await disk.close();
      await Promise.all([diallers.close(), hookDialler.close(), visitors.close()]);
    },
    cut: () => {
      checks.close();
      diallers.cut();
    },
  };
}

/** What uploads need, and the downloads of assets by their names. */
function composeUploads({ store, assetFiles, assetPages }: AppContext): Serving['assets'] {
  return {
    files: assetFiles,
    pages: assetPages,
    ...createAssetReader(store),
    prepareTable: () => writeAssetTable(store, newId),
  };
}

/** The changes of answers: those of mounts and proxies, then those for paths in their order. */
function headerRulesOf({ disk, proxies, headers }: Config): readonly HeaderRule[] {
  const ofMounts = disk.flatMap(({ name, headerBlocks }) =>
    headerBlocks.map(({ line, origin, path, fields }) => {
      const named = `line ${line} of headers_file of [disk.${name}]`;
      const place = { name: named, origin, paths: [path], hasPlaceholders: true };
      return { ...place, source: `disk:${name}`, fields };
    }),
  );
  const ofProxies = proxies
    .filter(({ headers: fields }) => fields.length > 0)
    .map(({ name, headers: fields }) => {
      const place = { name: `[proxy.${name}.headers]`, origin: '*', paths: ['/*'] };
      return { ...place, source: proxyId(name), fields };
    });
  const ofPaths = headers.map(({ name, origin, path: paths, security, fields }) => {
    const strict = security === undefined ? [] : strictFields;
    const place = { name: `[headers.${name}]`, origin, paths, source: undefined };
    return { ...place, fields: [...strict, ...fields] };
  });
  return [...ofMounts, ...ofProxies, ...ofPaths];
}

/** What changes the fields of answers, and the lines of the access log. */
function composeFieldsAndLines(
  { log }: Config,
  { headerRules }: { readonly headerRules: readonly HeaderRule[] },
): Pick<Serving, 'responseHeaders' | 'accessRules'> {
  const random = Math.random;
  return {
    responseHeaders: createResponseHeaders(headerRules, newNonce),
    accessRules: createAccessRules(log, { matches: matchesPattern, random }),
  };
}

/** A nonce with 128 random bits (CSP 3 §7.1). */
function newNonce(): string {
  return randomBytes(16).toString('base64');
}

function composeIndexPages(config: Config, { publicFiles, consoleFiles }: AppContext): IndexPages {
  const { console, base } = config.server;
  const consoleAt = console === 'yes' ? `${base}/svc1/console/` : `${console}${base}/svc1/console/`;
  const hasNone = console === 'no' || consoleFiles.size === 0;
  return createIndexPages({
    base,
    engines: config.engines,
    publicFiles,
    console: hasNone ? undefined : consoleAt,
  });
}

function composeAuthenticate(
  { auth }: Config,
  { wrongKeys, keyUses }: AppContext,
  keys: SessionStore,
): Authenticate {
  const { anonymous, keyRate } = auth;
  const used = (id: string): void => {
    keyUses.note(id);
  };
  return createAuthenticate({ keys, anonymous, keyRate, wrongKeys, used, now });
}

/** Requests to other servers, and the checks of those. */
interface SourceAccess {
  readonly dialler: Dialler;
  readonly diallers: SourceDiallers;
  readonly names: SourceNames;
  readonly checks: HealthChecks;
}

function composeSourceAccess(
  { fetch }: Config,
  { sourceStatistics, sourceHealth: health }: AppContext,
): SourceAccess {
  const connected = (origin: string) => sourceStatistics.connected(origin);
  const dialler = createDialler({ ...fetch, connected });
  const diallers = createSourceDiallers(dialler, fetch, connected);
  const monotonicMs = () => performance.now();
  const names = new SourceNames({ lookup: createLookup(), lookUpService: createServiceLookup() });
  const checks = new HealthChecks({ diallers, names, health, monotonicMs });
  return { dialler, diallers, names, checks };
}

function composeSite(
  config: Config,
  context: AppContext,
  {
    disk,
    pageRows,
    rates,
    login,
    ...sources
  }: {
    readonly disk: Disk;
    readonly pageRows: RowReader;
    readonly rates: Rates | undefined;
    readonly login: Login | undefined;
  } & SourceAccess,
): SiteParts {
  const { rules, publicFiles, ownFiles, storedPages: stored, renderedPages: rendered } = context;
  const generic = createGenericPages({
    engines: config.engines,
    builtInPage: publicFiles.page({ base: config.server.base, nonce: '' }),
    ownFiles,
  });
  const fetch = composeFetch(config, context, sources);
  const proxies = configuredProxies(config.proxies);
  for (const proxy of proxies) sources.checks.watch(proxy);
  const headerRules = headerRulesOf(config);
  const configured = {
    ...{ proxies, headerRules },
    redirects: config.redirects.map(configuredRedirects),
    mountRedirects: config.disk.map(mountRedirects),
    rewriter: createRewriter(config.rewrites),
    rates,
    access: composeAccess(config, context, { diallers: sources.diallers, login }),
  };
  const assets = { assets: createAssetReader(context.store), assetPages: context.assetPages };
  return { rules, ...configured, ...assets, disk, stored, generic, rendered, pageRows, fetch };
}

/** What drafts need; their fetched content is in no cache, and a failure there raises no event. */
function composeDraftParts(
  config: Config,
  context: AppContext,
  {
    siteParts,
    access: { diallers, names, checks },
    hosts,
  }: {
    readonly siteParts: SiteParts;
    readonly access: SourceAccess;
    readonly hosts: HostClient;
  },
): Omit<DraftsParts, 'authenticate' | 'parts'> {
  const { store, compressors, keyRates, sourceHealth: health } = context;
  const { sourceStatistics: statistics } = context;
  const { bodyBytesMax } = config.fetch;
  const fetch = createFetcher({
    ...{ diallers, health, names, checks, bodyBytesMax, statistics },
    via: 'waymark',
  });
  const direct = withUsers(withOwnFields(withCompression(fetch, compressors.responses)));
  return {
    store,
    site: { ...siteParts, fetch: direct },
    rendered: context.newRenderedPages,
    executeOf: (operations) => createExecute(operations, { keyRates }),
    withHosts: (bound, parts) => withHosts(config, hosts, bound, parts),
  };
}

/** Who visitors are, and their sign-in by a provider, if there is one. */
function composeVisitors(
  config: Config,
  context: AppContext,
  diallers: SourceDiallers,
): { readonly login: Login | undefined; readonly visitors: Visitors } {
  const { log } = context.logs;
  const login = composeLogin(config, context, diallers);
  const loginUser =
    login &&
    ((cookie: string | undefined, origin: string) =>
      login.userOf(cookie, origin.startsWith('https:')));
  return { login, visitors: createVisitors({ config, loginUser, now, log }) };
}

/** The sign-in of visitors by a provider, which may be in a private network. */
function composeLogin(
  { login, server: { base } }: Config,
  { store, logs: { log } }: AppContext,
  diallers: SourceDiallers,
): Login | undefined {
  const { issuer, clientId } = login;
  if (issuer === undefined || clientId === undefined) return undefined;
  return createLogin({
    ...{ login: { ...login, issuer, clientId }, base, store: store.loginSessions },
    dialler: () => diallers.of({ ini: { connectTimeoutMs: undefined } }),
    ...{ newId, now, log },
  });
}

/** The sessions of the console; those of people who have signed in by `[login]` end with it. */
function composeSessions({ node, login }: Config, store: Store): SessionStore {
  const sessions = node.central === undefined ? loggedSessions(store) : followerSessions(store);
  return login.issuer === undefined ? { ...sessions, isLoginOpen: () => false } : sessions;
}

/** The access rules, in which `login` is the path to which browsers are sent. */
function accessRules({ access, login, server: { base } }: Config): readonly AccessConfig[] {
  const own = `${base}/svc1/login/sign-in`;
  return access.map((rule) => {
    const asksUsers = rule.users.length + rule.roles.length > 0;
    const word = rule.login ?? (asksUsers && login.issuer !== undefined ? 'yes' : 'no');
    return { ...rule, login: word === 'yes' ? own : word === 'no' ? undefined : word };
  });
}

/** Who may see what. Password files are read at once, so that the log names their mistakes. */
function composeAccess(
  config: Config,
  { passwords, logs }: AppContext,
  { diallers, login }: { readonly diallers: SourceDiallers; readonly login: Login | undefined },
): AccessGuard | undefined {
  const { userHeader, jwtJwks } = config.auth;
  // A proxy or a token may name another user than the session.
  const isAlone = userHeader === undefined && jwtJwks === undefined;
  return createAccessGuard(accessRules(config), config.disk, {
    passwords,
    openFile(file) {
      const opened = openPasswordFile(file, { now, log: logs.log });
      void opened.prepare();
      return opened;
    },
    openKeys(file) {
      const opened = openLinkKeys(file, { now, log: logs.log });
      void opened.prepare();
      return opened;
    },
    openNetworks(file) {
      const opened = openNetworkFile(file, { now, log: logs.log });
      void opened.ready();
      return opened;
    },
    dialler: () => diallers.of({ ini: { connectTimeoutMs: undefined } }),
    ...(login !== undefined &&
      isAlone && { userOf: ({ cookie, isSecure }) => login.userOf(cookie, isSecure) }),
  });
}

/** Fetched content: compression in front of the cache, in front of the source. */
function composeFetch(
  config: Config,
  { answers, compressors, emit, sourceHealth: health, sourceStatistics }: AppContext,
  { diallers, names, checks }: SourceAccess,
): Fetcher {
  const via = 'waymark';
  const { bodyBytesMax, cacheBytesMax } = config.fetch;
  const fetch = withFailureEvents(
    createFetcher({
      ...{ diallers, health, names, checks, bodyBytesMax, via },
      statistics: sourceStatistics,
    }),
    (failure) => void emit('error.detected', failure),
  );
  const copied = config.access.flatMap(({ copy }) => copy);
  const identityFields = [...identityFieldsOf(config), ...copied];
  const parts = { fetch, answers, now, newId, via, identityFields };
  const cached = cacheBytesMax === 0 ? fetch : cachedFetch(parts);
  return withUsers(withOwnFields(withCompression(cached, compressors.responses)));
}

function executeParts(config: Config, { store, keyRates }: AppContext): ExecuteParts {
  return {
    keyRates,
    generation: () => store.rowLog.identity().generation,
    passOn: composePassOn(config, store),
    isTaken: (name, { keyId }) => {
      // The centre knows visitors without a key better.
      const isRow = name === rowInsert && keyId !== undefined;
      return takesEvents(config) && (isRow || name === eventInsert);
    },
  };
}

/** The rows that pages show, now and at a moment. */
function composeRows(
  store: Store,
  authenticate: Authenticate,
  execute: () => Execute,
): { readonly pageRows: RowReader } & Pick<OperationParts, 'rowsFor' | 'pastRows'> {
  const anonymous = (address: string) => authenticate({ apikey: undefined, address });
  const parts = { store, execute, anonymous };
  return {
    pageRows: createPageRows(parts),
    rowsFor: createRowsFor(parts),
    pastRows: (moment) => createPastRows(parts, moment),
  };
}

/** Whether this node is a counter with a centre. */
function takesEvents({ node: { role, central } }: Config): boolean {
  return role === 'counter' && central !== undefined;
}

/** Passes writes on to the centre, if there is one. */
function composePassOn({ node: { central } }: Config, store: Store): PassOn | undefined {
  if (central === undefined) return undefined;
  return createPassOn({ store, client: createCentralClient(central, store) });
}

function composeParts(
  config: Config,
  context: AppContext,
  {
    visitors,
    drafts,
    ...given
  }: Pick<
    OperationParts,
    'site' | 'rowsFor' | 'pastRows' | 'authenticate' | 'sessions' | 'login'
  > & {
    readonly visitors: Visitors;
    readonly drafts: Drafts;
  },
): OperationParts {
  const { store } = context;
  const { base, publicUrl, data } = config.server;
  const written = { folder: data, cluster: config.cluster };
  return {
    store,
    newId,
    now,
    randomBytes,
    newSecret: () => createSecret(randomBytes),
    log: context.logs.log,
    node: config.node,
    takesEvents: takesEvents(config),
    engines: engineNames(config),
    allowPrivate: config.fetch.allowPrivate,
    webhookAllowPrivate: config.webhook.allowPrivate,
    view: {
      base,
      publicUrl,
      engines: config.engines,
      schemaOf: (name) => schemaOf(config, context, name),
    },
    ...given,
    locationOf: (address) => visitors.locationOf(address),
    namesOrigin: (origin) => namesOrigin(config, origin),
    anonymousWrites: context.anonymousWrites,
    keyUses: context.keyUses,
    isOwnOrigin: (origin) => origin === publicUrl,
    configuredTables: new Set(config.tables.map(({ name }) => name)),
    revertInThread: (request) => writeInThread(written, 'revert', request),
    importInThread: (request) => writeInThread(written, 'import', request),
    publishInThread: (request) => writeInThread(written, 'publish', request),
    siteOf: (draft) => drafts.site(draft),
    cache: context.answers,
    series: () => readSeries(data),
    countVisit: context.visits.count,
    visits: context.visits,
    liveAccess: context.liveAccess,
    stateWatcher: context.stateWatcher,
    gatherMetrics: context.gatherMetrics,
    config,
    status: statusParts(config, context),
  };
}

function composeOperations(
  config: Config,
  hosts: HostClient,
  parts: OperationParts,
): readonly Operation[] {
  const bound = bindOperations(definitions, parts).map((one) =>
    one.name === rowInsert && parts.takesEvents ? { ...one, run: takeRows(parts, now) } : one,
  );
  return withHosts(config, hosts, bound, parts);
}

/** The operations on rows, which the data host of a table answers if it has one. */
function withHosts(
  config: Config,
  hosts: HostClient,
  bound: readonly Operation[],
  parts: OperationParts,
): readonly Operation[] {
  return withDataHosts(bound, { ...parts, hosts, keyFileOf: hostKeyFiles(config) });
}

/** The state that server.status reports. */
function statusParts(config: Config, context: AppContext): OperationParts['status'] {
  const { store } = context;
  return {
    version: context.version,
    started: context.started,
    counts: () => store.counts(),
    indexes: () => store.indexBuilds(),
    webhooks: createWebhookState(store, {
      node: config.node,
      hasCentre: config.node.central !== undefined,
      localAddress: config.webhook.localAddress,
    }),
    configuration: context.status,
    node: createNodeStatus(store, config.node),
    certificates: context.certificates,
    memory: context.memory,
    hosts: context.hostStates,
    rowChecks: context.rowChecks,
  };
}

/** The files with the keys for the data hosts of tables. */
export function hostKeyFiles({ tables }: Config): (table: string) => string | undefined {
  return (name) => tables.find((table) => table.name === name)?.hostKeyFile;
}

/** The schema of a table as it is now; that of the ini file until the log has it. */
function schemaOf({ tables }: Config, { store }: AppContext, name: string): JsonObject | undefined {
  const { schema } = store.table(name)?.table ?? {};
  return schema ?? tables.find((table) => table.name === name)?.definition.schema;
}

/** Raises events in the log of a configuration's node, or in its outbox. */
export function emitFor({ node }: Config, { log }: Logs, store: Store): Emit {
  const outbox =
    node.central === undefined ? {} : { outbox: { entries: store.outbox, node: node.name } };
  return createEmit({ store, ...outbox, newId, now, by: 'serve', log });
}

/** Creates the deliverer of a data folder's webhooks; it always uses the current configuration. */
export function createDeliverer(
  folder: string,
  { store, emit, logs: { log } }: AppContext,
  instance: () => AppInstance,
): Deliverer {
  return new Deliverer({
    store,
    log,
    attempt: (...args) => instance().attempt(...args),
    settings: () => {
      const { webhook, node } = instance().serving.config;
      return { ...webhook, node };
    },
    claim: () => claimFolder(folder, { pid: process.pid }, 'deliver'),
    now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    report: createReports({ store, emit, log }),
  });
}
