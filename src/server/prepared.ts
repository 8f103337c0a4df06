import type { IncomingMessage } from 'node:http';
import { LRUCache } from 'lru-cache';
import { cacheUse, type CacheUse } from '../observability/memory-use.ts';
import { fieldLines, replyField, type Reply } from '../http/reply.ts';
import { canonicalTarget } from '../http/target.ts';
import type { Scheme } from '../model/authority.ts';
import { Failure } from '../model/failure.ts';
import { headerFieldsMax } from '../http/limits.ts';
import { preparedBytesMax, preparedTextBytesMax, preparedVariantsMax } from './limits.ts';
import { fileCacheValidMs } from '../static/limits.ts';
import type { Prepared, RequestMessage } from './http-message.ts';
import { headText } from './response-head.ts';
import type { Serving } from './serving.ts';

/** What holds at the moment when a request comes: under something else, nothing prepared does. */
export interface Moment {
  readonly serving: Serving;
  /** Seq of the newest change of the log. */
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The answers to one URL at one moment. */
interface Entry {
  readonly moment: Moment;
  /** The fields of a request that choose among them. */
  readonly varies: readonly ChoosingField[];
  readonly variants: Map<string, Variant>;
}

interface Variant {
  readonly etag: string | undefined;
  readonly whole: Prepared | undefined;
  /** The 304 for a client that has it already. */
  readonly notModified: Prepared | undefined;
}

/** The head of an ordinary GET for a page. */
type PlainHead = {
  readonly host: string;
  readonly ifNoneMatch: string | undefined;
  /** Whether it says something of the caches on its way. */
  readonly tellsCaches: boolean;
} & Readonly<Record<ChoosingField, string>>;

/** An ordinary GET for a page. */
export interface PlainRequest extends Pick<IncomingMessage, 'method' | 'url' | 'rawHeaders'> {
  readonly head: PlainHead;
  /** Its canonical URL: the key of all prepared answers to that URL. */
  readonly key: string;
}

const choosingFields = ['accept', 'accept-encoding', 'accept-language'] as const;
type ChoosingField = (typeof choosingFields)[number];

/** What a field does to an answer that may be prepared: `free` ones do nothing. */
type Role =
  | ChoosingField
  | 'host'
  | 'if-none-match'
  | 'if-modified-since'
  | 'cache-control'
  | 'free';

const roles: ReadonlyMap<string, Role> = rolesByName({
  host: ['Host'],
  'if-none-match': ['If-None-Match'],
  'if-modified-since': ['If-Modified-Since'],
  accept: ['Accept'],
  'accept-encoding': ['Accept-Encoding'],
  'accept-language': ['Accept-Language'],
  'cache-control': ['Cache-Control'],
  free: (
    'User-Agent Connection Keep-Alive Cookie Referer Pragma Priority DNT Origin ' +
    'Upgrade-Insecure-Requests Sec-Fetch-Dest Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User ' +
    'Sec-GPC Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-CH-UA-Form-Factors Save-Data'
  ).split(' '),
});

/**
 * Answers that were made a moment ago, for requests that can only be answered alike: those for the
 * same URL, with no field that could change anything but the ones that the answer
 * names in Vary. They hold as long as the log and the configuration stay as they are, and no longer
 * than a check of the disk does. Unusual requests take the ordinary path.
 */
export class PreparedReplies {
  readonly #entries = new LRUCache<string, Entry>({
    maxSize: preparedBytesMax,
    sizeCalculation: entryBytes,
  });

  /** What answers a request at a moment; undefined where that has to be found out. */
  find({ key, head }: PlainRequest, moment: Moment): Prepared | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined || !isSame(entry.moment, moment)) return undefined;
    const found = fromVariant(entry.variants.get(variantOf(head, entry.varies)), head);
    if (found?.isCurrent === undefined) return found;
    return !head.tellsCaches && found.isCurrent(moment.nowMs) ? found : undefined;
  }

  /** What is in memory of them. */
  memory(): CacheUse {
    return cacheUse('prepared answers', this.#entries);
  }

  /** Keeps an answer that was found out for a request that had come at a moment. */
  keep({ key, head }: PlainRequest, moment: Moment, reply: Reply): void {
    if (reply.isReusable !== true) return;
    if (reply.isCurrent !== undefined && head.tellsCaches) return;
    const varies = variesBy(reply);
    const prepared = preparedOf(reply);
    if (varies === undefined || prepared === undefined) return;
    const entry = this.#entryFor(key, moment, varies);
    const name = variantOf(head, varies);
    const variant = entry.variants.get(name);
    // Who makes up ever new values of the fields has each answer found out.
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
    // Anew, for its size has changed.
    this.#entries.set(key, { ...entry });
  }

  #entryFor(key: string, moment: Moment, varies: readonly ChoosingField[]): Entry {
    const entry = this.#entries.get(key);
    const isOfThis = entry !== undefined && isSame(entry.moment, moment);
    if (isOfThis && entry.varies.join() === varies.join()) return entry;
    return { moment, varies, variants: new Map() };
  }
}

