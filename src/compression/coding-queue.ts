import { LRUCache } from 'lru-cache';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';
import type { compressWhole } from './compression.ts';
import type { HeldPage } from '../http/held-page.ts';
import { variantPage, type Variant } from './variant.ts';

/** Where variants of pages are made, one by one, and kept. */
interface CodingQueue {
  /** Has a variant of a page made, unless too much is waiting already. */
  begin(identity: HeldPage, variant: Variant): void;
  /** Says that a variant was of use, so that others are let go of first. */
  used(variant: Variant): void;
  /** What it holds now. */
  memory(): CacheUse;
  /** Lets go of everything, and begins nothing any more. */
  close(): void;
}

/** What a variant takes besides its bytes: its fields, and its place among the others. */
const variantBytes = 2_048;

/** Makes a queue, bound by the bytes of what it keeps and of the pages that wait. */
export function createCodingQueue({
  compress,
  heldBytesMax,
  waitingBytesMax,
}: {
  readonly compress: typeof compressWhole;
  readonly heldBytesMax: number;
  readonly waitingBytesMax: number;
}): CodingQueue {
  const held = new LRUCache<Variant, HeldPage>({
    maxSize: heldBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + variantBytes,
    dispose: (_, variant) => {
      variant.page = undefined;
      variant.absence = 'unasked';
    },
  });
  let waiting: { readonly identity: HeldPage; readonly variant: Variant }[] = [];
  let waitingBytes = 0;
  let isWorking = false;
  let isClosed = false;

  async function work(): Promise<void> {
    isWorking = true;
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const page = await make(job.identity, job.variant);
      waitingBytes -= job.identity.bytes.length;
      if (!isClosed) keep(job.variant, page);
    }
    isWorking = false;
  }

  async function make(identity: HeldPage, { coding }: Variant): Promise<HeldPage | undefined> {
    try {
      return variantPage(identity, coding, await compress(identity.bytes, coding));
    } catch {
      // There is no memory for it, and the page goes on being sent as it is.
      return undefined;
    }
  }

  function keep(variant: Variant, page: HeldPage | undefined): void {
    if (page !== undefined) held.set(variant, page);
    if (held.has(variant)) variant.page = page;
    else variant.absence = 'useless';
  }

  return {
    begin(identity, variant) {
      const bytes = identity.bytes.length;
      if (isClosed || waitingBytes + bytes > waitingBytesMax) return;
      variant.absence = 'begun';
      waiting.push({ identity, variant });
      waitingBytes += bytes;
      if (!isWorking) void work();
    },
    used(variant) {
      held.get(variant);
    },
    memory: () => cacheUse('compressed pages', held),
    close() {
      isClosed = true;
      waiting = [];
      held.clear();
    },
  };
}
