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
import { receiveResponse } from './received-response.ts';
import { replyFromOutcome, isFreshOutcome, replacesStored, isUsableFor } from './outcome-reply.ts';
import {
  fetchFromSource,
  hasCredentials,
  storeResponse,
  storeFreshened,
  type FetchOutcome,
  type SourceFetchParts,
} from './source-fetch.ts';
import { forwardedStatus, withCacheStatus, type ForwardReason } from './cache-status.ts';
import {
  asSent,
  hasSourcePreconditions,
  isValidatable,
  sourceRequest,
  unconditional,
} from './conditional-request.ts';
import { RequestCoalescer, type SharedResult } from './request-coalescer.ts';
import { notCachedReply, forwardedReply } from './forwarded-reply.ts';
import { cachedReply, hitReply, toCachedResponse } from './cached-reply.ts';
import { explainCached } from './explain.ts';
import { isGetEquivalent, invalidatedUrls } from './invalidation.ts';
import { cachePlans } from './cache-plan.ts';
import { requestDirectives } from './request-directives.ts';
import { mayStandIn, reuseOf } from './reuse.ts';
import { freshened, isSameRepresentation } from './freshening.ts';
import {
  matchingVary,
  coalescingKey,
  forwardReason,
  lookUp,
  selectStored,
  withoutStored,
  type CacheLookup,
} from './cache-lookup.ts';

/** What the cache stands on; `via` is this server's name in Via fields. */
interface CachedFetchParts extends SourceFetchParts {
  readonly via: string;
  /** The fields in which a trusted proxy names the client, by lower-case name. */
  readonly identityFields: readonly string[];
}

/**
 * The shared cache in front of fetched content (docs/design/fetching.md#cache, RFC 9111): what a
 * source has answered answers others as well, for as long as the source allows it.
 */
