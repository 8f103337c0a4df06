import { randomBytes } from 'node:crypto';
import {
  createExecute,
  type Execute,
  type ExecuteParts,
} from '../../../core/operations/execute.ts';
import { batchSettings } from '../../../modules/batch/batch-parts.ts';
import { variantWidths } from '../../../modules/assets/limits.ts';
import type { Authenticate } from '../../../core/operations/keys/authenticate.ts';
import { queueRows } from '../../../modules/nodes/operations/taken-rows.ts';
import {
  type Operation,
  type OperationDefinition,
  bindOperations,
} from '../../../core/operations/operation.ts';
import { withDataHosts } from '../../../modules/hosts/hosted-rows.ts';
import {
  createPageRows,
  createPastRows,
  createRowsFor,
} from '../../../modules/rendering/page-rows.ts';
import { createNodeStatus, createWebhookState } from '../../../modules/status/server-status.ts';
import type { OpenModules } from '../../../core/loader.ts';
import type { OperationParts } from '../../../modules.ts';
import { namesOrigin, type Config } from '../../../core/config/config.ts';
import type { HostClient } from '../../../modules/hosts/host-client.ts';
import { newId, now } from '../../../core/values/clock.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { builtInEngines } from '../../../modules/rules/rule.ts';
import { createCentralClient, readNodeKey } from '../../../modules/nodes/central-client.ts';
import { createPassOn, type PassOn } from '../../../modules/nodes/pass-on.ts';
import { countEnds } from '../../../modules/keys/keys.ts';
import { passedTool } from '../../../modules/nodes/passed-tool.ts';
import { readSeries } from '../../../modules/status/series-recorder.ts';
import { createFetcher, withOwnFields, withUsers } from '../../../modules/proxy/fetcher.ts';
import { withCompression } from '../../../modules/proxy/response-compression.ts';
import type { RowReader } from '../../../modules/rules/site-access.ts';
import { notFoundPage } from '../../../core/pipeline/failures.ts';
import type { SiteParts } from './site.ts';
import { eventInsert, rowInsert } from '../../../modules/nodes/log/outbox.ts';
import type { Store } from '../../../core/log/store.ts';
import type { Visitors } from '../../../modules/visitors/visitor.ts';
import { createEventTypes } from '../../../modules/webhooks/event-types.ts';
import { createSecret } from '../../../modules/webhooks/sign.ts';
import { writeInThread } from '../write-thread.ts';
import type { AppContext, CallerContext } from './context.ts';
import type { Drafts, DraftsParts } from './drafts.ts';
import type { SourceAccess } from './transport.ts';
import type { ClientAddress } from '../../../core/values/network/peer.ts';
import { rowLogPart } from '../../../modules/nodes/log/open-row-log.ts';
import { storedTables } from '../../../modules/tables/log/family.ts';

/** The names of all engines: the built-in ones and those of the configuration. */
export function engineNames(config: Config): ReadonlySet<string> {
  return new Set([...builtInEngines, ...config.engines.map(({ name }) => name)]);
}

/** The names of the access sections. */
export function accessNames({ access }: Pick<Config, 'access'>): ReadonlySet<string> {
  return new Set(access.map(({ name }) => name));
}

export function composeParts(
  config: Config,
  context: AppContext,
  {
    visitors,
    drafts,
    ...given
  }: Pick<
    OperationParts,
    'site' | 'rowsFor' | 'pastRows' | 'authenticate' | 'sessions' | 'login' | 'pageHeaders'
  > & {
    readonly visitors: Visitors;
    readonly drafts: Drafts;
  },
): OperationParts {
  const { store, sources, callers, state, content } = context;
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
    queuesEvents: queuesEvents(config),
    eventTypes: createEventTypes(config.eventTypes, store),
    engines: engineNames(config),
    accessNames: accessNames(config),
    allowPrivate: config.fetch.allowPrivate,
    webhookAllowPrivate: config.webhook.allowPrivate,
    view: {
      base,
      publicUrl,
      engines: config.engines,
      schemaOf: (name) => schemaOf(config, store, name),
    },
    ...given,
    locationOf: (address) => visitors.locationOf(address),
    notFoundPage: (site, failure, request) =>
      notFoundPage({ log: context.logs.log, newId }, site, { failure, request }),
    namesOrigin: (origin) => namesOrigin(config, origin),
    anonymousWrites: callers.anonymousWrites,
    keyUses: callers.keyUses,
    wrongKeys: callers.wrongKeys,
    keyRates: callers.keyRates,
    isOwnOrigin: (origin) => origin === publicUrl,
    configuredTables: new Set(config.tables.map(({ name }) => name)),
    revertInThread: (request) => writeInThread(written, 'revert', request),
    importInThread: (request) => writeInThread(written, 'import', request),
    batchInThread: (request) =>
      writeInThread(written, 'batch', { ...request, settings: batchSettings(config) }),
    publishInThread: (request) => writeInThread(written, 'publish', request),
    undoInThread: (request) => writeInThread(written, 'undo', request),
    siteOf: (draft) => drafts.site(draft),
    cache: sources.answers,
    series: () => readSeries(data),
    pictureWidths: async () => ((await content.variants.isAvailable()) ? variantWidths : []),
    countVisit: callers.visits.count,
    visits: callers.visits,
    requestVisits: callers.requestVisits,
    liveAccess: state.liveAccess,
    stateWatcher: state.stateWatcher,
    gatherMetrics: state.gatherMetrics,
    config,
    status: statusParts(config, context),
  };
}

