import type { Reply } from '../../http/reply.ts';
import { prefetchPurpose } from '../../http/request.ts';
import { needsUser } from '../../http/visitor.ts';
import type {
  AccessDetails,
  AccessEntry,
  AccessLog,
  LiveEntries,
  RequestPlace,
  VisitEntries,
} from '../../report/access-entry.ts';
import type { RequestMetrics } from '../../report/request-metrics.ts';
import type { TraceSpan } from '../../report/trace.ts';
import type { Arrived, Exchange, RequestBody } from '../exchange.ts';
import { acceptRequest } from '../incoming-request.ts';
import type { Moment, Serving } from '../serving.ts';

/** Finds the values of a request that only some access logs show; begins before its content. */
class RequestDetails {
  readonly #asked: Arrived;
  readonly #tls: string | undefined;
  #bytesIn = 0;
  #sourceMs: number | undefined;

  constructor(asked: Arrived, body?: RequestBody) {
    this.#asked = asked;
    const { tls } = asked.peer;
    // Now, because a closed connection no longer knows it.
    this.#tls = tls?.getProtocol() ?? undefined;
    if (body === undefined) return;
    // A listener of `data` would begin to read the content, which nobody may want.
    const push = body.push.bind(body);
    body.push = (chunk: unknown, encoding?: BufferEncoding) => {
      if (Buffer.isBuffer(chunk)) this.#bytesIn += chunk.length;
      return push(chunk, encoding);
    };
  }

  /** To be called when a source has answered, with the time that it took. */
  readonly sourceAnswered = (ms: number): void => {
    this.#sourceMs = ms;
  };

  /** The values so far. It never rejects. */
  async found(serving: Serving): Promise<AccessDetails> {
    return {
      tls: this.#tls,
      bytesIn: this.#bytesIn,
      sourceMs: this.#sourceMs,
      user: await userOf(serving, this.#asked),
    };
  }
}

/** Characters of a malformed request line in the access log. */
const refusedLineCharactersMax = 200;

/** When a request arrived, and the state of the site then. */
export interface RequestStart {
  readonly startedMs: number;
  readonly moment: Moment;
  /** Undefined without `[telemetry]`. */
  readonly span: TraceSpan | undefined;
}

/** The request fields in the access log. */
type LoggedFields = Pick<AccessEntry, 'host' | 'userAgent' | 'referer' | 'accept'> & {
  readonly 'accept-language': string;
  /** As AccessEntry.purpose. */
  readonly purpose?: string;
};

/** The data of a request in the access log, and the result of sending its answer. */
type Recorded = Pick<AccessEntry, 'address' | 'bytes'> &
  Partial<Pick<AccessEntry, 'keyId' | 'cut'> & Pick<RequestPlace, 'place'>> & {
    /** The country that a trusted proxy claims. */
    readonly claimedCountry?: string | undefined;
    /** Undefined if `record` is to read them. */
    readonly fields?: LoggedFields | undefined;
    readonly details?: RequestDetails | undefined;
  };

/** The data of an answer in the access log. */
type RecordedAnswer = Pick<Reply, 'status' | 'source'> &
  Pick<AccessEntry, 'cache' | 'failureId' | 'reason'>;

/**
 * The access log, its live readers, the counts of visits and the metrics; `monotonicMs` measures
 * durations.
 */
interface RequestLogParts {
  readonly access: AccessLog;
  readonly liveAccess: LiveEntries;
  readonly metrics: RequestMetrics;
  readonly visits: VisitEntries;
  readonly monotonicMs: () => number;
}

/**
 * Records the answers of a port: in the metrics, the counts of visits, and in the access log if
 * that is on.
 */
export class RequestLog {
  readonly #parts: RequestLogParts;

  constructor({ access, liveAccess, metrics, visits, monotonicMs }: RequestLogParts) {
    this.#parts = { access, liveAccess, metrics, visits, monotonicMs };
  }

  /** Begins to find what only some access logs show; undefined if this one does not. */
  details(exchange: Exchange, { serving }: Moment): RequestDetails | undefined {
    if (serving.accessRules?.wantsDetails !== true) return undefined;
    return new RequestDetails(exchange, exchange.body);
  }

