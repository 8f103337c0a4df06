import type { IncomingMessage } from 'node:http';
import type { Reply } from '../http/reply.ts';
import { refusedLineCharactersMax } from './limits.ts';
import type { AccessEntry, AccessLog } from '../observability/access.ts';
import type { RequestMetrics } from '../observability/request-metrics.ts';
import { StreamMessage } from './h2/stream-message.ts';
import type { Moment } from './prepared.ts';

/** When a request came, and what held then. */
export interface RequestStart {
  readonly startedMs: number;
  readonly moment: Moment;
}

/** What the access log says of an answer besides what it is. */
type Noted = Pick<AccessEntry, 'address' | 'bytes'> & Partial<Pick<AccessEntry, 'keyId' | 'cut'>>;

/** What it says of the answer itself. */
type Answered = Pick<Reply, 'status' | 'source' | 'failureId'> & Pick<AccessEntry, 'cache'>;

/** Where responses are recorded; `monotonicMs` measures durations. */
interface Told {
  readonly access: AccessLog;
  readonly metrics: RequestMetrics;
  readonly monotonicMs: () => number;
}

/** Records the responses of a port: in the metrics, and in the access log where that is on. */
export class RequestLog {
  readonly #told: Told;

  constructor({ access, metrics, monotonicMs }: Told) {
    this.#told = { access, metrics, monotonicMs };
  }

  /** Tells of an answer that has gone out. */
  note(
    message: Pick<IncomingMessage, 'method' | 'url' | 'httpVersion' | 'rawHeaders'>,
    { startedMs, moment }: RequestStart,
    { status, source, cache, failureId }: Answered,
    { address, bytes, keyId, cut = false }: Noted,
  ): void {
    const durationMs = this.#count({ status, source, cache }, startedMs);
    if (!moment.serving.config.log.access) return;
    const { host, userAgent, referer } = loggedFields(message);
    this.#told.access.add({
      address,
      method: message.method ?? '',
      target: message.url ?? '',
      host,
      httpVersion: message instanceof StreamMessage ? '2.0' : message.httpVersion,
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
    });
  }

  /** Tells of a request that was not read, by what had come of its head. */
  noteRefused(
    head: string,
    { startedMs, moment }: RequestStart,
    { status, failureId }: Pick<Reply, 'status' | 'failureId'>,
    { address, bytes }: Noted,
  ): void {
    const durationMs = this.#count({ status, source: 'none' }, startedMs);
    if (!moment.serving.config.log.access) return;
    this.#told.access.add({
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

  /** Counts an answer, and says how long it took in milliseconds. */
  #count(
    { status, source, cache }: Pick<AccessEntry, 'status' | 'source' | 'cache'>,
    startedMs: number,
  ): number {
    const durationMs = this.#told.monotonicMs() - startedMs;
    this.#told.metrics.add(status, source, durationMs, cache);
    return durationMs;
  }
}

/** The logged fields, without the object of all fields that a request may not have yet. */
function loggedFields({
  rawHeaders,
}: Pick<IncomingMessage, 'rawHeaders'>): Pick<AccessEntry, 'host' | 'userAgent' | 'referer'> {
  let host: string | undefined;
  let userAgent: string | undefined;
  let referer: string | undefined;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? '';
    // Most fields differ in their length: no lower-case copy is made of them.
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
