import { families } from '../../../../src/families.ts';
import { uuidv7 } from 'uuidv7';
import { openStore } from '../../../../src/core/log/open.ts';
import type { Notice } from '../../../../src/core/log/shared/entry.ts';
import type { SharedLog } from '../../../../src/core/log/shared/shared-log.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder, type Cleaning } from '../../../folder.ts';
import type { MemoryLog } from './memory-log.ts';
import { joining } from '../../../../src/modules/cluster/log/join.ts';

interface NodeOptions {
  readonly folder?: string;
  readonly heard?: (notice: Notice) => unknown;
  /** See MemoryLog.open. */
  readonly isSlow?: boolean;
  /** Called before the end of the log is read. */
  readonly beforeEnd?: () => Promise<void>;
  /** Whether the node reads no entries until it reads where the log ends. */
  readonly isLate?: boolean;
  readonly uploadProgress?: (rows: number, of: number) => void;
  /** See Sharing.failed. */
  readonly failed?: (error: unknown) => void;
}

/** Opens the store of a node with a shared log in memory. */
export async function openNode(
  t: Cleaning,
  log: MemoryLog,
  options: NodeOptions = {},
): Promise<Store> {
  const { folder = await temporaryFolder(t), heard, isSlow, uploadProgress, beforeEnd } = options;
  const shared = log.open(isSlow);
  const reading = Promise.withResolvers<undefined>();
  if (options.isLate !== true) reading.resolve(undefined);
  const end = async (): Promise<number> => {
    reading.resolve(undefined);
    await beforeEnd?.();
    return shared.end();
  };
  const entries: SharedLog['entries'] = async function* (after, signal) {
    signal.addEventListener('abort', () => {
      reading.resolve(undefined);
    });
    await reading.promise;
    yield* shared.entries(after, signal);
  };
  const store = await openStore({
    families,
    folder,
    now: Date.now,
    newId: uuidv7,
    join: joining({
      open: () => Promise.resolve({ ...shared, end, entries }),
      notice: async (notice) => {
        await heard?.(notice);
      },
      failed: options.failed ?? (() => undefined),
      ...(uploadProgress !== undefined && { uploadProgress }),
    }),
  });
  t.after(() => store.close());
  return store;
}
