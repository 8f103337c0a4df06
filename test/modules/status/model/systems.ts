import { families } from '../../../../src/families.ts';
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { uuidv7 } from 'uuidv7';
import { type AppInstance, compose } from '../../../../src/cli/serve/assembly/compose.ts';
import type { ContentContext } from '../../../../src/cli/serve/assembly/context.ts';
import type { Config } from '../../../../src/core/config/config.ts';
import { RateCounts, TokenBuckets } from '../../../../src/core/fair/token-buckets.ts';
import { OpenModules } from '../../../../src/core/loader.ts';
import { openStore } from '../../../../src/core/log/open.ts';
import { ownNamesOf } from '../../../../src/core/outbound/own-names.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { createWrongKeys } from '../../../../src/core/operations/keys/authenticate.ts';
import { createKeyRates } from '../../../../src/core/operations/keys/key-rates.ts';
import { createLogs, silentLog } from '../../../../src/core/report/log.ts';
import { memoryUse } from '../../../../src/core/report/memory-use.ts';
import { uptimeMs } from '../../../../src/core/values/clock.ts';
import { Failure } from '../../../../src/core/values/failure.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import type { Caller, Scope } from '../../../../src/core/values/key.ts';
import { Passwords } from '../../../../src/modules/access/passwords.ts';
import { AssetFiles } from '../../../../src/modules/assets/asset-files.ts';
import { createAssetPages } from '../../../../src/modules/assets/asset-pages.ts';
import { createVariants } from '../../../../src/modules/assets/variants.ts';
import type { CacheStore } from '../../../../src/modules/cache/cache-store.ts';
import {
  openCacheStore,
  prepareCacheStore,
} from '../../../../src/modules/cache/open-cache-store.ts';
import { createCompressors } from '../../../../src/modules/compression/compressors.ts';
import {
  createPublicFileReplies,
  loadPublicFiles,
} from '../../../../src/modules/console/public-files.ts';
import { SourceHealth } from '../../../../src/modules/proxy/source-health.ts';
import { ServerPlaces } from '../../../../src/core/outbound/server-places.ts';
import { SourceStatistics } from '../../../../src/modules/proxy/source-statistics.ts';
import { createStoredPages } from '../../../../src/modules/rules/pages/stored-pages.ts';
import { createRuleCache, ruleStoreOf } from '../../../../src/modules/rules/rule-cache.ts';
import { LiveAccess } from '../../../../src/modules/status/live-access.ts';
import { StateWatcher, stateVersions } from '../../../../src/modules/status/state-watcher.ts';
import { createAnonymousWrites } from '../../../../src/modules/tables/rows/anonymous-writes.ts';
import { modules } from '../../../../src/modules.ts';
import { testTasks } from '../../../core/background/test-tasks.ts';
import { temporaryFolder, writeFiles } from '../../../folder.ts';
import { readTestConfig, startSite } from '../../../harness.ts';
import { someVisitor } from '../../../visitor.ts';
import { asText } from './values.ts';
import { tableName, tableSchema } from './views.ts';
import type { Answer, Request, World } from './world.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';

/** The system under test: a server, or its operations alone. */
export interface System {
  /** The changes of the log at the start, which insert the keys of requests. */
  readonly start: Pick<World, 'newest' | 'authors' | 'origin'>;
  ask(request: Request): Promise<Answer>;
  /** Inserts another key: a change of the log that concerns no page rule. */
  addKey(): Promise<void>;
  /** The differences that the store finds in its data. */
  differences(): Promise<readonly string[]>;
}

/** Opens a system with its own log; `after` gets the functions that close it. */
export type OpenSystem = (t: { after(clean: () => unknown): void }) => Promise<System>;

const authorCount = 3;
const scopes: readonly Scope[] = ['design', 'read', 'render'];
const ini = `[engine.paged]\npage = /app.html\n[table.${tableName}]\nschema = table.json\n`;
const files = { 'table.json': JSON.stringify(tableSchema) };
const family = 'svc1.userinterface';

