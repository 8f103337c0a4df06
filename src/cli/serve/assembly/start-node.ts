import type { BackgroundTasks } from '../../../core/background/tasks.ts';
import type { Config } from '../../../core/config/config.ts';
import { openData } from '../../open-data.ts';
import { now } from '../../../core/values/clock.ts';
import { Failure } from '../../../core/values/failure.ts';
import { createCentralClient, readNodeKey } from '../../../modules/nodes/central-client.ts';
import { copyFirst } from '../../../modules/nodes/copy.ts';
import type { CopyParts } from '../../../modules/nodes/copy-rows.ts';
import { NodeService } from '../../../modules/nodes/node-service.ts';
import type { WaymarkClient } from '../../../modules/peers/waymark-client.ts';
import type { Log, Logs } from '../../../core/report/log.ts';
import type { Emit } from '../../../core/log/events/emit.ts';
import type { Store } from '../../../core/log/store.ts';
import { version } from '../../../core/values/version.ts';

/**
 * Starts to follow the centre of a configuration; a new node copies its log first. Resolves to
 * undefined if there is no centre. Rejects with `conflict` if the data folder does not fit the role
 * of the node, and as copyFirst does.
 */
export async function startNode(
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
  const { follows } = store.rowLog.identity();
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
    await store.rowLog.follow(store.rowLog.identity(), central);
  }
  const service = new NodeService({
    ...parts,
    ...{ folder: data, openStore: openData, version, now, emit, tasks },
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
