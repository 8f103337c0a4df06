import { copyInThread } from '../copy-thread.ts';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { BackgroundTasks } from '../../../core/background/tasks.ts';
import type { Config } from '../../../core/config/config.ts';
import type { Emit } from '../../../core/log/events/emit.ts';
import { openingLockFile } from '../../../core/log/folder/data-folder.ts';
import { claimFolder, takeOverFolder } from '../../../core/log/folder/folder-claim.ts';
import { Notices } from '../../../core/log/shared/entry.ts';
import type { SharedPart, Store } from '../../../core/log/store.ts';
import type { Log, Logs } from '../../../core/report/log.ts';
import { newId, now } from '../../../core/values/clock.ts';
import { Failure } from '../../../core/values/failure.ts';
import { version } from '../../../core/values/version.ts';
import {
  prepareCacheStore,
  settleCacheStore,
  shareCacheStore,
} from '../../../modules/cache/open-cache-store.ts';
import { createCentralClient, readNodeKey } from '../../../modules/nodes/central-client.ts';
import type { CopyParts } from '../../../modules/nodes/copy-rows.ts';
import { copyFirst } from '../../../modules/nodes/copy.ts';
import { replaceWithCopy } from '../../../modules/nodes/log/carry-over.ts';
import { NodeService } from '../../../modules/nodes/node-service.ts';
import type { WaymarkClient } from '../../../modules/peers/waymark-client.ts';
import { writeConfiguredTables } from '../../../modules/tables/operations/configured-tables.ts';
import { prepareVisitDatabase } from '../../../modules/visits/visit-database.ts';
import { openData } from '../../open-data.ts';
import { backgroundTasks, emitFor } from './background.ts';
import { importOnce } from './first-start.ts';
import { rowLogPart } from '../../../modules/nodes/log/open-row-log.ts';

/** A process that serves from the same data folder, and hands it over. */
export interface Predecessor {
  readonly pid: number;
  /** Its data folder. */
  readonly data: string;
}

/** How a process comes to its data folder. */
export interface FolderOptions {
  readonly predecessor?: Predecessor | undefined;
  /** Aborts when the process has to stop. */
  readonly signal?: AbortSignal | undefined;
}

/** A data folder that this process has claimed and prepared. */
interface PreparedData {
  readonly store: Store;
  /** The notices of the cluster, for the process that serves. */
  readonly notices: Notices;
  /** See Waymark.copied. */
  readonly copied: Promise<void>;
  /** Claims the folder of the predecessor, once this process serves; does nothing without one. */
  takeOver(): Promise<void>;
  /** Records that another process has claimed the folder, and uses the cache together with it. */
  handOver(): void;
  /** Closes the store and releases the folder. */
  release(): Promise<void>;
}

/**
 * Claims a data folder, and imports the first rules into an empty one, or copies the log of the
 * centre into it. Rejects as startWaymark does, and leaves nothing open then.
 */
export async function prepareData(
  config: Config,
  logs: Logs,
  {
    predecessor,
    signal = new AbortController().signal,
    tasks = backgroundTasks(logs),
  }: FolderOptions & { readonly tasks?: BackgroundTasks } = {},
): Promise<PreparedData> {
  const { data } = config.server;
  const { pid } = process;
  const notices = new Notices(logs.log);
  // A changed ini file may name another folder, which the predecessor does not have.
  const from = predecessor?.data === data ? predecessor.pid : undefined;
  let claim = from === undefined ? await claimFolder(data, { pid }) : undefined;
  let store: Store | undefined;
  let node: NodeService | undefined;
  let isHandedOver = from !== undefined;
  const release = async (): Promise<void> => {
    await node?.stop();
    await store?.close();
    if (store !== undefined && !isHandedOver) await settleCacheStore(data);
    await claim?.release();
  };
  try {
    if (from === undefined) await prepareOwnDatabases(data, logs);
    else await requireShareable(config, data);
    if (config.node.central !== undefined) await replaceWithCopy(data);
    const cluster = { settings: config.cluster, log: logs.log, notices };
    const { node: settings } = config;
    store = await openData(data, {
      ...{ isInUse: from !== undefined, cluster, node: settings },
      layoutChanged: (former, current) => {
        const change = `Changed the layout of the data folder from ${former} to ${current}`;
        logs.log.info({}, `${change}. Versions before this one cannot open it any more.`);
      },
    });
    if (store.shared !== undefined) await catchUp(store, store.shared, logs);
    node = await startNode(config, logs, {
      ...{ store, signal, tasks },
      emit: emitFor(config, logs, store),
    });
    if (node === undefined) {
      // The rows to import need their tables.
      await writeConfiguredTables(config, { store, newId, log: logs.log });
      await importOnce(store, config, logs);
    }
    return {
      store,
      notices,
      copied: node?.copied ?? new Promise(() => undefined),
      async takeOver() {
        if (from === undefined) return;
        claim = await takeOverFolder(data, { pid, from });
        isHandedOver = false;
      },
      handOver() {
        isHandedOver = true;
      },
      release,
    };
  } catch (error) {
    await release();
    throw error;
  }
}

