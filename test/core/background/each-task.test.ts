import { storedDrafts } from '../../../src/modules/drafts/log/family.ts';
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import {
  type ConfigResults,
  configurationWatch,
} from '../../../src/cli/serve/configuration-watch.ts';
import type { LogPart, Store, ReadFamily } from '../../../src/core/log/store.ts';
import type { BackgroundTasks, Task } from '../../../src/core/background/tasks.ts';
import { watchConfig } from '../../../src/core/config/watch.ts';
import { createConnector, createDialler } from '../../../src/core/outbound/dialler.ts';
import { type Log, silentLog } from '../../../src/core/report/log.ts';
import { Certificates } from '../../../src/core/server/tls/certificates.ts';
import { TicketKey } from '../../../src/core/server/tls/ticket-key.ts';
import { ClientAuthorities } from '../../../src/modules/access/client-authorities.ts';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { type RenewalParts, Renewals } from '../../../src/modules/acme/renewals.ts';
import { AssetFiles } from '../../../src/modules/assets/asset-files.ts';
import { assetKeeping } from '../../../src/modules/assets/asset-keeper.ts';
import { assetFollowing } from '../../../src/modules/assets/missing-files.ts';
import { scheduledPublishing } from '../../../src/modules/drafts/operations/scheduled-publisher.ts';
import { createHostClient } from '../../../src/modules/hosts/host-client.ts';
import { TableHosts } from '../../../src/modules/hosts/hosts.ts';
import { createCentralClient } from '../../../src/modules/nodes/central-client.ts';
import { copyFirst } from '../../../src/modules/nodes/copy.ts';
import { Members } from '../../../src/modules/nodes/members.ts';
import { NodeService } from '../../../src/modules/nodes/node-service.ts';
import { nodeWatching } from '../../../src/modules/nodes/node-watch.ts';
import { OutboxSender } from '../../../src/modules/nodes/outbox-sender.ts';
import { seriesRecording } from '../../../src/modules/status/series-recorder.ts';
import { indexBuilder, indexBuilding } from '../../../src/modules/tables/log/index-build.ts';
import { createRowChecks } from '../../../src/modules/tables/operations/row-checks.ts';
import { createAuthority } from '../../certificates.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { readTestConfig, startSite } from '../../harness.ts';
import { noDns, notOnDemand } from '../../modules/acme/no-dns.ts';
import { scheduleParts } from '../../modules/drafts/operations/schedule-parts.ts';
import { nodeKey } from '../../modules/nodes/rig.ts';
import {
  clocksAt,
  start as startMs,
  startDeliverer,
} from '../../modules/webhooks/deliverer-rig.ts';
import { commit, scratchStore } from '../log/scratch.ts';
import { MemoryLog } from '../log/shared/memory-log.ts';
import { openNode } from '../log/shared/open-node.ts';
import { testTasks } from './test-tasks.ts';
import { nodesPart } from '../../../src/modules/nodes/log/node-states.ts';
import { outboxPart } from '../../../src/modules/nodes/log/outbox-entries.ts';
import { storedTables } from '../../../src/modules/tables/log/family.ts';

/** What a case gets: the tasks, and their log. */
interface Rig {
  readonly tasks: BackgroundTasks;
  readonly log: Log;
}

/** A task of the product that meets one error, and then works. */
type Case = (t: TestContext, rig: Rig) => Promise<void> | void;

const [now, newId] = [Date.now, uuidv7];
const authority = createAuthority();

