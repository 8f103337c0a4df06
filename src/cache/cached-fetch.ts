import { discard, type Reply } from '../http/reply.ts';
import { isRead, type ContentRequest } from '../http/request.ts';
import type { Cancellation } from '../model/cancellation.ts';
import { Failure } from '../model/failure.ts';
import { unsharedMs, unsharedUrlsMax } from '../model/limits.ts';
import { urlOf } from '../model/path.ts';
import { remembered } from '../model/remembered.ts';
import { countRulesInVia } from '../proxy/request-fields.ts';
import type { FetchRule } from '../proxy/fetch-plan.ts';
import type { Fetcher } from '../proxy/fetcher.ts';
import type { PageRequest, ExpectedReply } from '../rules/source.ts';
import { contentOf, type CachedResponse } from './cached-response.ts';
import { receive } from './arrival.ts';
import { answerWith, isFresh, isInItsPlace, isShared } from './answering.ts';
import {
  askSource,
  hasCredentials,
  keep,
  keepFreshened,
  type FetchOutcome,
  type AskingParts,
} from './asking.ts';
import { toldForwarded, withTold, type Forwarded } from './cache-status.ts';
import { asAsked, isForSourceOnly, isValidatable, sending, unconditional } from './conditional.ts';
import { RequestCoalescer, type SharedResult } from './request-coalescer.ts';
import { notKeptReply, passingReply } from './forwarded-reply.ts';
import { heldReply, holdAnswer } from './held-reply.ts';
import { hitReply } from './hit.ts';
import { foreseeKept } from './foresee.ts';
import { isForGet, urlsMadeInvalid } from './invalidation.ts';
import { createPlans } from './plans.ts';
import { requestDirectives } from './request.ts';
import { mayStandIn, reuseOf } from './reuse.ts';
import { freshened, isSameAs } from './update.ts';
import {
  fittingAnswers,
  flightKey,
  forwardedFor,
  knownOf,
  selected,
  without,
  type CacheLookup,
} from './cache-lookup.ts';

/** What the cache stands on; `via` is this server's name in Via fields. */
interface CacheParts extends AskingParts {
  readonly via: string;
  /** The fields in which a trusted proxy names the client, by lower-case name. */
  readonly identityFields: readonly string[];
}

/**
 * The shared cache in front of fetched content (docs/design/fetching.md#cache, RFC 9111): what a
 * source has answered answers others as well, for as long as the source allows it.
 */
export function cachedFetch(parts: CacheParts): Fetcher {
  const cache = new Cache(parts);
  return {
    ...parts.fetch,
    async respond(rule, request) {
      const reply = await cache.respond(rule, request);
      // Who has the answer may ask another process next.
      await parts.answers.visible(urlOf(request));
      return reply;
    },
    explain: (rule, asked) => cache.foresee(rule, asked),
  };
}

class Cache {
  readonly #parts: CacheParts;
  readonly #planOf: ReturnType<typeof createPlans>;
  readonly #flights: RequestCoalescer<FetchOutcome>;
  /** What turned out to be for one alone: nobody waits for another one's answer. */
  readonly #unshared = remembered<true>(unsharedUrlsMax, { ttl: unsharedMs });

  constructor(parts: CacheParts) {
    this.#parts = parts;
    this.#planOf = createPlans(parts.identityFields);
    this.#flights = new RequestCoalescer(parts.answers);
  }

