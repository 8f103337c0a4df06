import { LRUCache } from 'lru-cache';
import {
  type Answered,
  type Page,
  type PageWithSource,
  replyWithPage,
} from '../../core/http/content/page-reply.ts';
import type { Reply } from '../../core/http/reply.ts';
import { type ByCoding, preferredCodings } from '../../core/http/representation/coding.ts';
import type { ContentRequest, Fields } from '../../core/http/request.ts';
import { withVary } from '../../core/http/vary.ts';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { MIB } from '../../core/values/units.ts';
import { compressBest } from './compression.ts';
import {
  type PageVariant,
  isWorthCompressing,
  newVariants,
  pageByTag,
  variantPage,
} from './page-variant.ts';

/** All compressed pages in memory. */
const compressedPagesBytesMax = 64 * MIB;

/** Content of pages that wait for compression. */
const compressionQueueBytesMax = 64 * MIB;

/** A page in memory, uncompressed and in the codings that it has been compressed with so far. */
export interface CompressiblePage {
  readonly identity: PageWithSource;
  /** Undefined for a page that is never compressed. */
  readonly variants: ByCoding<PageVariant> | undefined;
}

/**
 * Compresses pages in memory, once for each coding that clients prefer. No request waits for it:
 * requests get the variants that exist at that time. It compresses one page at a time, so that the
 * thread pool stays free for files. It never compresses a page without a request.
 */
export interface PageCompressor {
  /** Makes a page ready to be sent. */
  prepare(page: Page, answered: Answered): CompressiblePage;
  /**
   * The reply with a page, in the best coding for the request that exists by now; follows the
   * request's preconditions and ranges.
   */
  respond(page: CompressiblePage, request: Pick<ContentRequest, 'method' | 'fields'>): Reply;
  /** The memory that compressed pages use now. */
  memory(): CacheUse;
  /** Drops all variants and compresses nothing more. */
  close(): void;
}

/** Creates a compressor; the options bound the variants in memory, and the pages that wait. */
export function createPageCompressor({
  compress = compressBest,
  variantsBytesMax = compressedPagesBytesMax,
  queueBytesMax = compressionQueueBytesMax,
}: {
  readonly compress?: typeof compressBest;
  readonly variantsBytesMax?: number;
  readonly queueBytesMax?: number;
} = {}): PageCompressor {
  const queue = createCompressionQueue({ compress, variantsBytesMax, queueBytesMax });

  /** The page in the best coding that exists; if the first choice does not, it is queued. */
  function choose(
    identity: PageWithSource,
    variants: ByCoding<PageVariant>,
    fields: Fields,
  ): PageWithSource {
    let isQueued = false;
    for (const coding of preferredCodings(fields['accept-encoding'])) {
      const variant = variants[coding];
      if (variant.page !== undefined) {
        queue.touch(variant);
        return variant.page;
      }
      const known = pageByTag(identity, coding, fields['if-none-match']);
      if (known !== undefined) return known;
      if (!isQueued && variant.missingReason === 'not_requested') queue.add(identity, variant);
      isQueued ||= variant.missingReason !== 'not_smaller';
    }
    return identity;
  }

  return {
    prepare(page, answered) {
      if (!isWorthCompressing(page)) {
        return { identity: { ...page, answered }, variants: undefined };
      }
      const { representation, bytes } = page;
      const fields = withVary(representation.fields, 'Accept-Encoding');
      const negotiated = { ...representation, fields, sharesDate: true };
      return {
        identity: { representation: negotiated, bytes, answered },
        variants: newVariants(),
      };
    },
    respond({ identity, variants }, request) {
      const { fields } = request;
      if (variants === undefined || fields['accept-encoding'] === undefined) {
        return replyWithPage(identity, request);
      }
      return replyWithPage(choose(identity, variants, fields), request);
    },
    memory: () => queue.memory(),
    close() {
      queue.close();
    },
  };
}

/** Compresses variants of pages one by one, and keeps them. */
interface CompressionQueue {
  /** Queues a variant, unless too much is waiting already. */
  add(identity: PageWithSource, variant: PageVariant): void;
  /** Marks a variant as recently used, so that others are evicted first. */
  touch(variant: PageVariant): void;
  memory(): CacheUse;
  close(): void;
}

/** The memory of a variant besides its bytes: its fields, and its entry in the cache. */
const variantOverheadBytes = 2_048;

function createCompressionQueue({
  compress,
  variantsBytesMax,
  queueBytesMax,
}: {
  readonly compress: typeof compressBest;
  readonly variantsBytesMax: number;
  readonly queueBytesMax: number;
}): CompressionQueue {
  const kept = new LRUCache<PageVariant, PageWithSource>({
    maxSize: variantsBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + variantOverheadBytes,
    dispose: (_, variant) => {
      variant.page = undefined;
      variant.missingReason = 'not_requested';
    },
  });
  let waiting: { readonly identity: PageWithSource; readonly variant: PageVariant }[] = [];
  let waitingBytes = 0;
  let isWorking = false;
  let isClosed = false;

  async function work(): Promise<void> {
    isWorking = true;
    for (let job = waiting.shift(); job !== undefined; job = waiting.shift()) {
      const page = await compressPage(job.identity, job.variant);
      waitingBytes -= job.identity.bytes.length;
      if (!isClosed) keep(job.variant, page);
    }
    isWorking = false;
  }

  async function compressPage(
    identity: PageWithSource,
    { coding }: PageVariant,
  ): Promise<PageWithSource | undefined> {
    try {
      return variantPage(identity, coding, await compress(identity.bytes, coding));
    } catch {
      // Not enough memory: the page continues to be sent uncompressed.
      return undefined;
    }
  }

  function keep(variant: PageVariant, page: PageWithSource | undefined): void {
    if (page !== undefined) kept.set(variant, page);
    if (kept.has(variant)) variant.page = page;
    else variant.missingReason = 'not_smaller';
  }

  return {
    add(identity, variant) {
      const bytes = identity.bytes.length;
      if (isClosed || waitingBytes + bytes > queueBytesMax) return;
      variant.missingReason = 'queued';
      waiting.push({ identity, variant });
      waitingBytes += bytes;
      if (!isWorking) void work();
    },
    touch(variant) {
      kept.get(variant);
    },
    memory: () => cacheUse('compressed pages', kept),
    close() {
      isClosed = true;
      waiting = [];
      kept.clear();
    },
  };
}