/** An object whose method throws the first time. */
function brokenOnce<T extends object>(whole: T, method: keyof T): T {
  let isBroken = true;
  return new Proxy(whole, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === method && isBroken) {
        return () => {
          isBroken = false;
          throw new Error('EIO: i/o error, read');
        };
      }
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A store whose part throws, the first time that a method is used. */
function withBroken<P extends object>(store: Store, broken: LogPart<P>, method: keyof P): Store {
  const whole = brokenOnce(store.part(broken), method);
  const part = <O extends object>(key: LogPart<O>): O =>
    Object.is(key, broken) ? (whole as unknown as O) : store.part(key);
  return { ...store, part };
}

/** A store whose reads of a family throw, the first time that a method is used. */
function withBrokenReads<R extends object>(
  store: Store,
  broken: ReadFamily<R>,
  method: keyof R,
): Store {
  const whole = brokenOnce(store.of(broken), method);
  const of = <O extends object>(key: ReadFamily<O>): O =>
    Object.is(key, broken) ? (whole as unknown as O) : store.of(key);
  return { ...store, of };
}

/** A function that rejects the first time. */
function failingOnce<A extends readonly unknown[], R>(
  act: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  let isBroken = true;
  return async (...args) => {
    if (!isBroken) return act(...args);
    isBroken = false;
    throw new Error('EMFILE: too many open files');
  };
}

const started =
  (make: (t: TestContext, rig: Rig) => Promise<Task> | Task): Case =>
  async (t, rig) => {
    rig.tasks.start(await make(t, rig));
  };

async function assetsOf(t: TestContext): Promise<AssetFiles> {
  return new AssetFiles(await temporaryFolder(t));
}

const acmeOf = (hosts: readonly string[]): RenewalParts['acme'] => ({
  ...{ hosts, directory: 'https://ca.example/dir', email: 'admin@example.com' },
  ...{ profile: undefined, eabKid: undefined, eabKeyFile: undefined, caFile: undefined },
  ...{ allowPrivate: [], ...noDns, ...notOnDemand },
});

async function acmeFolder(t: TestContext): Promise<AcmeFolder> {
  const folder = new AcmeFolder(await temporaryFolder(t), acmeOf(['shop.example']));
  await folder.prepare();
  return folder;
}

/** Starts renewals whose orders are answered at once. */
function startRenewals(
  t: TestContext,
  { tasks, log }: Rig,
  more: Partial<RenewalParts> & Pick<RenewalParts, 'store'>,
): void {
  const renewals = new Renewals({
    ...{ acme: acmeOf(['shop.example']), challenges: ['http-01'], tasks, log, now },
    random: () => 0.5,
    order: async ({ host }) => (await authority).issue([host], { days: 90 }),
    renewalInfo: () => Promise.resolve(undefined),
    wait: async (_ms, signal) => {
      await once(signal, 'abort');
      signal.throwIfAborted();
    },
    ...more,
  });
  renewals.start();
  t.after(() => renewals.stop());
}

/** A node with a copy of the log of a centre, whose key cannot be read the first two times. */
async function followingNode(t: TestContext, { tasks, log }: Rig) {
  const centre = await startSite(t);
  const store = await scratchStore(t);
  const apikey = await nodeKey(centre, 'copy');
  const [client, node] = [
    createCentralClient(centre.url, store),
    { name: 'copy', role: 'replica', place: undefined } as const,
  ];
  await copyFirst({ store, node, log, central: { client, apikey } }, t.signal);
  let reads = 0;
  const readKey = (): Promise<void> => {
    reads += 1;
    return reads > 2 ? Promise.resolve() : Promise.reject(new Error('EMFILE: too many open files'));
  };
  const service = new NodeService({
    ...{ store, node, log, tasks, now, version: '1', folder: 'none' },
    central: { client, apikey, readKey },
    openStore: () => assert.fail(),
    copyInThread: () => assert.fail(),
    emit: () => Promise.resolve(),
  });
  service.start();
  t.after(() => service.stop());
}

/** A table whose rows another server has. */
async function tableHost(
  t: TestContext,
  { tasks, log }: Rig,
  breaks: 'the client' | 'the look',
): Promise<void> {
  const host = await startSite(t);
  await host.call('svc1.table.insert', { name: 'lamps', schema: {}, read: ['anonymous'] });
  const folder = await temporaryFolder(t);
  const ini = '[server]\nlisten = 127.0.0.1:0\n[fetch]\nallow_private = 127.0.0.0/8, ::1/128\n';
  await writeFiles(folder, { 'server.ini': ini });
  const { fetch } = await readTestConfig(join(folder, 'server.ini'));
  const dialler = createDialler(fetch);
  const client = createHostClient({ dialler, connect: createConnector(fetch), via: 'test' });
  const used = breaks === 'the client' ? brokenOnce(client, 'connect') : client;
  const store = await scratchStore(t);
  await commit(store, {
    ...{ family: 'table', id: uuidv7(), action: 'insert' },
    data: { name: 'lamps', host: `${host.url}/svc1/ws`, schema: {} },
  });
  const hosts = new TableHosts({
    ...{ newId, now, tasks, log },
    store: breaks === 'the look' ? withBrokenReads(store, storedTables, 'tablesAfter') : store,
    client: () => used,
    keyFileOf: () => undefined,
  });
  tasks.start(hosts.task);
  t.after(async () => {
    await tasks.stop();
    await dialler.close();
  });
}

/** A deliverer of a hook, with an event. */
async function delivery(
  t: TestContext,
  { tasks }: Rig,
  more: Partial<Parameters<typeof startDeliverer>[1]>,
): Promise<void> {
  const rig = await startDeliverer(t, {
    ...{ folder: await temporaryFolder(t), clocks: clocksAt(startMs), tasks },
    ...more,
  });
  // The window of a sender has failures when it breaks.
  rig.status = 500;
  await rig.insertEvents();
  await rig.until(1);
}

const cases: Readonly<Record<string, Case>> = {
  index_builder: started(async (t, { log }) =>
    indexBuilding({ store: withBroken(await scratchStore(t), indexBuilder, 'build'), log }),
  ),
  row_checks: started(
    async (t, { log }) =>
      createRowChecks({
        store: withBrokenReads(await scratchStore(t), storedTables, 'tablesAfter'),
        log,
      }).task,
  ),
  scheduled_publishing: started(async (t) => {
    const store = withBrokenReads(await scratchStore(t), storedDrafts, 'draftsIn');
    return scheduledPublishing(scheduleParts({ store, newId, now }));
  }),
  asset_keeper: started(async (t, { log }) => {
    const [files, store] = [await assetsOf(t), await scratchStore(t)];
    return assetKeeping({
      ...{ files: brokenOnce(files, 'clean'), store, now, log },
      retentionMs: () => 0,
    });
  }),
  asset_follower: started(async (t, { log }) => {
    const files = await assetsOf(t);
    const missing = { get: () => Promise.resolve() };
    return assetFollowing({
      files: brokenOnce(files, 'list'),
      store: await scratchStore(t),
      missing,
      log,
    });
  }),
  series_recorder: started(async (t) => {
    const folder = await temporaryFolder(t);
    const gather = failingOnce(() => Promise.resolve([]));
    return seriesRecording({ folder, gather, now });
  }),
  silent_nodes: started(async (t, { log }) => {
    const store = withBroken(await scratchStore(t), nodesPart, 'all');
    const node = { name: 'web', role: 'central' } as const;
    const emit = (): Promise<void> => Promise.resolve();
    const parts = { store, emit, node, version: '1', now, log };
    return nodeWatching(parts, 1)[0] ?? assert.fail();
  }),
  cluster_members: started(async (t, { log }) => {
    const store = await openNode(t, new MemoryLog());
    const shared = brokenOnce(store.shared ?? assert.fail(), 'broadcast');
    const node = { name: 'web', role: 'central' } as const;
    return new Members({ store, shared, node, version: '1', now, log }).task;
  }),
  table_hosts: (t, rig) => tableHost(t, rig, 'the look'),
  table_host: (t, rig) => tableHost(t, rig, 'the client'),
  centre_follower: followingNode,
  centre_report: followingNode,
  outbox: started(async (t, { log }) => {
    const store = withBroken(await scratchStore(t), outboxPart, 'tidy');
    const central = { client: createCentralClient('http://127.0.0.1:9', store), apikey: '' };
    const node = { name: 'shop', role: 'counter', place: undefined } as const;
    const emit = (): Promise<void> => Promise.resolve();
    return new OutboxSender({ store, central, node, log, now, emit }).task;
  }),
  webhook_delivery: (t, rig) => {
    const claim = failingOnce(() => Promise.resolve({ release: () => Promise.resolve() }));
    return delivery(t, rig, { claim, retryMs: [1] });
  },
  webhook_sender: (t, rig) =>
    delivery(t, rig, { report: failingOnce(() => Promise.resolve()), retryMs: [1] }),
  certificate_renewal: async (t, rig) => {
    const acme = acmeOf(['shop.example']);
    const hosts = new Proxy(acme.hosts, {});
    let isBroken = true;
    startRenewals(t, rig, {
      store: await acmeFolder(t),
      acme: {
        ...acme,
        get hosts() {
          if (!isBroken) return hosts;
          isBroken = false;
          throw new Error('a bug');
        },
      },
    });
  },
  certificate_states: async (t, rig) => {
    const store = brokenOnce(await acmeFolder(t), 'changes');
    const cluster = {
      ...{ node: 'one', take: () => Promise.resolve(), release: () => Promise.resolve() },
      encryptAgain: () => Promise.resolve(),
    };
    startRenewals(t, rig, { store, cluster });
  },
  certificate_watch: async (t, { tasks, log }) => {
    const acme = brokenOnce(await acmeFolder(t), 'changes');
    const certificates = await Certificates.open([], acme, { log, now, tasks });
    t.after(() => certificates.close());
  },
  certificate_expiry: async (t, { tasks, log }) => {
    const folder = await temporaryFolder(t);
    const files = { certFile: join(folder, 'c.pem'), keyFile: join(folder, 'k.pem') };
    const pair = await (await authority).issue(['shop.example']);
    await writeFile(files.certFile, pair.cert);
    await writeFile(files.keyFile, pair.key);
    let times = 0;
    const clock = (): number => {
      times += 1;
      if (times === 2) throw new Error('no clock');
      return Date.now();
    };
    const parts = { log, tasks, now: clock, checkMs: 1 };
    const certificates = await Certificates.open([{ host: undefined, ...files }], undefined, parts);
    t.after(() => certificates.close());
  },
  client_authority_watch: async (t, { tasks, log }) => {
    const file = join(await temporaryFolder(t), 'ca.pem');
    await writeFile(file, (await (await authority).issue(['ca.example'])).cert);
    const failing = brokenOnce(log, 'error');
    const authorities = new ClientAuthorities({ log: failing, tasks, changed: () => undefined });
    t.after(() => authorities.close());
    await authorities.set([{ origin: '*', clientCertificate: file }]);
    // The watch tells about it, with a log that fails the first time.
    await rm(file);
  },
  configuration_watch: async (t, { tasks }) => {
    const folder = await temporaryFolder(t);
    const file = join(folder, 'server.ini');
    await writeFile(file, '[server]\n');
    const config = await readTestConfig(file);
    const read = () => Promise.resolve({ ok: true, config } as const);
    const watch = ({ current, signal, watching }: Parameters<ConfigResults>[0]) =>
      watchConfig({ file, current, read, now: Date.now, signal, watching });
    let isBroken = true;
    const results: ConfigResults = (given) => {
      if (!isBroken) return watch(given);
      isBroken = false;
      throw new Error('ENOSPC: no space for another watch');
    };
    tasks.start(configurationWatch({ config, results, reload: () => undefined }));
  },
  ticket_key: (_t, { tasks }) => {
    const key = new TicketKey();
    let uses = 0;
    key.follow(() => {
      uses += 1;
      if (uses === 2) throw new Error('no entropy');
    });
    tasks.start(key.rotation(1));
  },
};

suite('each task in the background', () => {
  for (const [name, begin] of Object.entries(cases)) {
    test(`${name} goes on after an error`, async (t) => {
      const goesOn = Promise.withResolvers<undefined>();
      const log: Log = {
        ...silentLog,
        info: () => {
          const state = tasks.states().find(({ task }) => task === name);
          if (failuresOf(tasks, name) > 0 && state?.problem === null) goesOn.resolve(undefined);
        },
      };
      const tasks = testTasks(log, async () => {
        await setImmediate();
      });
      t.after(() => tasks.stop());
      await begin(t, { tasks, log });
      await goesOn.promise;
    });
  }

  test('has a case here', async () => {
    const source = join(import.meta.dirname, '../../../src');
    const names = new Set<string>();
    for (const file of await readdir(source, { recursive: true })) {
      if (!file.endsWith('.ts')) continue;
      const text = await readFile(join(source, file), 'utf8');
      if (!text.includes('background/tasks.ts')) continue;
      for (const [, name = ''] of text.matchAll(/name: '(\w+)',\s+title: /g)) names.add(name);
    }
    assert.deepEqual(Object.keys(cases).sort(), [...names].sort());
  });
});

function failuresOf(tasks: BackgroundTasks, name: string): number {
  const samples = tasks.metrics()[0]?.samples ?? [];
  return samples.find(({ labels }) => labels.task === name)?.value ?? 0;
}