/** The state that server.status reports. */
function statusParts(
  config: Config,
  { store, version, state }: Pick<AppContext, 'store' | 'version' | 'state'>,
): OperationParts['status'] {
  return {
    version,
    started: state.started,
    counts: () => store.counts(),
    indexes: () => store.of(storedTables).indexBuilds(),
    keys: () => countEnds(store, now()),
    webhooks: createWebhookState(store, {
      node: config.node,
      hasCentre: config.node.central !== undefined,
      localAddress: config.webhook.localAddress,
    }),
    configuration: state.status,
    node: createNodeStatus(store, config.node),
    certificates: state.certificates,
    memory: state.memory,
    hosts: state.hostStates,
    rowChecks: state.rowChecks,
    tasks: state.tasks,
  };
}

/** The schema of a table as it is now; that of the ini file until the log has it. */
function schemaOf({ tables }: Config, store: Store, name: string): JsonObject | undefined {
  const { schema } = store.of(storedTables).table(name)?.table ?? {};
  return schema ?? tables.find((table) => table.name === name)?.definition.schema;
}

/** The operations of all modules; the parts of a module are what its operations need. */
export function definitionsOf(
  modules: OpenModules,
): readonly OperationDefinition<OperationParts>[] {
  return modules.operations as readonly OperationDefinition<unknown>[];
}

/** The operations with the parts that they need. */
export function composeOperations(
  config: Config,
  {
    hosts,
    definitions,
  }: {
    readonly hosts: HostClient;
    readonly definitions: readonly OperationDefinition<OperationParts>[];
  },
  parts: OperationParts,
): readonly Operation[] {
  const bound = bindOperations(definitions, parts).map((one) =>
    one.name === rowInsert && parts.queuesEvents ? { ...one, run: queueRows(parts, now) } : one,
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

/** The files with the keys for the data hosts of tables. */
export function hostKeyFiles({ tables }: Config): (table: string) => string | undefined {
  return (name) => tables.find((table) => table.name === name)?.hostKeyFile;
}

/** What the running of operations needs. */
export function executeParts(
  config: Config,
  store: Store,
  { keyRates }: CallerContext,
): ExecuteParts {
  return {
    keyRates,
    generation: () => store.part(rowLogPart).identity().generation,
    passOn: composePassOn(config, store),
    passedTool: (name, call) => passedTool({ store, now }, name, call),
    goesToOutbox: (name, { keyId }) => {
      // The centre knows visitors without a key better.
      const isRow = name === rowInsert && keyId !== undefined;
      return queuesEvents(config) && (isRow || name === eventInsert);
    },
  };
}

/** Passes writes on to the centre, if there is one. */
function composePassOn(
  { node: { central, keyFile = '' } }: Config,
  store: Store,
): PassOn | undefined {
  if (central === undefined) return undefined;
  return createPassOn({
    store,
    client: createCentralClient(central, store),
    nodeKey: () => readNodeKey(keyFile),
  });
}

/** Whether this node is a counter with a centre. */
function queuesEvents({ node: { role, central } }: Config): boolean {
  return role === 'counter' && central !== undefined;
}

/** The rows that pages show, now and at a moment. */
export function composeRows(
  store: Store,
  authenticate: Authenticate,
  execute: () => Execute,
): { readonly pageRows: RowReader } & Pick<OperationParts, 'rowsFor' | 'pastRows'> {
  const anonymous = (address: ClientAddress) => authenticate({ apikey: undefined, address });
  const parts = { store, execute, anonymous };
  return {
    pageRows: createPageRows(parts),
    rowsFor: createRowsFor(parts),
    pastRows: (moment) => createPastRows(parts, moment),
  };
}

/** What drafts need; their fetched content is in no cache, and a failure there raises no event. */
export function composeDraftParts(
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
  const { store, content, callers, sources } = context;
  const { health, statistics, places } = sources;
  const { bodyBytesMax } = config.fetch;
  const fetch = createFetcher({
    ...{ diallers, health, names, checks, bodyBytesMax, statistics, places },
    via: context.ownNames,
  });
  const direct = withUsers(withOwnFields(withCompression(fetch, content.compressors.responses)));
  return {
    store,
    site: { ...siteParts, fetch: direct },
    rendered: content.newRenderedPages,
    definitions: definitionsOf(context.modules),
    executeOf: (operations) => createExecute(operations, { keyRates: callers.keyRates }),
    withHosts: (bound, parts) => withHosts(config, hosts, bound, parts),
  };
}