  async respond(rule: FetchRule, given: ContentRequest): Promise<Reply> {
    if (!isRead(given.method)) return this.#through(rule, given);
    const asked = requestDirectives(given.fields);
    if (asked.noStore) return this.#past(rule, given, 'request');
    if (isForSourceOnly(given.fields)) return this.#past(rule, given, 'bypass');
    let visit = this.#visit(rule, given);
    const { request } = visit;
    let held = selected(visit);
    while (held !== undefined) {
      const ready = this.#parts.answers.ready(held);
      if (ready === true || (await ready)) break;
      // It has been let go of, unless the disk cannot be written: it must not be found again.
      visit = without(visit, held);
      held = selected(visit);
    }
    const nowMs = this.#parts.now();
    if (held !== undefined) {
      const reuse = reuseOf(held.answer.freshness, asked, nowMs);
      if (reuse === 'while_revalidating') this.#revalidate(visit, held);
      if (reuse !== 'validate') return hitReply(held, request, nowMs, this.#parts.answers);
    }
    if (asked.onlyIfCached) return notKeptReply(visit.plan.fetch.id);
    if (request.method === 'HEAD') return this.#head(visit, held);
    if (request.fields.range !== undefined && !isWhole(held)) return this.#range(visit, held);
    return this.#ask(visit, held);
  }

  foresee(rule: FetchRule, asked: PageRequest): ExpectedReply {
    const foreseen = this.#parts.fetch.explain(rule, asked);
    if (!isRead(asked.method)) return foreseen;
    const request = { ...asked, address: '', body: undefined };
    const known = knownOf(this.#parts, this.#planOf(rule), request);
    return foreseeKept(selected(known), foreseen, {
      asked: requestDirectives(asked.fields),
      nowMs: this.#parts.now(),
    });
  }

  #visit(rule: FetchRule, request: ContentRequest): CacheLookup {
    const known = knownOf(this.#parts, this.#planOf(rule), request);
    const passed = countRulesInVia(request.fields.via, this.#parts.via);
    return { asked: requestDirectives(request.fields), rulesPassed: passed, ...known };
  }

  /** Methods that are no business of a cache, but for what they make of what it keeps. */
  async #through(rule: FetchRule, request: ContentRequest): Promise<Reply> {
    const { fetch, now, answers } = this.#parts;
    const visit = this.#visit(rule, request);
    const { url, plan } = visit;
    const [requestMs, before] = [now(), answers.epoch()];
    const arrived = receive(await fetch.respond(plan.plainRule, visit.request), requestMs, now());
    const { reply } = arrived;
    const invalid = urlsMadeInvalid(request, request.method, reply);
    if (invalid.length > 0) await answers.invalidate(invalid);
    // What another one has changed there meanwhile, nobody knows whether before or after.
    const isNewest =
      isForGet(url, request.method, arrived) && !answers.isPurgedTwiceSince(before, url);
    const since = answers.epoch();
    const arrival: FetchOutcome = isNewest
      ? keep(this.#parts, { ...visit, since }, arrived)
      : { kind: 'passing', reply, why: undefined };
    return answerWith({
      visit,
      forwarded: 'method',
      held: undefined,
      arrival,
      nowMs: now(),
      isCollapsed: false,
    });
  }

  async #past(rule: FetchRule, request: ContentRequest, forwarded: Forwarded): Promise<Reply> {
    const reply = await this.#parts.fetch.respond(rule, request);
    const { status } = reply;
    return withTold(reply, toldForwarded({ forwarded, status, outcome: 'pass' }));
  }

  /** The answer to a HEAD says whether what is kept is still what a GET would get (§4.3.5). */
  async #head(visit: CacheLookup, held: CachedResponse | undefined): Promise<Reply> {
    const { fetch, now, answers } = this.#parts;
    const { plan, request, known, sent } = visit;
    const [requestMs, since] = [now(), answers.epoch()];
    const answered = await fetch.respond(plan.plainRule, request);
    const { reply, received } = receive(answered, requestMs, now());
    if (reply.status === 200 && !hasCredentials(sent, plan)) {
      for (const kept of fittingAnswers(known, sent)) {
        const { answer, row } = kept;
        if (!isSameAs(answer, received.fields)) await answers.drop(answer);
        else {
          const update = freshened(answer, received, sent);
          const fresh = holdAnswer(update.answer, contentOf(kept), row);
          keepFreshened(answers, fresh, { received, sent, plan, since });
        }
      }
    }
    const forwarded = forwardedFor(visit, held);
    const told = toldForwarded({ forwarded, status: reply.status });
    return withTold(passingReply(reply, plan.fetch.httpresponse, request), told);
  }

  /** A part that is not there, or not fresh, is asked for as the client does. */
  async #range(visit: CacheLookup, held: CachedResponse | undefined): Promise<Reply> {
    const question = { ...visit, validating: [], standIn: held };
    try {
      return this.#answer(visit, held, await askSource(this.#parts, question));
    } catch (thrown) {
      return this.#standIn(visit, held, thrown);
    }
  }

