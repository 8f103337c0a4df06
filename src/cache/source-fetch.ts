import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { Fetcher } from '../proxy/fetcher.ts';
import { contentOf, type CachedResponse, type StoredResponse } from './cached-response.ts';
import type { CacheStore } from './cache-store.ts';
import { receiveResponse, storedResponseFrom, type ReceivedResponse } from './received-response.ts';
import { toCachedResponse } from './cached-reply.ts';
import { shareBody, type SharedBody } from './shared-body.ts';
import type { CachePlan } from './cache-plan.ts';
import { mayServeStale } from './reuse.ts';
import type { RequestDirectives } from './request-directives.ts';
import type { SentField } from './selection.ts';
import { isSourceError } from './cacheable-status.ts';
import { credentialsRefusal, refusalToStore, splitFields } from './storability.ts';
import { freshened, isSelectedBy304 } from './freshening.ts';

/** What a source's answer comes to. */
export type FetchOutcome =
  /** It is kept, as soon as all of it is there. */
  | {
      readonly kind: 'stored';
      readonly answer: StoredResponse;
      readonly content: SharedBody | CachedResponse;
      /** Fields for the one alone who asked. */
      readonly privateFields: FieldList;
    }
  /** A kept one is what the target still has to show, freshened by it. */
  | {
      readonly kind: 'revalidated';
      readonly cached: CachedResponse;
      /** Whether it goes on to be kept, or is for the one alone who asked from now on. */
      readonly isStored: boolean;
      readonly privateFields: FieldList;
    }
  /** It is an error that a kept one may stand in for. */
  | { readonly kind: 'error'; readonly reply: Reply }
  /** It is for the one who asked alone; why is a token. */
  | { readonly kind: 'forwarded'; readonly reply: Reply; readonly reason: string | undefined };

/** A question to a source, and what is known already. */
interface SourceRequest {
  readonly plan: CachePlan;
  readonly url: string;
  /** What is sent, its conditions included. */
  readonly request: ContentRequest;
  readonly sent: SentField;
  readonly directives: RequestDirectives;
  /** The kept answers that the source is asked to confirm. */
  readonly validating: readonly CachedResponse[];
  /** The one among them that may be sent in place of an error. */
  readonly fallback: CachedResponse | undefined;
}

/** A question with the epoch in which it was asked. */
type SentSourceRequest = SourceRequest & { readonly since: number };

/** What asking stands on; `now` gives milliseconds since 1970. */
export interface SourceFetchParts {
  readonly fetch: Fetcher;
  readonly answers: CacheStore;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Asks a source, and keeps what may be kept of its answer. Rejects as Fetch.respond does. */
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

/** Keeps an answer as soon as all of it is there, if it may be kept. */
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

/** Whether content that came without a length is as long as what it is a part of needs. */
function isCompleteRange({ range, bytesLength }: StoredResponse, received: number): boolean {
  return range === undefined || received === bytesLength;
}

/** Freshens the kept answer that a 304 selects (RFC 9111 §4.3.4). */
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
  const isStored = storeFreshened(answers, updated, { received, sent, plan, since });
  return { kind: 'revalidated', cached: updated, isStored, privateFields };
}

/**
 * Keeps a freshened answer, or drops one that must not be kept any more; returns whether it is
 * kept. What was confirmed to a client by its credentials leaves the stored answer as it was.
 */
export function storeFreshened(
  answers: CacheStore,
  updated: CachedResponse,
  {
    received,
    sent,
    plan,
    since,
  }: Pick<SentSourceRequest, 'sent' | 'plan' | 'since'> & Pick<ReceivedResponse, 'received'>,
): boolean {
  const { status, fields } = updated.answer;
  const refusal = refusalToStore(
    { ...received, status, fields },
    { hasCredentials: hasCredentials(sent, plan) },
  );
  if (refusal === credentialsRefusal) return false;
  const isStored = refusal === undefined || refusal === 'expired';
  if (isStored) answers.update(updated, since);
  // Whoever asked opens its file before that goes, which is in a later turn.
  else answers.drop(updated.answer).catch(() => undefined);
  return isStored;
}

/** Whether the source was told which client asks (RFC 9111 §3.5). */
export function hasCredentials(sent: SentField, { credentialFields }: CachePlan): boolean {
  return credentialFields.some((name) => (sent(name) ?? '') !== '');
}