/** What is looked at of a request's head. */
type HeadMessage = Pick<RequestMessage, 'method' | 'url' | 'rawHeaders' | 'httpVersionMinor'>;

/**
 * A request as it is looked up; undefined for one that no answer is prepared for, or that is not
 * valid: what is wrong with it, `openDoor` says.
 */
export function plainRequest(message: HeadMessage, scheme: Scheme): PlainRequest | undefined {
  const head = plainHead(message);
  if (head === undefined) return undefined;
  const { method = '', url = '', rawHeaders } = message;
  const key = keyOf({ method, target: url }, { scheme, host: head.host });
  return key === undefined ? undefined : { head, key, method, url, rawHeaders };
}

/** The parts of a canonical URL in a text: no part of it holds a line end. */
function keyOf(...asked: Parameters<typeof canonicalTarget>): string | undefined {
  try {
    const { origin, path, query } = canonicalTarget(...asked);
    return `${origin}\n${path}\n${query}`;
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function rolesByName(names: Readonly<Record<Role, readonly string[]>>): ReadonlyMap<string, Role> {
  const entries = Object.entries(names) as [Role, readonly string[]][];
  return new Map(
    entries.flatMap(([role, spellings]) =>
      spellings.flatMap((name) => [[name, role] as const, [name.toLowerCase(), role] as const]),
    ),
  );
}

/**
 * The head of a GET that asks for a page as most do; undefined for any other. The names of its
 * fields are among those known here, none of which says how a request is framed, and whoever has
 * read it has looked at their values.
 */
function plainHead({
  method,
  url = '',
  httpVersionMinor,
  rawHeaders,
}: HeadMessage): PlainHead | undefined {
  if (method !== 'GET' || httpVersionMinor !== 1 || !url.startsWith('/')) return undefined;
  if (rawHeaders.length > 2 * headerFieldsMax) return undefined;
  let host: string | undefined;
  let ifNoneMatch: string | undefined;
  let [hasDate, tellsCaches] = [false, false];
  let [accept, encoding, language] = ['', '', ''];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const value = rawHeaders[at + 1] ?? '';
    switch (roles.get(rawHeaders[at] ?? '')) {
      case 'free':
        break;
      case 'host':
        // A field that comes twice is for others to make sense of.
        if (host !== undefined) return undefined;
        host = value;
        break;
      // An empty one is not an absent one.
      case 'accept':
        if (accept !== '' || value === '') return undefined;
        accept = value;
        break;
      case 'accept-encoding':
        if (encoding !== '' || value === '') return undefined;
        encoding = value;
        break;
      case 'accept-language':
        if (language !== '' || value === '') return undefined;
        language = value;
        break;
      case 'if-none-match':
        if (ifNoneMatch !== undefined) return undefined;
        ifNoneMatch = value;
        break;
      case 'if-modified-since':
        hasDate = true;
        break;
      case 'cache-control':
        tellsCaches = true;
        break;
      case undefined:
        return undefined;
    }
  }
  // A date does not count beside an entity tag (RFC 9110 §13.1.3).
  if (host === undefined || (hasDate && ifNoneMatch === undefined)) return undefined;
  return {
    host,
    ifNoneMatch,
    tellsCaches,
    accept,
    'accept-encoding': encoding,
    'accept-language': language,
  };
}

function fromVariant(
  variant: Variant | undefined,
  { ifNoneMatch }: PlainHead,
): Prepared | undefined {
  if (variant === undefined || ifNoneMatch === undefined) return variant?.whole;
  return ifNoneMatch === variant.etag ? variant.notModified : undefined;
}

function variantOf(head: PlainHead, varies: readonly ChoosingField[]): string {
  if (varies.length === 0) return '';
  return varies.map((name) => head[name]).join('\n');
}

/** Whether what held at a moment before holds now. */
function isSame(before: Moment, now: Moment): boolean {
  const ageMs = now.nowMs - before.nowMs;
  return (
    before.seq === now.seq &&
    before.serving === now.serving &&
    ageMs >= 0 &&
    ageMs < fileCacheValidMs
  );
}

/** The fields that an answer was chosen by; undefined where there are others among them. */
function variesBy(reply: Reply): readonly ChoosingField[] | undefined {
  const lines = fieldLines(reply.fields, 'vary');
  if (lines.length === 0) return [];
  const names = lines
    .join()
    .split(',')
    .map((name) => name.trim().toLowerCase());
  const isChoosing = (name: string): name is ChoosingField =>
    (choosingFields as readonly string[]).includes(name);
  return names.every(isChoosing) ? names : undefined;
}

function preparedOf(reply: Reply): Prepared | undefined {
  const { status, fields, body, source, cache, isCurrent } = reply;
  const isDated = replyField(reply, 'date') !== undefined;
  const said = { status, fields, source, head: headText(reply), isDated, cache, isCurrent };
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

/** What a variant takes in memory besides its content: the head, its objects, its place. */
const variantBytes = 2_048;
