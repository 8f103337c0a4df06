import type { FieldList, Reply } from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import type { Fetcher } from '../proxy/fetcher.ts';
import { contentOf, type CachedResponse, type StoredResponse } from './cached-response.ts';
import type { CacheStore } from './cache-store.ts';
import {
  credentialsRefusal,
  receiveResponse,
  refusalToStore,
  splitFields,
  storedResponseFrom,
  type ReceivedResponse,
} from './storability.ts';
import { toCachedResponse } from './cached-reply.ts';
import { shareBody, type SharedBody } from './shared-body.ts';
import type { CachePlan } from './cache-lookup.ts';
import { mayServeStale } from './freshness.ts';
import type { RequestDirectives } from './directives.ts';
import type { SentField } from './selection.ts';
import { freshened, isSelectedBy304, type FreshenedResponse } from './validation.ts';

/** The result of a request to a source. */
export type FetchOutcome =
  /** The response is stored as soon as it is complete. */
  | {
      readonly kind: 'stored';
      readonly answer: StoredResponse;
      readonly content: SharedBody | CachedResponse;
      /** Fields for the requesting client only. */
      readonly privateFields: FieldList;
    }
  /** A 304 confirmed and freshened a stored response. */
  | {
      readonly kind: 'revalidated';
      readonly cached: CachedResponse;
      /** Whether it stays stored, or answers the requesting client only. */
      readonly isStored: boolean;
      readonly privateFields: FieldList;
    }
  /** An error, for which a stale response may be served. */
  | { readonly kind: 'error'; readonly reply: Reply }
  /** The response is for the requesting client only; the reason is a token for Cache-Status. */
  | { readonly kind: 'forwarded'; readonly reply: Reply; readonly reason: string | undefined };

/** A request to a source, with the stored responses that concern it. */
interface SourceRequest {
  readonly plan: CachePlan;
  readonly url: string;
  /** The request as it is sent, with its preconditions. */
  readonly request: ContentRequest;
  readonly sent: SentField;
  readonly directives: RequestDirectives;
  /** The stored responses that the request validates. */
  readonly validating: readonly CachedResponse[];
  /** The stored response that may be served in place of an error. */
  readonly fallback: CachedResponse | undefined;
}

/** A request with the epoch in which it was sent. */
type SentSourceRequest = SourceRequest & { readonly since: number };

