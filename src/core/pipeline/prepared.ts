import { LRUCache } from 'lru-cache';
import { fileCacheValidMs } from '../http/limits.ts';
import { type Reply, fieldLines, replyField } from '../http/reply.ts';
import { type CacheUse, cacheUse } from '../report/memory-use.ts';
import { preparedTextBytesMax } from '../server/limits.ts';
import type { ReuseClient } from '../values/lazy-packages.ts';
import { MIB } from '../values/units.ts';
import type { Prepared } from './exchange.ts';
import {
  type ChoosingField,
  type PreparableHead,
  type PreparableRequest,
  choosingFields,
} from './preparable-request.ts';
import { headText, lengthLine } from './response-head.ts';
import type { Moment } from './serving.ts';

/** Prepared answers in memory: of all URLs together, and of one URL. */
const preparedBytesMax = 8 * MIB;
const preparedVariantsMax = 8;

/** URLs that have failed once: the answer is prepared with the next request. */
const failedUrlsMax = 500;

/** The prepared answers to one URL at one moment. */
interface Entry {
  readonly moment: Moment;
  /** The request fields that choose between them. */
  readonly varies: readonly ChoosingField[];
  readonly variants: Map<string, Variant>;
}

interface Variant {
  readonly etag: string | undefined;
  readonly whole: Prepared | undefined;
  /** The 304 for a client that has the page already. */
  readonly notModified: Prepared | undefined;
}

/**
 * Prepared answers, for requests to the same URL that differ only in fields that have no effect on
 * the answer. An answer is valid while configuration, log and validity of page rules stay
 * unchanged, and no longer than a check of the disk.
 */