/** Prepares the databases besides that of the log. */
async function prepareOwnDatabases(data: string, { log }: Logs): Promise<void> {
  await prepareCacheStore(data);
  const damage = await prepareVisitDatabase(data);
  if (damage === undefined) return;
  log.error(
    { err: damage },
    'The visit counts are damaged. They start at zero; see visits-damaged.',
  );
}

/**
 * Waits until the node has the changes that the cluster has now. A node that has data serves on
 * from that if the cluster does not answer.
 */
async function catchUp(store: Store, shared: SharedPart, { log }: Logs): Promise<void> {
  try {
    await shared.catchUp();
  } catch (error) {
    const isAway = error instanceof Failure && error.code === 'unavailable';
    if (!isAway || store.seq() === 0) throw error;
    log.warn(
      { err: error },
      'The cluster does not answer. The server answers from its own data, and refuses changes.',
    );
  }
}

/** Rejects with the reason if two processes cannot use a data folder at the same time. */
async function requireShareable({ node }: Config, data: string): Promise<void> {
  if (node.central !== undefined) {
    throw new Failure(
      'conflict',
      'two processes of a node would both follow its centre: stop the server, then start it',
    );
  }
  if (!(await isLockedByOpeners(data))) {
    throw new Failure(
      'conflict',
      'the running version cannot share its data with a new one: stop the server, then start it',
    );
  }
  await shareCacheStore(data);
}

/** Whether the process that serves from a folder pauses while another one opens it. */
function isLockedByOpeners(data: string): Promise<boolean> {
  return stat(join(data, openingLockFile)).then(
    () => true,
    () => false,
  );
}

/**
 * Starts to follow the centre of a configuration; a new node copies its log first. Resolves to
 * undefined if there is no centre. Rejects with `conflict` if the data folder does not fit the role
 * of the node, and as copyFirst does.
 */
async function startNode(
  { node, server: { data } }: Config,
  { log }: Logs,
  {
    store,
    signal,
    tasks,
    emit,
  }: {
    readonly store: Store;
    readonly signal: AbortSignal;
    readonly tasks: BackgroundTasks;
    readonly emit: Emit;
  },
): Promise<NodeService | undefined> {
  const { follows } = store.part(rowLogPart).identity();
  const { central, keyFile, role, name, place } = node;
  if (central === undefined || keyFile === undefined) {
    if (follows === undefined) return undefined;
    throw new Failure(
      'conflict',
      `the data folder ${data} is a copy of that of ${follows.central}: set \`central\` of ` +
        '[node] again, or give this server a folder of its own',
    );
  }
  const client = createCentralClient(central, store);
  const parts: CopyParts & { readonly log: Log } = {
    store,
    central: await centralOf(client, keyFile),
    node: { name, place, role: role === 'counter' ? 'counter' : 'replica' },
    log,
  };
  if (follows?.isPartial !== false) await copyFirst(parts, signal);
  else if (follows.central !== central) {
    await store.part(rowLogPart).follow(store.part(rowLogPart).identity(), central);
  }
  const service = new NodeService({
    ...parts,
    ...{ folder: data, openStore: openData, copyInThread, version, now, emit, tasks },
  });
  service.start();
  return service;
}

/** A centre with the key of a file. While the file cannot be read, the last key remains. */
async function centralOf(client: WaymarkClient, keyFile: string): Promise<CopyParts['central']> {
  let apikey = await readNodeKey(keyFile);
  return {
    client,
    get apikey() {
      return apikey;
    },
    readKey: async () => {
      apikey = await readNodeKey(keyFile).catch(() => apikey);
    },
  };
}
