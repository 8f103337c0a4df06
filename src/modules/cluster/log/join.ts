import { Failure } from '../../../core/values/failure.ts';
import { identityOf } from '../../../core/log/identity.ts';
import type { LogPart, SharedPart } from '../../../core/log/store.ts';
import type { Notice } from '../../../core/log/shared/entry.ts';
import type { JoinLog, OpenLog } from '../../../core/log/open.ts';
import type { SharedLog } from '../../../core/log/shared/shared-log.ts';
import { createSharedValues } from '../../../core/log/shared/shared-values.ts';
import { SharedFollower } from './shared-follower.ts';
import { SharedWriter } from './shared-writer.ts';
import { createClusterTask, isTaskKey, tasksIn } from './task-turn.ts';
import {
  memberOf,
  putMember,
  putSharedPlace,
  removeSharedPlace,
  sharedPlace,
} from '../../../core/log/shared/shared-place.ts';
import { uploadHistory } from './upload.ts';

/** The shared log of a store, and the server's reactions to it. */
export interface Sharing {
  /**
   * Opens the shared log; `id` is that of the log that the folder has a part of. The store closes
   * it. May resolve before the log can be reached, if an id is given.
   */
  readonly open: (id: string | undefined) => Promise<SharedLog>;
  /**
   * If set, an empty shared log gets the history of the folder, instead of a refusal. Called with
   * the number of uploaded rows and of all rows.
   */
  readonly uploadProgress?: (rows: number, of: number) => void;
  /**
   * Does what a notice of any node says; the same one may come twice. The log waits for it, so it
   * must not reject (Notices).
   */
  readonly notice: (notice: Notice) => Promise<void>;
  /** Called when the node cannot follow the shared log, each time it has tried. */
  readonly failed: (error: unknown) => void;
}

/** How a store becomes part of a cluster. Rejects with `conflict` for a history of its own. */
export function joining(sharing: Sharing): JoinLog {
  return async (given) => {
    const { databases, condition } = given;
    const listeners = new Set<() => void>();
    const valuesChanged = (): void => {
      for (const listener of listeners) listener();
    };
    const { shared, follower } = await joinCluster({ ...given, valuesChanged }, sharing);
    const member = memberOf(databases);
    const writer = new SharedWriter({ databases, condition, shared, follower, member });
    const catchUp = async (): Promise<void> => follower.reach(await shared.end());
    const turns = { monotonicMs: () => performance.now(), catchUp, member, newId: given.newId };
    const part: SharedPart = {
      state() {
        const { failure } = follower;
        if (failure === undefined) return shared.state();
        return { isConnected: false, problem: failure.message };
      },
      tell: (notice) => writer.tell(notice),
      catchUp,
      member,
      tasks: () => tasksIn(databases),
      broadcast: (data) => shared.broadcast(data),
      onBroadcast: (listener) => shared.onBroadcast(listener),
      files: shared.files,
      values: createSharedValues(databases, writer, listeners),
      task: (name) => createClusterTask(databases, name, { ...turns, writer }),
    };
    const close = async (): Promise<void> => {
      await writer.close();
      await follower.stop();
      await shared.close();
    };
    return { writer, part, close };
  };
}

interface JoinParts extends OpenLog {
  /** Called after values may have changed: see Values. */
  readonly valuesChanged: () => void;
}

/** Joins the cluster, and follows the shared log. */
async function joinCluster(
  parts: JoinParts,
  sharing: Sharing,
): Promise<{ readonly shared: SharedLog; readonly follower: SharedFollower }> {
  const { notice, failed } = sharing;
  const shared = await sharing.open(sharedPlace(parts.databases)?.id);
  try {
    await requirePlace(parts, shared, sharing);
  } catch (error) {
    await shared.close();
    throw error;
  }
  const follower = new SharedFollower({ ...parts, shared, notice, failed });
  follower.start();
  return { shared, follower };
}

/** Makes sure that the folder is a part of the cluster. Rejects as joinCluster. */
async function requirePlace(
  parts: JoinParts,
  shared: SharedLog,
  { uploadProgress }: Sharing,
): Promise<void> {
  const { databases, reads, queue, newId } = parts;
  const place = sharedPlace(databases);
  const { id, follows } = identityOf(databases);
  if (place !== undefined && place.id !== shared.id) throw otherClusterFailure();
  if (place === undefined) {
    if (follows !== undefined || (reads.seq() > 0 && uploadProgress === undefined))
      throw historyFailure();
    if (reads.seq() > 0 && id !== shared.id) throw historyFailure();
    if (uploadProgress !== undefined) await uploadHistory(parts, shared, uploadProgress);
    else
      await queue.write(() => () => {
        databases.meta.putSync('log', shared.id);
        putSharedPlace(databases, { id: shared.id, position: 0 });
        return { result: undefined, bytes: 0 };
      });
  }
  if (memberOf(databases) === '')
    await queue.write(() => () => {
      putMember(databases, newId());
      return { result: undefined, bytes: 0 };
    });
}

/** The part of a data folder in a cluster: `leave` makes it that of a single machine. */
export const membership: LogPart<{ leave(): Promise<void> }> = {
  open: ({ databases, queue }) => ({
    leave: () =>
      queue.write(() => () => {
        removeSharedPlace(databases);
        for (const name of [...databases.delivery.getKeys()].filter(isTaskKey)) {
          databases.delivery.removeSync(name);
        }
        return { result: undefined, bytes: 0 };
      }),
  }),
};

function otherClusterFailure(): Failure {
  return new Failure(
    'conflict',
    'The data folder is part of another cluster than the one that the ini file names.',
  );
}

function historyFailure(): Failure {
  return new Failure(
    'conflict',
    'The data folder has a history of its own, which the cluster does not know: use an empty ' +
      'folder, or begin a new cluster with this history by `waymark cluster init`.',
  );
}