export class PreparedReplies {
  readonly #entries = new LRUCache<string, Entry>({
    maxSize: preparedBytesMax,
    sizeCalculation: entryBytes,
  });
  /** The URLs of some failures: those who look for weak places ask for each URL once. */
  readonly #failed = new Set<string>();

  /** Returns the prepared answer to a request; undefined without one. */
  find({ key, head }: PreparableRequest, moment: Moment, address: string): Prepared | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || !isSame(entry.moment, moment)) return undefined;
    const found = fromVariant(entry.variants.get(variantOf(head, entry.varies)), head);
    if (found === undefined || !isFor(found, clientOf(key, head, address))) return undefined;
    if (found.isCurrent === undefined) return found;
    return !head.hasCacheControl && found.isCurrent(moment.nowMs) ? found : undefined;
  }

  /** Returns the memory that they use. */
  memory(): CacheUse {
    return cacheUse('prepared answers', this.#entries);
  }

  /** Prepares an answer, if other requests may get it; `moment` is when its request arrived. */
  keep(
    { key, head }: PreparableRequest,
    moment: Moment,
    { reply, address }: { readonly reply: Reply; readonly address: string },
  ): void {
    if (reply.isReusable !== true) return;
    if (reply.isCurrent !== undefined && head.hasCacheControl) return;
    if (!isFor(reply, clientOf(key, head, address))) return;
    if (reply.failureId !== undefined && !this.#hasFailed(key)) return;
    const varies = variesBy(reply);
    const prepared = preparedOf(reply);
    if (varies === undefined || prepared === undefined) return;
    const entry = this.#entryFor(key, moment, varies);
    const name = variantOf(head, varies);
    const variant = entry.variants.get(name);
    // A client can send ever new values of these fields.
    if (variant === undefined && entry.variants.size >= preparedVariantsMax) return;
    const etag = replyField(reply, 'etag');
    const part = reply.status === 304 ? { notModified: prepared } : { whole: prepared };
    entry.variants.set(name, {
      whole: undefined,
      notModified: undefined,
      ...variant,
      ...part,
      etag,
    });
    // Set again, since its size has changed.
    this.#entries.set(key, { ...entry });
  }

  /** Whether a URL has failed before, as far as that is remembered. */
  #hasFailed(key: string): boolean {
    if (this.#failed.has(key)) return true;
    if (this.#failed.size >= failedUrlsMax) this.#failed.clear();
    this.#failed.add(key);
    return false;
  }

  #entryFor(key: string, moment: Moment, varies: readonly ChoosingField[]): Entry {
    const entry = this.#entries.get(key);
    const isOfThis = entry !== undefined && isSame(entry.moment, moment);
    if (isOfThis && entry.varies.join() === varies.join()) return entry;
    return { moment, varies, variants: new Map() };
  }
}

/** The client of a request; its key begins with the scheme. */
function clientOf(
  key: string,
  { authorization, cookie }: PreparableHead,
  address: string,
): ReuseClient {
  return { address, authorization, cookie, isSecure: key.startsWith('https:') };
}

/**
 * Whether a client may get a reusable answer. Credentials that no access rule has read may have
 * changed it.
 */
function isFor({ admits }: Pick<Reply, 'admits'>, client: ReuseClient): boolean {
  return admits === undefined ? client.authorization === undefined : admits(client);
}

function fromVariant(
  variant: Variant | undefined,
  { ifNoneMatch }: PreparableHead,
): Prepared | undefined {
  if (variant === undefined || ifNoneMatch === undefined) return variant?.whole;
  return ifNoneMatch === variant.etag ? variant.notModified : undefined;
}

function variantOf(head: PreparableHead, varies: readonly ChoosingField[]): string {
  if (varies.length === 0) return '';
  return varies.map((name) => head[name]).join('\n');
}

/** Whether an answer of an earlier moment is still valid. */
function isSame(before: Moment, now: Moment): boolean {
  const ageMs = now.nowMs - before.nowMs;
  return (
    before.period === now.period &&
    before.serving === now.serving &&
    ageMs >= 0 &&
    ageMs < fileCacheValidMs
  );
}

/** Returns the names in the Vary of an answer; undefined if one of them is not a choosing field. */
function variesBy(reply: Reply): readonly ChoosingField[] | undefined {
  // Accept chooses the form of a failure, which no cache stores and has no Vary.
  const ofFailure = reply.failureId === undefined ? [] : ['accept'];
  const lines = [...fieldLines(reply.fields, 'vary'), ...ofFailure];
  if (lines.length === 0) return [];
  const names = lines
    .join()
    .split(',')
    .map((name) => name.trim().toLowerCase());
  const isChoosing = (name: string): name is ChoosingField =>
    (choosingFields as readonly string[]).includes(name);
  return names.every(isChoosing) ? names : undefined;
}

/** What no header field can have (RFC 9110 §5.5). */
// oxlint-disable-next-line no-control-regex -- control characters are what it refuses
const notSendable = /[^\t\x20-\x7e\x80-\xff]/;

function preparedOf(reply: Reply): Prepared | undefined {
  const { status, fields, body, source, cache, isCurrent, admits, failureId, reason } = reply;
  // Its head is sent without a further look, and nothing catches what that throws.
  if (fields.some((text) => notSendable.test(text))) return undefined;
  const isDated = replyField(reply, 'date') !== undefined;
  const head = headText(reply) + lengthLine(reply, 'GET');
  const said = {
    status,
    fields,
    source,
    head,
    isDated,
    cache,
    isCurrent,
    admits,
    failureId,
    reason,
  };
  if (body.kind === 'none') return { ...said, content: undefined, bytes: 0 };
  if (body.kind !== 'bytes') return undefined;
  const { bytes } = body;
  const content = bytes.length <= preparedTextBytesMax ? bytes.toString('latin1') : bytes;
  return { ...said, content, bytes: bytes.length };
}

function entryBytes({ variants }: Entry, key: string): number {
  let bytes = 2 * key.length;
  for (const [name, { whole }] of variants)
    bytes += variantBytes + name.length + (whole?.bytes ?? 0);
  return bytes;
}

/** The memory of a variant besides its content: head, objects, entry of the map. */
const variantBytes = 2_048;

/** A prepared answer as the next request gets it: each failure has an id of its own. */
export function withOwnId(known: Prepared, newId: () => string): Prepared {
  const { failureId: before, content } = known;
  if (before === undefined) return known;
  const failureId = newId();
  if (typeof content !== 'string') return { ...known, failureId };
  return { ...known, failureId, content: content.replaceAll(before, failureId) };
}