  /** Asks the source about all of the target, together with all who want the same. */
  async #ask(visit: CacheLookup, held: CachedResponse | undefined): Promise<Reply> {
    const { request, asked } = visit;
    const key = flightKey(visit, held);
    try {
      if (!asked.noCache && !this.#unshared.has(key)) {
        const reply = await this.#flights.join(
          { key, url: visit.url },
          request.signal,
          (signal) => this.#arrive(visit, held, { key, signal }).then(landingOf),
          (arrival, { isFirst }) =>
            isFirst || isShared(visit, held, arrival, this.#parts.now())
              ? this.#answer(visit, held, arrival, !isFirst)
              : undefined,
        );
        if (reply !== undefined) return reply;
      }
      const arrival = await this.#arrive(visit, held, { key, signal: request.signal });
      return this.#answer(visit, held, arrival);
    } catch (thrown) {
      return this.#standIn(visit, held, thrown);
    }
  }

  /** What is kept, in place of a source that could not be reached; throws where it must not be. */
  #standIn(
    { request, asked }: CacheLookup,
    held: CachedResponse | undefined,
    thrown: unknown,
  ): Reply {
    const nowMs = this.#parts.now();
    const isUnreachable = thrown instanceof Failure && !request.signal.aborted;
    if (!isUnreachable || held === undefined) throw thrown;
    if (!mayStandIn(held.answer.freshness, 'unreachable', asked, nowMs)) throw thrown;
    const detail = thrown.code;
    const told = toldForwarded({ forwarded: 'stale', detail, outcome: 'stale' });
    return heldReply(held, request, nowMs, told);
  }

  /** Asks the source about what is used meanwhile (RFC 5861 §3). */
  #revalidate(visit: CacheLookup, held: CachedResponse): void {
    const part = isWhole(held) ? '' : `\n${visit.request.fields.range}`;
    const key = flightKey(visit, held) + part;
    this.#flights
      .join(
        { key, url: visit.url },
        new AbortController().signal,
        (signal) => this.#arrive(visit, held, { key, signal }).then(landingOf),
        () => undefined,
      )
      .catch(() => undefined);
  }

  async #arrive(
    visit: CacheLookup,
    held: CachedResponse | undefined,
    { key, signal }: { readonly key: string; readonly signal: Cancellation },
  ): Promise<FetchOutcome> {
    const { request, known } = visit;
    const candidates = held === undefined ? known : [held];
    const asking = candidates.filter((one) => one.answer.range === undefined && isValidatable(one));
    const isAlone = asking.length === 0 && this.#unshared.has(key);
    const isPart = held !== undefined && !isWhole(held);
    const question = {
      ...visit,
      request: isPart ? asAsked(request, signal) : sending(request, { asking, isAlone, signal }),
      validating: asking,
    };
    let arrival = await askSource(this.#parts, { ...question, standIn: held });
    if (!isAlone && !isPart && arrival.kind === 'passing' && arrival.reply.status === 304) {
      const whole = { ...question, request: unconditional(request, signal), validating: [] };
      arrival = await askSource(this.#parts, { ...whole, standIn: held });
    }
    if (held !== undefined && !isPart && isInItsPlace(arrival)) {
      // Where the storage fails, that is told of by who writes to it.
      this.#parts.answers.drop(held.answer).catch(() => undefined);
    }
    this.#remember(key, arrival);
    return arrival;
  }

  #answer(
    visit: CacheLookup,
    held: CachedResponse | undefined,
    arrival: FetchOutcome,
    isCollapsed = false,
  ): Reply {
    const forwarded = forwardedFor(visit, held);
    return answerWith({ visit, forwarded, held, arrival, nowMs: this.#parts.now(), isCollapsed });
  }

  #remember(key: string, arrival: FetchOutcome): void {
    if (
      arrival.kind === 'passing' ||
      (arrival.kind === 'kept' && !isFresh(arrival, this.#parts.now()))
    ) {
      this.#unshared.set(key, true);
    } else this.#unshared.delete(key);
  }
}

/** Whether all of a representation is kept, and not a part of it. */
function isWhole(held: CachedResponse | undefined): boolean {
  return held !== undefined && held.answer.range === undefined;
}

function landingOf(arrival: FetchOutcome): SharedResult<FetchOutcome> {
  const isOnItsWay = arrival.kind === 'kept' && !('page' in arrival.content);
  return {
    arrival,
    landed: isOnItsWay ? arrival.content.whole : undefined,
    discard: () => {
      if ('reply' in arrival) void discard(arrival.reply);
    },
  };
}