/** `now` gives milliseconds since 1970. */
export interface SourceFetchParts {
  readonly fetch: Fetcher;
  readonly answers: CacheStore;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Sends a request to a source, and stores a storable response. Rejects as Fetch.respond does. */
export async function fetchFromSource(
  parts: SourceFetchParts,
  question: SourceRequest,
): Promise<FetchOutcome> {
  const { fetch, now, answers } = parts;
  const [requestMs, since] = [now(), answers.epoch()];
  const reply = await fetch.respond(question.plan.plainRule, question.request);
  const received = receiveResponse(reply, requestMs, now());
  const { fallback, directives } = question;
  if (isSourceError(reply.status) && fallback !== undefined) {
    if (mayServeStale(fallback.answer.freshness, 'error', directives, now())) {
      return { kind: 'error', reply: received.reply };
    }
  }
  const asking = { ...question, since };
  return reply.status === 304
    ? freshenStored(parts, asking, received)
    : storeResponse(parts, asking, received);
}

/** Stores a response as soon as it is complete, if it is storable. */
export function storeResponse(
  { answers, newId }: Pick<SourceFetchParts, 'answers' | 'newId'>,
  { plan, url, sent, since }: Pick<SentSourceRequest, 'plan' | 'url' | 'sent' | 'since'>,
  received: ReceivedResponse,
): FetchOutcome {
  const { reply } = received;
  const contentBytesMax = answers.contentBytesMax();
  const answer = storedResponseFrom(received, {
    newId,
    url,
    plan,
    sent,
    hasCredentials: hasCredentials(sent, plan),
    contentBytesMax,
  });
  if (typeof answer === 'string') return { kind: 'forwarded', reply, reason: answer };
  const { body } = reply;
  const { privateFields } = splitFields(received.received.fields);
  if (body.kind === 'stream') {
    const place = answers.placeOf(answer.id);
    const { isShared: isEndHeld } = answers;
    const limits = { bytesMax: contentBytesMax, bytesLength: answer.bytesLength, isEndHeld };
    const sharedBody = shareBody(body.stream, limits, place);
    sharedBody.whole
      .then((whole) => {
        if (whole === undefined) return undefined;
        const { content, bytesLength } = whole;
        if (isCompleteRange(answer, bytesLength))
          answers.put({ ...answer, bytesLength }, content, since);
        else if (content.kind === 'file') return place.remove();
        return answers.visible(url);
      })
      .catch(place.report)
      .finally(() => {
        sharedBody.releaseEnd();
      });
    return { kind: 'stored', answer, content: sharedBody, privateFields };
  }
  const bytes = body.kind === 'bytes' ? body.bytes : Buffer.alloc(0);
  return { kind: 'stored', answer, content: answers.put(answer, bytes, since), privateFields };
}

/** Whether content of undeclared length is as long as its range. */
function isCompleteRange({ range, bytesLength }: StoredResponse, received: number): boolean {
  return range === undefined || received === bytesLength;
}

/** Freshens the stored response that a 304 selects (RFC 9111 §4.3.4). */
async function freshenStored(
  { answers }: SourceFetchParts,
  { validating, sent, plan, since }: SentSourceRequest,
  { reply, received }: ReceivedResponse,
): Promise<FetchOutcome> {
  const cached = validating.find(({ answer }) =>
    isSelectedBy304(answer, received.fields, validating.length),
  );
  if (cached === undefined || !(await answers.ready(cached))) {
    return { kind: 'forwarded', reply, reason: 'unselected' };
  }
  const { answer, privateFields } = freshened(cached.answer, received, sent);
  const updated = toCachedResponse(answer, contentOf(cached), cached.row);
  const validated = { received, privateFields, sent, plan, since };
  const isStored = storeFreshened(answers, updated, validated);
  return { kind: 'revalidated', cached: updated, isStored, privateFields };
}

/**
 * Stores a freshened response, or removes one that is no longer storable; returns whether it stays
 * stored. A validation with a client's credentials does not change the stored response.
 */
export function storeFreshened(
  answers: CacheStore,
  updated: CachedResponse,
  {
    received,
    privateFields,
    sent,
    plan,
    since,
  }: Pick<SentSourceRequest, 'sent' | 'plan' | 'since'> &
    Pick<ReceivedResponse, 'received'> &
    Pick<FreshenedResponse, 'privateFields'>,
): boolean {
  const { status } = updated.answer;
  const fields = [...updated.answer.fields, ...privateFields];
  const { storesWithoutCookies } = plan.fetch;
  const policy = { hasCredentials: hasCredentials(sent, plan), storesWithoutCookies };
  const refusal = refusalToStore({ ...received, status, fields }, policy);
  if (refusal === credentialsRefusal) return false;
  const isStored = refusal === undefined || refusal === 'expired';
  if (isStored) answers.update(updated, since);
  // The file is deleted in a later turn of the event loop; the request opens it before that.
  else answers.drop(updated.answer).catch(() => undefined);
  return isStored;
}

/** Whether the request carries credentials of a client (RFC 9111 §3.5). */
export function hasCredentials(sent: SentField, { credentialFields }: CachePlan): boolean {
  return credentialFields.some((name) => (sent(name) ?? '') !== '');
}

/** Whether `stale-if-error` applies to a status (RFC 5861 §4). */
function isSourceError(status: number): boolean {
  return status === 500 || status === 502 || status === 503 || status === 504;
}
