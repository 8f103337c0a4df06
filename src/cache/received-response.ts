import { formatHttpDate } from '../http/date.ts';
import {
  fieldLines,
  replyField,
  withoutFields,
  type FieldList,
  type Reply,
} from '../http/reply.ts';
import type { StoredResponse, StoredRange } from './cached-response.ts';
import { cachedDateMs, freshnessOf, type ReceivedHeader } from './freshness.ts';
import type { CachePlan } from './cache-plan.ts';
import { selectingKey, varyNames, type SentField } from './selection.ts';
import { refusalToStore, splitFields } from './storability.ts';

/** A response of a source, with the times that its age counts from. */
export interface ReceivedResponse {
  readonly reply: Reply;
  readonly received: ReceivedHeader;
}

/** Records the times of a response, and adds a missing Date (RFC 9110 §6.6.1). */
export function receiveResponse(
  reply: Reply,
  requestMs: number,
  responseMs: number,
): ReceivedResponse {
  const { status } = reply;
  const dated = fieldLines(reply.fields, 'date');
  const isDated = dated.length === 1 && cachedDateMs(dated[0], responseMs) !== undefined;
  if (isDated) {
    return { reply, received: { status, fields: reply.fields, requestMs, responseMs } };
  }
  const date = ['Date', formatHttpDate(responseMs)];
  const fields: FieldList = [...withoutFields(reply.fields, 'date'), ...date];
  return { reply: { ...reply, fields }, received: { status, fields, requestMs, responseMs } };
}

/** The request and limits that decide whether a response is stored. */
interface StoreParts {
  readonly newId: () => string;
  readonly url: string;
  readonly plan: CachePlan;
  readonly sent: SentField;
  readonly hasCredentials: boolean;
  readonly contentBytesMax: number;
}

/** Makes the stored form of a response; a reason (a Cache-Status token) if it is not storable. */
export function storedResponseFrom(
  { reply, received }: ReceivedResponse,
  { newId, url, plan, sent, hasCredentials, contentBytesMax }: StoreParts,
): StoredResponse | string {
  const refusal = refusalToStore(received, { hasCredentials });
  if (refusal !== undefined) return refusal;
  const { status, fields } = received;
  const range = status === 206 ? rangeOf(fields) : undefined;
  if (status === 206 && range === undefined) return 'parts';
  const bytesLength = lengthOf(reply, range);
  if (bytesLength === undefined) return 'length';
  if (bytesLength > contentBytesMax) return 'too-large';
  const names = varyNames(fields);
  return {
    id: newId(),
    url,
    rule: plan.fetch.id,
    plan: plan.hash,
    status,
    shownStatus: status === 200 ? (plan.fetch.httpresponse ?? 200) : status,
    fields: splitFields(fields).stored,
    freshness: freshnessOf(received),
    varyNames: names,
    selecting: [selectingKey(names, sent)],
    range,
    bytesLength,
  };
}

/**
 * The length of the content in bytes, 0 if unknown; undefined if Content-Length and Content-Range
 * disagree.
 */
function lengthOf({ body, fields }: Reply, range: StoredRange | undefined): number | undefined {
  const said = Number(replyField({ fields }, 'content-length') ?? Number.NaN);
  const length = body.kind === 'bytes' ? body.bytes.length : said;
  const whole = Number.isNaN(length) ? 0 : length;
  if (range === undefined) return whole;
  const ranged = range.last - range.first + 1;
  return Number.isNaN(length) || length === ranged ? ranged : undefined;
}

/** The single range of a response (RFC 9110 §14.4); undefined for several or none. */
function rangeOf(fields: FieldList): StoredRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+)$/i.exec(fieldLines(fields, 'content-range').join(', '));
  const [first = 0, last = 0, completeLength = 0] = (match ?? []).slice(1).map(Number);
  if (match === null || first > last || last >= completeLength) return undefined;
  return { first, last, completeLength };
}