/** The operations with a real store, called as the transports call them, without a socket. */
export async function inProcess(t: Parameters<OpenSystem>[0]): Promise<OpenSystem> {
  const folder = await temporaryFolder(t);
  await writeFiles(folder, { ...files, 'server.ini': ini });
  const config = await readTestConfig(join(folder, 'server.ini'));
  const publicFiles = await loadPublicFiles(
    fileURLToPath(new URL('../../../../public', import.meta.url)),
  );
  return async (run) => {
    const data = await temporaryFolder(run);
    const store = await openStore({ families, folder: data, now: jumpingClock(), newId: uuidv7 });
    run.after(() => store.close());
    await prepareCacheStore(data);
    const given = { ...config, server: { ...config.server, data } };
    const answers = openCacheStore(given, { now: Date.now, uptimeMs, log: silentLog });
    run.after(() => answers.close());
    const opened = await OpenModules.open(modules, {
      ...{ store, version: 'test', newId: uuidv7, now: Date.now, log: silentLog },
      emit: () => Promise.resolve(),
      random: Math.random,
      folders: { public: '', docs: '' },
      config: () => given,
      gatherMetrics: () => Promise.resolve([]),
    });
    run.after(() => opened.close());
    const composition = composed(given, { store, publicFiles, answers, modules: opened });
    run.after(() => composition.close());
    return callOperations(composition, store);
  };
}

/** A clock that advances by a few milliseconds, sometimes stops, and sometimes goes back. */
function jumpingClock(): () => number {
  let [ms, looks] = [Date.UTC(2026, 0, 1), 0];
  return () => {
    looks += 1;
    ms += looks % 7 === 0 ? -50 : looks % 3;
    return ms;
  };
}

const renderedPages: ContentContext['renderedPages'] = {
  respond: (_found, given, { open }) => open(given),
  memory: () => ({ name: '', entries: 0, bytes: 0, bytes_max: 0 }),
};

function composed(
  config: Config,
  {
    store,
    publicFiles,
    answers,
    modules: opened,
  }: Pick<ContentContext, 'publicFiles'> & {
    readonly store: Store;
    readonly answers: CacheStore;
    readonly modules: OpenModules;
  },
): AppInstance {
  const destination = new Writable({
    write(_chunk, _encoding, done) {
      done();
    },
  });
  const compressors = createCompressors();
  const assetFiles = new AssetFiles(config.server.data);
  const room = { bytesMax: 0, now: Date.now, log: silentLog };
  const variants = createVariants({ files: assetFiles, ...room });
  const monotonicMs = (): number => performance.now();
  return compose(config, {
    store,
    modules: opened,
    logs: createLogs({ settings: config.log, destination, colour: false, now: Date.now }),
    version: 'test',
    emit: () => Promise.resolve(),
    ownNames: ownNamesOf({ log: '', node: '' }),
    tasks: testTasks(),
    content: {
      publicFiles,
      consoleFiles: new Map(),
      rules: createRuleCache(ruleStoreOf(store), Date.now),
      ownFiles: createPublicFileReplies(compressors.pages),
      storedPages: createStoredPages(compressors),
      assetFiles,
      assetPages: createAssetPages(assetFiles, { compressors, variants }),
      variants,
      renderedPages,
      newRenderedPages: () => renderedPages,
      compressors,
    },
    sources: {
      answers,
      health: new SourceHealth({ monotonicMs, log: silentLog }),
      statistics: new SourceStatistics({ now: Date.now }),
      places: new ServerPlaces(),
    },
    callers: {
      wrongKeys: createWrongKeys(new TokenBuckets({ monotonicMs })),
      passwords: new Passwords({ monotonicMs }),
      keyRates: createKeyRates(new TokenBuckets({ monotonicMs })),
      rates: { take: () => assert.fail(), isElsewhere: false, counts: new RateCounts() },
      keyUses: {
        note: () => undefined,
        count: () => undefined,
        last: () => new Map(),
        counted: () => 0,
      },
      anonymousWrites: createAnonymousWrites(new TokenBuckets({ monotonicMs })),
      visits: {
        count: () => undefined,
        flush: () => Promise.resolve(),
        ofKey: () => [],
        ofAll: noVisits,
        retentionMs: 0,
      },
      requestVisits: {
        flush: () => Promise.resolve(),
        ofPage: () => [],
        ofPages: noVisits,
        ofSite: noVisits,
        retentionMs: 0,
      },
    },
    state: {
      started: '',
      liveAccess: new LiveAccess({ now: Date.now }),
      stateWatcher: new StateWatcher(
        stateVersions({
          ...{ store, cache: answers, now: Date.now },
          gatherMetrics: () => Promise.resolve([]),
          status: () => ({ since: '', state: 'current', restart_needed: [], problems: [] }),
          certificates: () => Promise.resolve([]),
          seriesChangedMs: () => Promise.resolve(0),
        }),
      ),
      status: () => ({ since: '', state: 'current', restart_needed: [], problems: [] }),
      metricsText: () => Promise.resolve(''),
      gatherMetrics: () => Promise.resolve([]),
      certificates: () => Promise.resolve([]),
      memory: () => memoryUse([]),
      hostStates: () => [],
      rowChecks: () => [],
      tasks: () => Promise.resolve([]),
    },
    port: { tls: () => undefined, tlsPort: () => undefined },
    signedIn: { watch: () => undefined },
  });
}

