import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { SharedLimit, type Sharer } from '../../core/fair/shared-limit.ts';
import { SharedTasks } from '../../core/fair/shared-tasks.ts';
import {
  type Answered,
  type Page,
  type PageWithSource,
  replyWithPage,
} from '../../core/http/content/page-reply.ts';
import { type Reply, isEmptyStatus, withVary } from '../../core/http/reply.ts';
import { isCompressible } from '../../core/http/representation/mediatype.ts';
import {
  type ByCoding,
  type Coding,
  preferredCodings,
} from '../../core/http/representation/negotiation.ts';
import { etagListed } from '../../core/http/representation/preconditions.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { type CacheUse, cacheUse } from '../../core/report/memory-use.ts';
import { Failure } from '../../core/values/failure.ts';
import { MIB } from '../../core/values/units.ts';
import { compressBest } from './compression.ts';
import { compressBytesMin } from './limits.ts';

const tagHashCharacters = 12;

/** All compressed pages in memory. */
const compressedPagesBytesMax = 64 * MIB;

/** Content of pages that wait for compression. */
const compressionQueueBytesMax = 64 * MIB;

/** How many of them wait, and how long. */
const pagesWaitingMax = 10_000;
const pageWaitMs = 60_000;

/** Who waits for pages of the server itself, of which there are few. */
const ownPages = 'own pages';

/** A page in memory, uncompressed and in the codings that it has been compressed with so far. */
export interface CompressiblePage {
  readonly identity: PageWithSource;
  /** Undefined for a page that is never compressed. */
  readonly variants: ByCoding<PageVariant> | undefined;
}

/**
 * Compresses pages in memory, once for each coding that clients prefer. No request waits for it:
 * requests get the variants that exist at that time. It compresses one page at a time, in turns
 * that clients share, so that the thread pool stays free for files. It never compresses a page
 * without a request.
 */
export interface PageCompressor {
  /** Makes a page ready to be sent. */
  prepare(page: Page, answered: Answered): CompressiblePage;
  /**
   * The reply with a page, in the best coding for the request that exists by now; follows the
   * request's preconditions and ranges.
   */
  respond(page: CompressiblePage, request: CompressedRequest): Reply;
  /** The memory that compressed pages use now. */
  memory(): CacheUse;
  /** Drops all variants and compresses nothing more. */
  close(): void;
}

/** A request for a page; one without an address is for a page of the server itself. */
type CompressedRequest = Pick<ContentRequest, 'method' | 'fields'> &
  Partial<Pick<ContentRequest, 'address'>>;

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
    { fields, address }: CompressedRequest,
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
      if (isQueued || variant.missingReason === 'not_smaller') continue;
      queue.add(
        identity,
        variant,
        address === undefined ? ownPages : { keyId: undefined, address },
      );
      isQueued = true;
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
      return replyWithPage(choose(identity, variants, request), request);
    },
    memory: () => queue.memory(),
    close() {
      queue.close();
    },
  };
}

/** Compresses variants of pages one by one, and keeps them. */
interface CompressionQueue {
  /** Queues a variant for a client, unless too much of it is waiting already. */
  add(identity: PageWithSource, variant: PageVariant, client: Sharer): void;
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
      variant.missingReason = 'not_compressed';
    },
  });
  const queued = new SharedLimit({ what: 'pages to compress', held: 'long', max: queueBytesMax });
  const turns = new SharedLimit({
    what: 'pages to compress',
    held: 'short',
    max: 1,
    waiting: { max: pagesWaitingMax, ms: pageWaitMs },
  });
  const tasks = new SharedTasks<PageWithSource | undefined>(turns);
  let isClosed = false;

  function keep(variant: PageVariant, page: PageWithSource | undefined): void {
    if (page !== undefined) kept.set(variant, page);
    if (kept.has(variant)) variant.page = page;
    else variant.missingReason = 'not_smaller';
  }

  return {
    add(identity, variant, client) {
      const bytes = identity.bytes.length;
      const { name } = variant;
      const isFirst = tasks.running(name) === undefined;
      if (isClosed || (isFirst && !queued.hasRoom(client, bytes))) return;
      const compressed = tasks.run(name, client, () => compressPage(identity, variant, compress));
      if (!isFirst) return;
      queued.take(client, bytes);
      compressed.then(
        (page) => {
          queued.giveBack(client, bytes);
          if (!isClosed) keep(variant, page);
        },
        () => {
          // Its turn has not come: a later request queues it again.
          queued.giveBack(client, bytes);
        },
      );
    },
    touch(variant) {
      kept.get(variant);
    },
    memory: () => cacheUse('compressed pages', kept),
    close() {
      isClosed = true;
      turns.refuseWaiting(new Failure('unavailable', 'The server is stopping.'));
      kept.clear();
    },
  };
}