  /** Records an answer that was sent. */
  record(
    asked: Arrived,
    { startedMs, moment, span }: RequestStart,
    { status, source, cache, failureId, reason }: RecordedAnswer,
    { address, bytes, keyId, cut = false, fields, details, place, claimedCountry }: Recorded,
  ): void {
    const durationMs = this.#count({ status, source, cache, bytes }, startedMs);
    if (span === undefined && !this.#isRead(moment)) return;
    const { head } = asked;
    const sent = fields ?? loggedFields(head.fields);
    const { host, userAgent, referer, accept, purpose = '' } = sent;
    const entry = {
      address,
      method: head.method,
      target: shownTarget(head.url),
      host,
      httpVersion: head.version === '2' ? '2.0' : head.version,
      userAgent,
      referer,
      accept,
      acceptLanguage: sent['accept-language'],
      purpose,
      status,
      bytes,
      durationMs,
      source,
      cache,
      failureId,
      reason,
      keyId,
      cut,
      traceId: span?.traceId,
    };
    const { serving, nowMs } = moment;
    if (span !== undefined) serving.tracer?.endRequest(span, entry, asked.peer);
    if (!this.#isRead(moment)) return;
    const country = serving.visitors.countryOf(address, claimedCountry);
    this.#parts.visits.add(entry, { place, country, nowMs });
    if (!this.#isLogged(moment)) return;
    if (moment.serving.accessRules?.wantsDetails !== true) {
      this.#add(moment, entry);
      return;
    }
    const found = (details ?? new RequestDetails(asked)).found(moment.serving);
    void found.then((given) => {
      this.#add(moment, { ...entry, details: given });
    });
  }

  /** Records the refusal of a request; `head` may be a part of its head. */
  recordRefused(
    head: string,
    { startedMs, moment }: RequestStart,
    { status, failureId, reason }: Pick<Reply, 'status' | 'failureId' | 'reason'>,
    { address, bytes }: Recorded,
  ): void {
    const durationMs = this.#count({ status, source: 'none', bytes }, startedMs);
    if (!this.#isRead(moment)) return;
    const entry = {
      ...refusedHead(head),
      address,
      status,
      bytes,
      durationMs,
      source: 'none',
      failureId,
      reason,
      keyId: undefined,
      cut: false,
    };
    const unknown = { place: undefined, country: undefined };
    this.#parts.visits.add(entry, { ...unknown, nowMs: moment.nowMs });
    if (this.#isLogged(moment)) this.#add(moment, entry);
  }

  /** Whether anything needs the entry of a request. */
  #isRead(moment: Moment): boolean {
    return this.#parts.visits.retentionMs > 0 || this.#isLogged(moment);
  }

  /** Whether the access log is on or has a live reader. */
  #isLogged({ serving }: Moment): boolean {
    return serving.config.log.access || this.#parts.liveAccess.isWatched;
  }

  #add({ serving }: Moment, whole: AccessEntry): void {
    const { access, liveAccess } = this.#parts;
    const { accessRules } = serving;
    const entry = accessRules === undefined ? whole : accessRules.apply(whole);
    if (entry === undefined) return;
    if (serving.config.log.access) access.add(entry);
    if (liveAccess.isWatched) liveAccess.add(entry);
  }

  /** Counts an answer; returns how long it took, in milliseconds. */
  #count(
    { status, source, cache, bytes }: Pick<AccessEntry, 'status' | 'source' | 'cache' | 'bytes'>,
    startedMs: number,
  ): number {
    const durationMs = this.#parts.monotonicMs() - startedMs;
    this.#parts.metrics.add(status, source, durationMs, cache, bytes);
    return durationMs;
  }
}

/** A target without the token of a preview, with which any client sees the draft. */
function shownTarget(target: string): string {
  return target.includes(previewPlace) ? target.replace(tokenOfPreview, '$1…') : target;
}

const previewPlace = '/preview/';
const tokenOfPreview = /(\/svc1\/preview\/)[\w.-]{20,200}/;

/** Reads the logged fields alone, which costs less than an object of all fields. */
function loggedFields(rawHeaders: readonly string[]): LoggedFields {
  let host: string | undefined;
  let userAgent: string | undefined;
  let referer: string | undefined;
  let accept: string | undefined;
  let language: string | undefined;
  let purposes: Record<string, string> | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    // The length rules out most fields, without a lower-case copy of each.
    if (name.length === 4) {
      if (name.toLowerCase() === 'host') host ??= rawHeaders[at + 1];
    } else if (name.length === 10) {
      if (name.toLowerCase() === 'user-agent') userAgent ??= rawHeaders[at + 1];
    } else if (name.length === 7) {
      const lower = name.toLowerCase();
      if (lower === 'referer') referer ??= rawHeaders[at + 1];
      else if (lower === 'purpose') (purposes ??= {})[lower] ??= rawHeaders[at + 1] ?? '';
    } else if (name.length === 6) {
      if (name.toLowerCase() === 'accept') accept ??= rawHeaders[at + 1];
    } else if (name.length === 15) {
      if (name.toLowerCase() === 'accept-language') language ??= rawHeaders[at + 1];
    } else if (name.length === 11 || name.length === 5) {
      const lower = name.toLowerCase();
      const isPurpose = lower === 'sec-purpose' || lower === 'x-moz';
      if (isPurpose) (purposes ??= {})[lower] ??= rawHeaders[at + 1] ?? '';
    }
  }
  return {
    host: host ?? '',
    userAgent: userAgent ?? '',
    referer: referer ?? '',
    accept: accept ?? '',
    'accept-language': language ?? '',
    purpose: purposes === undefined ? '' : prefetchPurpose(purposes),
  };
}

type RefusedHead = Pick<
  AccessEntry,
  | ('method' | 'target' | 'host' | 'httpVersion' | 'userAgent' | 'referer')
  | ('accept' | 'acceptLanguage' | 'purpose')
>;

function refusedHead(head: string): RefusedHead {
  const [, line = ''] = /^([^\r\n]*)/.exec(head) ?? [];
  const [, method = '-', target = ''] = /^([A-Z-]{1,32}) +(\S+)/.exec(line) ?? [];
  const [, host = ''] = /\r\nhost:[ \t]*([^\r\n]*)/i.exec(head) ?? [];
  const shown = method === '-' ? line : target;
  return {
    method,
    target: shortened(shown === '' ? '-' : shown),
    host: shortened(host),
    httpVersion: '',
    userAgent: '',
    referer: '',
    accept: '',
    acceptLanguage: '',
    purpose: '',
  };
}

function shortened(text: string): string {
  if (text.length <= refusedLineCharactersMax) return text;
  return `${text.slice(0, refusedLineCharactersMax)}…`;
}

/** The name of the signed-in user of a request; undefined for a request that is refused. */
async function userOf(serving: Serving, asked: Arrived): Promise<string | undefined> {
  try {
    const visitor = serving.visitors.visitorOf(acceptRequest(serving, asked));
    await visitor.prepare(needsUser);
    return visitor.signedInUser()?.name;
  } catch {
    return undefined;
  }
}