export function cachedFetch(parts: CachedFetchParts): Fetcher {
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
  readonly #parts: CachedFetchParts;
  readonly #planOf: ReturnType<typeof cachePlans>;
  readonly #flights: RequestCoalescer<FetchOutcome>;
  /** What turned out to be for one alone: nobody waits for another one's answer. */
  readonly #unshared = remembered<true>(unsharedUrlsMax, { ttl: unsharedMs });

  constructor(parts: CachedFetchParts) {
    this.#parts = parts;
    this.#planOf = cachePlans(parts.identityFields);
    this.#flights = new RequestCoalescer(parts.answers);
  }

  async respond(rule: FetchRule, given: ContentRequest): Promise<Reply> {
    if (!isRead(given.method)) return this.#through(rule, given);
    const asked = requestDirectives(given.fields);
    if (asked.noStore) return this.#past(rule, given, 'request');
    if (hasSourcePreconditions(given.fields)) return this.#past(rule, given, 'bypass');
    let visit = this.#visit(rule, given);
    const { request } = visit;
    let held = selectStored(visit);
    while (held !== undefined) {
      const ready = this.#parts.answers.ready(held);
      if (ready === true || (await ready)) break;
      // It has been let go of, unless the disk cannot be written: it must not be found again.
      visit = withoutStored(visit, held);
      held = selectStored(visit);
    }
    const nowMs = this.#parts.now();
    if (held !== undefined) {
      const reuse = reuseOf(held.answer.freshness, asked, nowMs);
      if (reuse === 'while_revalidating') this.#revalidate(visit, held);
      if (reuse !== 'validate') return hitReply(held, request, nowMs, this.#parts.answers);
    }
    if (asked.onlyIfCached) return notCachedReply(visit.plan.fetch.id);
    if (request.method === 'HEAD') return this.#head(visit, held);
    if (request.fields.range !== undefined && !isWholeRepresentation(held))
      return this.#range(visit, held);
    return this.#ask(visit, held);
  }

  foresee(rule: FetchRule, asked: PageRequest): ExpectedReply {
    const foreseen = this.#parts.fetch.explain(rule, asked);
    if (!isRead(asked.method)) return foreseen;
    const request = { ...asked, address: '', body: undefined };
    const known = lookUp(this.#parts, this.#planOf(rule), request);
    return explainCached(selectStored(known), foreseen, {
      asked: requestDirectives(asked.fields),
      nowMs: this.#parts.now(),
    });
  }

  #visit(rule: FetchRule, request: ContentRequest): CacheLookup {
    const known = lookUp(this.#parts, this.#planOf(rule), request);
    const passed = countRulesInVia(request.fields.via, this.#parts.via);
    return { asked: requestDirectives(request.fields), rulesPassed: passed, ...known };
  }

  /** Methods that are no business of a cache, but for what they make of what it keeps. */
  async #through(rule: FetchRule, request: ContentRequest): Promise<Reply> {
    const { fetch, now, answers } = this.#parts;
    const visit = this.#visit(rule, request);
    const { url, plan } = visit;
    const [requestMs, before] = [now(), answers.epoch()];
    const arrived = receiveResponse(
      await fetch.respond(plan.plainRule, visit.request),
      requestMs,
      now(),
    );
    const { reply } = arrived;
    const invalid = invalidatedUrls(request, request.method, reply);
    if (invalid.length > 0) await answers.invalidate(invalid);
    // What another one has changed there meanwhile, nobody knows whether before or after.
    const isNewest =
      isGetEquivalent(url, request.method, arrived) && !answers.isPurgedTwiceSince(before, url);
    const since = answers.epoch();
    const arrival: FetchOutcome = isNewest
      ? storeResponse(this.#parts, { ...visit, since }, arrived)
      : { kind: 'passing', reply, why: undefined };
    return replyFromOutcome({
      visit,
      forwarded: 'method',
      held: undefined,
      arrival,
      nowMs: now(),
      isCollapsed: false,
    });
  }

  async #past(rule: FetchRule, request: ContentRequest, forwarded: ForwardReason): Promise<Reply> {
    const reply = await this.#parts.fetch.respond(rule, request);
    const { status } = reply;
    return withCacheStatus(reply, forwardedStatus({ forwarded, status, outcome: 'pass' }));
  }

  /** The answer to a HEAD says whether what is kept is still what a GET would get (§4.3.5). */
  async #head(visit: CacheLookup, held: CachedResponse | undefined): Promise<Reply> {
    const { fetch, now, answers } = this.#parts;
    const { plan, request, known, sent } = visit;
    const [requestMs, since] = [now(), answers.epoch()];
    const answered = await fetch.respond(plan.plainRule, request);
    const { reply, received } = receiveResponse(answered, requestMs, now());
    if (reply.status === 200 && !hasCredentials(sent, plan)) {
      for (const kept of matchingVary(known, sent)) {
        const { answer, row } = kept;
        if (!isSameRepresentation(answer, received.fields)) await answers.drop(answer);
        else {
          const update = freshened(answer, received, sent);
          const fresh = toCachedResponse(update.answer, contentOf(kept), row);
          storeFreshened(answers, fresh, { received, sent, plan, since });
        }
      }
    }
    const forwarded = forwardReason(visit, held);
    const told = forwardedStatus({ forwarded, status: reply.status });
    return withCacheStatus(forwardedReply(reply, plan.fetch.httpresponse, request), told);
  }

  /** A part that is not there, or not fresh, is asked for as the client does. */
  async #range(visit: CacheLookup, held: CachedResponse | undefined): Promise<Reply> {
    const question = { ...visit, validating: [], standIn: held };
    try {
      return this.#answer(visit, held, await fetchFromSource(this.#parts, question));
    } catch (thrown) {
      return this.#standIn(visit, held, thrown);
    }
  }

  /** Asks the source about all of the target, together with all who want the same. */
  async #ask(visit: CacheLookup, held: CachedResponse | undefined): Promise<Reply> {
    const { request, asked } = visit;
    const key = coalescingKey(visit, held);
    try {
      if (!asked.noCache && !this.#unshared.has(key)) {
        const reply = await this.#flights.join(
          { key, url: visit.url },
          request.signal,
          (signal) => this.#arrive(visit, held, { key, signal }).then(sharedResult),
          (arrival, { isFirst }) =>
            isFirst || isUsableFor(visit, held, arrival, this.#parts.now())
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
    const told = forwardedStatus({ forwarded: 'stale', detail, outcome: 'stale' });
    return cachedReply(held, request, nowMs, told);
  }

  /** Asks the source about what is used meanwhile (RFC 5861 §3). */
  #revalidate(visit: CacheLookup, held: CachedResponse): void {
    const part = isWholeRepresentation(held) ? '' : `\n${visit.request.fields.range}`;
    const key = coalescingKey(visit, held) + part;
    this.#flights
      .join(
        { key, url: visit.url },
        new AbortController().signal,
        (signal) => this.#arrive(visit, held, { key, signal }).then(sharedResult),
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
    const isPart = held !== undefined && !isWholeRepresentation(held);
    const question = {
      ...visit,
      request: isPart
        ? asSent(request, signal)
        : sourceRequest(request, { asking, isAlone, signal }),
      validating: asking,
    };
    let arrival = await fetchFromSource(this.#parts, { ...question, standIn: held });
    if (!isAlone && !isPart && arrival.kind === 'passing' && arrival.reply.status === 304) {
      const whole = { ...question, request: unconditional(request, signal), validating: [] };
      arrival = await fetchFromSource(this.#parts, { ...whole, standIn: held });
    }
    if (held !== undefined && !isPart && replacesStored(arrival)) {
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
    const forwarded = forwardReason(visit, held);
    return replyFromOutcome({
      visit,
      forwarded,
      held,
      arrival,
      nowMs: this.#parts.now(),
      isCollapsed,
    });
  }

  #remember(key: string, arrival: FetchOutcome): void {
    if (
      arrival.kind === 'passing' ||
      (arrival.kind === 'kept' && !isFreshOutcome(arrival, this.#parts.now()))
    ) {
      this.#unshared.set(key, true);
    } else this.#unshared.delete(key);
  }
}

/** Whether all of a representation is kept, and not a part of it. */
function isWholeRepresentation(held: CachedResponse | undefined): boolean {
  return held !== undefined && held.answer.range === undefined;
}

function sharedResult(arrival: FetchOutcome): SharedResult<FetchOutcome> {
  const isOnItsWay = arrival.kind === 'kept' && !('page' in arrival.content);
  return {
    arrival,
    landed: isOnItsWay ? arrival.content.whole : undefined,
    discard: () => {
      if ('reply' in arrival) void discard(arrival.reply);
    },
  };
}