async function compressPage(
  identity: PageWithSource,
  { coding }: PageVariant,
  compress: typeof compressBest,
): Promise<PageWithSource | undefined> {
  try {
    return variantPage(identity, coding, await compress(identity.bytes, coding));
  } catch {
    // Not enough memory: the page continues to be sent uncompressed.
    return undefined;
  }
}

/** A page in one content coding, which may not have been compressed yet. */
interface PageVariant {
  /** No other variant has it. */
  readonly name: string;
  readonly coding: Coding;
  /** Undefined until the page has been compressed, and after the variant was evicted. */
  page: PageWithSource | undefined;
  /** Why `page` is undefined. `not_smaller` also covers a lack of memory: it is not tried again. */
  missingReason: 'not_compressed' | 'not_smaller';
}

let pagesNamed = 0;

/** The variants of a page that has not been compressed yet. */
function newVariants(): ByCoding<PageVariant> {
  pagesNamed += 1;
  const number = pagesNamed;
  const variant = (coding: Coding): PageVariant => ({
    name: `${number} ${coding}`,
    coding,
    page: undefined,
    missingReason: 'not_compressed',
  });
  return { zstd: variant('zstd'), br: variant('br'), gzip: variant('gzip') };
}

/**
 * Whether a page may become smaller by compression. A page without an entity tag is not compressed:
 * its variants could not have tags of their own.
 */
function isWorthCompressing({ representation, bytes }: Page): boolean {
  const { status, contentType, etag } = representation;
  return (
    bytes.length >= compressBytesMin &&
    etag !== undefined &&
    !isEmptyStatus(status) &&
    isCompressible(contentType)
  );
}

/**
 * A page with compressed bytes and an entity tag of its own (RFC 9110 §8.8.3.3); undefined if
 * compression saves less than a tenth.
 */
function variantPage(
  { representation, bytes, answered }: PageWithSource,
  coding: Coding,
  compressed: Buffer,
): PageWithSource | undefined {
  if (compressed.length > 0.9 * bytes.length) return undefined;
  const digest = createHash('sha256').update(compressed).digest('base64url');
  const hash = digest.slice(0, tagHashCharacters);
  return {
    representation: {
      ...representation,
      etag: `${tagPrefix(representation.etag ?? '""', coding)}${hash}"`,
      fields: ['Content-Encoding', coding, ...representation.fields],
      bytesLength: compressed.length,
    },
    bytes: compressed,
    answered,
  };
}

/**
 * The page for a client whose If-None-Match (RFC 9110 §13.1.2) lists the tag of a variant that is
 * not in memory: the tag shows that the client has the current content in this coding, and a 304
 * needs no bytes. Undefined if it lists no such tag.
 */
function pageByTag(
  { representation, ...page }: PageWithSource,
  coding: Coding,
  ifNoneMatch: string | undefined,
): PageWithSource | undefined {
  const { etag, status } = representation;
  if (ifNoneMatch === undefined || etag === undefined || status !== 200) return undefined;
  const prefix = tagPrefix(etag, coding);
  const at = ifNoneMatch.indexOf(prefix);
  if (at === -1) return undefined;
  const known = ifNoneMatch.slice(at, at + prefix.length + tagHashCharacters + 1);
  // The caller sends this page only as a 304, because its bytes do not belong to the tag.
  if (!known.endsWith('"') || !etagListed(ifNoneMatch, known, 'weak')) return undefined;
  return { ...page, representation: { ...representation, etag: known } };
}

/**
 * The beginning of the entity tags of a page in a coding. A hash of the compressed bytes follows:
 * another version of the compressor may produce other bytes of the same page, and a strong tag
 * stands for one sequence of bytes (RFC 9110 §8.8.1).
 */
function tagPrefix(identityTag: string, coding: Coding): string {
  return `${identityTag.slice(0, -1)}-${coding}.`;
}