async function callOperations({ serving }: AppInstance, store: Store): Promise<System> {
  const origin = 'http://design.example';
  const call = async (name: string, v: object, more: Partial<Request>, caller: Caller) => {
    const { vk, qk, languages } = more;
    try {
      // A copy, because a transport parses the input of each call.
      const outcome = await serving.execute.run(name, JSON.parse(JSON.stringify(v)), {
        caller,
        vk,
        qk,
        origin,
        fields: languages === undefined ? {} : { 'accept-language': languages },
        visitor: someVisitor({ lang: languages }),
        transport: 'http',
        signal: () => new AbortController().signal,
      });
      if (outcome.kind !== 'data') throw new Error(`${name} answers no data`);
      return answerOf(JSON.parse(JSON.stringify(outcome)) as Partial<Told>);
    } catch (thrown) {
      if (!(thrown instanceof Failure)) throw thrown;
      return answerOf({ error: thrown });
    }
  };
  const by = (keyId: string, may: readonly Scope[]): Caller => ({
    scopes: new Set(may),
    keyId,
    rate: undefined,
    address: '127.0.0.1',
  });
  const addKey = (): Promise<Answer> =>
    call('svc1.key.insert', { name: 'one more', scopes }, {}, by('admin', ['admin']));
  const authors: string[] = [];
  while (authors.length < authorCount) authors.push(asText((await addKey()).data?.id));
  return {
    start: { newest: authorCount, authors, origin },
    ask: ({ a, v, author, ...more }) =>
      call(`${family}.${a}`, v, more, by(authors[author % authorCount] ?? '', scopes)),
    addKey: async () => {
      await addKey();
    },
    differences: () => differencesIn(store),
  };
}

interface Told {
  readonly data: JsonObject;
  readonly error: { readonly code: string; readonly field?: string | undefined };
  readonly vk: string;
  readonly replayed: boolean;
}

function answerOf({ data, error, vk, replayed }: Partial<Told>): Answer {
  if (error !== undefined) {
    const { code, field } = error;
    return { error: { code, ...(field !== undefined && { field }) } };
  }
  return {
    ...(data !== undefined && { data }),
    ...(vk !== undefined && { vk }),
    ...(replayed === true && { replayed }),
  };
}

async function differencesIn(store: Store): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { differences } of store.part(upkeep).verify()) {
    found.push(...differences.map(({ database, what }) => `${database}: ${what}`));
  }
  return found;
}

/** A server in which each author has its own websocket. */
export const overWebsockets: OpenSystem = async (t) => {
  const site = await startSite(t, { ini, files });
  const addKey = async (): Promise<{ id: string; key: string }> =>
    (await site.call('svc1.key.insert', { name: 'one more', scopes })).data;
  const keys = await Promise.all(Array.from({ length: authorCount }, addKey));
  const sockets = await Promise.all(keys.map(({ key }) => site.socket(key)));
  return {
    // The first rows are the admin key of the site and the table of the ini file.
    start: { newest: authorCount + 2, authors: keys.map(({ id }) => id), origin: site.url },
    ask: async ({ a, v, author, vk, qk }) => {
      const socket = sockets[author % authorCount];
      if (socket === undefined) throw new RangeError('an author without a socket');
      const more = { ...(vk !== undefined && { vk }), ...(qk !== undefined && { qk }) };
      return answerOf(await socket.call(`${family}.${a}`, v, more));
    },
    addKey: async () => {
      await addKey();
    },
    differences: async () => {
      const store = await openStore({
        families,
        folder: join(site.folder, 'data'),
        now: Date.now,
        newId: uuidv7,
        readOnly: true,
      });
      try {
        return await differencesIn(store);
      } finally {
        await store.close();
      }
    },
  };
};

async function* noVisits(): AsyncGenerator<never> {
  // Nothing is counted.
}
