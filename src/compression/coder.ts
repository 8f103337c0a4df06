import type { CacheUse } from '../observability/memory-use.ts';
import { wantedCodings, type ByCoding } from '../http/coding.ts';
import type { Reply } from '../http/reply.ts';
import type { ContentRequest, Fields } from '../http/request.ts';
import { withVary } from '../http/vary.ts';
import { codedHeldBytesMax, codedWaitingBytesMax } from '../model/limits.ts';
import { createCodingQueue } from './coding-queue.ts';
import { compressWhole } from './compression.ts';
import { holdPage, sendHeld, type HeldPage, type Page } from '../http/held-page.ts';
import { isWorthCoding, knownByTag, newVariants, type Variant } from './variant.ts';

/**
 * A page that is ready to be sent, as it is and in the codings that it has been compressed with.
 */
export interface OfferedPage {
  readonly identity: HeldPage;
  /** Undefined for a page that is never compressed. */
  readonly variants: ByCoding<Variant> | undefined;
}

/**
 * Compresses pages held in memory, each once for each coding that it is asked for in: off the way
 * of the requests, which get what is there already, and one at a time, so that the thread pool
 * stays free for files. A page that nobody asks for costs nothing.
 */
export interface Coder {
  /** Makes a page ready to be sent by its source, in codings too where that makes it smaller. */
  offer(page: Page, source: string): OfferedPage;
  /**
   * The answer of a page, in the coding that the request wants most of those that are there by now,
   * as its preconditions and ranges ask for it.
   */
  respond(page: OfferedPage, request: Pick<ContentRequest, 'method' | 'fields'>): Reply;
  /** What is in memory of compressed pages. */
  memory(): CacheUse;
  /** Lets go of everything, and begins nothing any more. */
  close(): void;
}

/** Makes a coder; its bounds are the bytes of what it keeps, and of the pages that wait for it. */
export function createCoder({
  compress = compressWhole,
  heldBytesMax = codedHeldBytesMax,
  waitingBytesMax = codedWaitingBytesMax,
}: {
  readonly compress?: typeof compressWhole;
  readonly heldBytesMax?: number;
  readonly waitingBytesMax?: number;
} = {}): Coder {
  const queue = createCodingQueue({ compress, heldBytesMax, waitingBytesMax });

  /** The page in the best coding that is there; the first choice is begun if it is not. */
  function choose(identity: HeldPage, variants: ByCoding<Variant>, fields: Fields): HeldPage {
    let begun = false;
    for (const coding of wantedCodings(fields['accept-encoding'])) {
      const variant = variants[coding];
      if (variant.page !== undefined) {
        queue.used(variant);
        return variant.page;
      }
      const known = knownByTag(identity, coding, fields['if-none-match']);
      if (known !== undefined) return known;
      if (!begun && variant.absence === 'unasked') queue.begin(identity, variant);
      begun ||= variant.absence !== 'useless';
    }
    return identity;
  }

  return {
    offer(page, source) {
      if (!isWorthCoding(page)) return { identity: holdPage(page, source), variants: undefined };
      const { representation, bytes } = page;
      const fields = withVary(representation.fields, 'Accept-Encoding');
      const negotiated = { ...representation, fields, sharesDate: true };
      return {
        identity: holdPage({ representation: negotiated, bytes }, source),
        variants: newVariants(),
      };
    },
    respond({ identity, variants }, request) {
      const { fields } = request;
      if (variants === undefined || fields['accept-encoding'] === undefined) {
        return sendHeld(identity, request);
      }
      return sendHeld(choose(identity, variants, fields), request);
    },
    memory: () => queue.memory(),
    close() {
      queue.close();
    },
  };
}
