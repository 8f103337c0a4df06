import type { Reply } from '../http/reply.ts';
import { refusedLineCharactersMax } from './limits.ts';
import type { AccessLog } from '../observability/access.ts';
import type { AccessEntry } from '../observability/access-entry.ts';
import type { LiveAccess } from '../observability/live-access.ts';
import type { RequestMetrics } from '../observability/request-metrics.ts';
import type { Arrived, Exchange } from './exchange.ts';
import { RequestDetails } from './request-details.ts';
import type { Moment } from './serving.ts';

/** When a request arrived, and the state of the site then. */
export interface RequestStart {
  readonly startedMs: number;
  readonly moment: Moment;
}

/** The request fields in the access log. */
type LoggedFields = Pick<AccessEntry, 'host' | 'userAgent' | 'referer'>;

/** The data of a request in the access log, and the result of sending its answer. */
type Recorded = Pick<AccessEntry, 'address' | 'bytes'> &
  Partial<Pick<AccessEntry, 'keyId' | 'cut'>> & {
    /** Undefined if `record` is to read them. */
    readonly fields?: LoggedFields | undefined;
    readonly details?: RequestDetails | undefined;
  };

/** The data of an answer in the access log. */
type RecordedAnswer = Pick<Reply, 'status' | 'source' | 'failureId'> & Pick<AccessEntry, 'cache'>;

/** The access log, its live readers and the metrics; `monotonicMs` measures durations. */
interface RequestLogParts {
  readonly access: AccessLog;
  readonly liveAccess: Pick<LiveAccess, 'isWatched' | 'add'>;
  readonly metrics: RequestMetrics;
  readonly monotonicMs: () => number;
}

/** Records the answers of a port: in the metrics, and in the access log if that is on. */
export class RequestLog {
  readonly #parts: RequestLogParts;

  constructor({ access, liveAccess, metrics, monotonicMs }: RequestLogParts) {
    this.#parts = { access, liveAccess, metrics, monotonicMs };
  }

  /** Begins to find what only some access logs show; undefined if this one does not. */
  details(exchange: Exchange, { serving }: Moment): RequestDetails | undefined {
    if (serving.accessRules?.wantsDetails !== true) return undefined;
    return new RequestDetails(exchange, exchange.body);
  }

  /** Records an answer that was sent. */
  record(
    asked: Arrived,
    { startedMs, moment }: RequestStart,
    { status, source, cache, failureId }: RecordedAnswer,
    { address, bytes, keyId, cut = false, fields, details }: Recorded,
  ): void {
    const durationMs = this.#count({ status, source, cache, bytes }, startedMs);
    if (!this.#isRead(moment)) return;
    const { head } = asked;
    const { host, userAgent, referer } = fields ?? loggedFields(head.fields);
    const entry = {
      address,
      method: head.method,
      target: shownTarget(head.url),
      host,
      httpVersion: head.version === '2' ? '2.0' : head.version,
      userAgent,
      referer,
      status,
      bytes,
      durationMs,
      source,
      cache,
      failureId,
      keyId,
      cut,
    };
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
    { status, failureId }: Pick<Reply, 'status' | 'failureId'>,
    { address, bytes }: Recorded,
  ): void {
    const durationMs = this.#count({ status, source: 'none', bytes }, startedMs);
    if (!this.#isRead(moment)) return;
    this.#add(moment, {
      ...refusedHead(head),
      address,
      status,
      bytes,
      durationMs,
      source: 'none',
      failureId,
      keyId: undefined,
      cut: false,
    });
  }

  /** Whether the access log is on or has a live reader. */
  #isRead({ serving }: Moment): boolean {
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
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    // The length rules out most fields, without a lower-case copy of each.
    if (name.length === 4) {
      if (name.toLowerCase() === 'host') host ??= rawHeaders[at + 1];
    } else if (name.length === 10) {
      if (name.toLowerCase() === 'user-agent') userAgent ??= rawHeaders[at + 1];
    } else if (name.length === 7 && name.toLowerCase() === 'referer')
      referer ??= rawHeaders[at + 1];
  }
  return { host: host ?? '', userAgent: userAgent ?? '', referer: referer ?? '' };
}

type RefusedHead = Pick<
  AccessEntry,
  'method' | 'target' | 'host' | 'httpVersion' | 'userAgent' | 'referer'
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
  };
}

function shortened(text: string): string {
  if (text.length <= refusedLineCharactersMax) return text;
  return `${text.slice(0, refusedLineCharactersMax)}…`;
}
