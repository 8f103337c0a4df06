import type { FieldList, Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import type { Fetcher } from '../proxy/fetcher.ts';
import { contentOf, type CachedResponse, type StoredResponse } from './cached-response.ts';
import type { Answers } from './answers.ts';
import { receive, toStore, type Arrived } from './arrival.ts';
import { holdAnswer } from './held-reply.ts';
import { shareBody, type SharedBody } from './shared-body.ts';
import type { CachePlan } from './plans.ts';
import { mayStandIn } from './reuse.ts';
import type { RequestDirectives } from './request.ts';
import type { SentField } from './selection.ts';
import { isSourceError } from './status.ts';
import { credentialsRefusal, refusalToStore, splitFields } from './storing.ts';
import { freshened, isConfirmedBy } from './update.ts';

/** What a source's answer comes to. */
export type FetchOutcome =
  /** It is kept, as soon as all of it is there. */
  | {
      readonly kind: 'kept';
      readonly answer: StoredResponse;
      readonly content: SharedBody | CachedResponse;
      /** Fields for the one alone who asked. */
      readonly leftOut: FieldList;
    }
  /** A kept one is what the target still has to show, freshened by it. */
  | {
      readonly kind: 'confirmed';
      readonly held: CachedResponse;
      /** Whether it goes on to be kept, or is for the one alone who asked from now on. */
      readonly isKept: boolean;
      readonly leftOut: FieldList;
    }
  /** It is an error that a kept one may stand in for. */
  | { readonly kind: 'error'; readonly reply: Reply }
  /** It is for the one who asked alone; why is a token. */
  | { readonly kind: 'passing'; readonly reply: Reply; readonly why: string | undefined };

/** A question to a source, and what is known already. */
interface Question {
  readonly plan: CachePlan;
  readonly url: string;
  /** What is sent, its conditions included. */
  readonly request: ContentRequest;
  readonly sent: SentField;
  readonly asked: RequestDirectives;
  /** The kept answers that the source is asked to confirm. */
  readonly validating: readonly CachedResponse[];
  /** The one among them that may be sent in place of an error. */
  readonly standIn: CachedResponse | undefined;
}

/** A question with the epoch in which it was asked. */
type Asked = Question & { readonly since: number };

/** What asking stands on; `now` gives milliseconds since 1970. */
export interface AskingParts {
  readonly fetch: Fetcher;
  readonly answers: Answers;
  readonly now: () => number;
  readonly newId: () => string;
}

/** Asks a source, and keeps what may be kept of its answer. Rejects as Fetch.respond does. */
export async function askSource(parts: AskingParts, question: Question): Promise<FetchOutcome> {
  const { fetch, now, answers } = parts;
  const [requestMs, since] = [now(), answers.epoch()];
  const reply = await fetch.respond(question.plan.plainRule, question.request);
  const arrived = receive(reply, requestMs, now());
  const { standIn, asked } = question;
  if (isSourceError(reply.status) && standIn !== undefined) {
    if (mayStandIn(standIn.answer.freshness, 'error', asked, now())) {
      return { kind: 'error', reply: arrived.reply };
    }
  }
  const asking = { ...question, since };
  return reply.status === 304 ? confirm(parts, asking, arrived) : keep(parts, asking, arrived);
}

/** Keeps an answer as soon as all of it is there, if it may be kept. */
export function keep(
  { answers, newId }: Pick<AskingParts, 'answers' | 'newId'>,
  { plan, url, sent, since }: Pick<Asked, 'plan' | 'url' | 'sent' | 'since'>,
  arrived: Arrived,
): FetchOutcome {
  const { reply } = arrived;
  const contentBytesMax = answers.contentBytesMax();
  const answer = toStore(arrived, {
    newId,
    url,
    plan,
    sent,
    hasCredentials: hasCredentials(sent, plan),
    contentBytesMax,
  });
  if (typeof answer === 'string') return { kind: 'passing', reply, why: answer };
  const { body } = reply;
  const { leftOut } = splitFields(arrived.received.fields);
  if (body.kind === 'stream') {
    const place = answers.placeOf(answer.id);
    const { isShared: isEndHeld } = answers;
    const limits = { bytesMax: contentBytesMax, bytesLength: answer.bytesLength, isEndHeld };
    const intake = shareBody(body.stream, limits, place);
    intake.whole
      .then((whole) => {
        if (whole === undefined) return undefined;
        const { content, bytesLength } = whole;
        if (isAllOf(answer, bytesLength)) answers.put({ ...answer, bytesLength }, content, since);
        else if (content.kind === 'file') return place.remove();
        return answers.visible(url);
      })
      .catch(place.report)
      .finally(() => {
        intake.passEnd();
      });
    return { kind: 'kept', answer, content: intake, leftOut };
  }
  const bytes = body.kind === 'bytes' ? body.bytes : Buffer.alloc(0);
  return { kind: 'kept', answer, content: answers.put(answer, bytes, since), leftOut };
}

/** Whether content that came without a length is as long as what it is a part of needs. */
function isAllOf({ range, bytesLength }: StoredResponse, arrived: number): boolean {
  return range === undefined || arrived === bytesLength;
}

/** Freshens the kept answer that a 304 selects (RFC 9111 §4.3.4). */
async function confirm(
  { answers }: AskingParts,
  { validating, sent, plan, since }: Asked,
  { reply, received }: Arrived,
): Promise<FetchOutcome> {
  const held = validating.find(({ answer }) =>
    isConfirmedBy(answer, received.fields, validating.length),
  );
  if (held === undefined || !(await answers.ready(held))) {
    return { kind: 'passing', reply, why: 'unselected' };
  }
  const { answer, leftOut } = freshened(held.answer, received, sent);
  const updated = holdAnswer(answer, contentOf(held), held.row);
  const isKept = keepFreshened(answers, updated, { received, sent, plan, since });
  return { kind: 'confirmed', held: updated, isKept, leftOut };
}

/**
 * Keeps a freshened answer, or drops one that must not be kept any more; returns whether it is
 * kept. What was confirmed to a client by its credentials leaves the stored answer as it was.
 */
export function keepFreshened(
  answers: Answers,
  updated: CachedResponse,
  {
    received,
    sent,
    plan,
    since,
  }: Pick<Asked, 'sent' | 'plan' | 'since'> & Pick<Arrived, 'received'>,
): boolean {
  const { status, fields } = updated.answer;
  const refusal = refusalToStore(
    { ...received, status, fields },
    { hasCredentials: hasCredentials(sent, plan) },
  );
  if (refusal === credentialsRefusal) return false;
  const isKept = refusal === undefined || refusal === 'expired';
  if (isKept) answers.update(updated, since);
  // Whoever asked opens its file before that goes, which is in a later turn.
  else answers.drop(updated.answer).catch(() => undefined);
  return isKept;
}

/** Whether the source was told which client asks (RFC 9111 §3.5). */
export function hasCredentials(sent: SentField, { credentialFields }: CachePlan): boolean {
  return credentialFields.some((name) => (sent(name) ?? '') !== '');
}
