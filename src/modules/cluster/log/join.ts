import { Failure } from '../../../core/values/failure.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { identityOf } from '../../nodes/log/open-row-log.ts';
import type { WriteQueue } from '../../../core/log/write/write-queue.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { Notice } from '../../../core/log/shared/entry.ts';
import { SharedFollower } from './shared-follower.ts';
import type { SharedLog } from '../../../core/log/shared/shared-log.ts';
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

interface JoinParts {
  readonly databases: Databases;
  readonly reads: Reads;
  readonly queue: WriteQueue;
  readonly wake: () => void;
  /** Called after values may have changed: see Values. */
  readonly valuesChanged: () => void;
  readonly newId: () => string;
}

/**
 * Makes a data folder a part of a cluster, and follows the shared log. Rejects with `conflict` for
 * a folder with a history that the shared log does not have.
 */
export async function joinCluster(
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

/** Makes a data folder that of a single machine. */
export async function leaveShared(databases: Databases, queue: WriteQueue): Promise<void> {
  await queue.write(() => () => {
    removeSharedPlace(databases);
    return { result: undefined, bytes: 0 };
  });
}

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
