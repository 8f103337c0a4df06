import { type Reply, discard } from '../../core/http/reply.ts';
import { type ContentRequest, isRead } from '../../core/http/request.ts';
import type { ViaNames } from '../../core/outbound/own-names.ts';
import type { ExpectedReply, PageRequest } from '../../core/pipeline/source.ts';
import { type Cancellation, Failure } from '../../core/values/failure.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { unknownAddress } from '../../core/values/network/peer.ts';
import { type FetchRule, fetchPlan } from '../proxy/fetch-plan.ts';
import type { Fetcher } from '../proxy/fetcher.ts';
import { countRulesInVia } from '../proxy/request-fields.ts';
import {
  type CacheLookup,
  cachePlans,
  cacheUrlOf,
  coalescingKey,
  forwardReason,
  lookUp,
  matchingVary,
  selectStored,
  withoutStored,
} from './cache-lookup.ts';
import {
  type ForwardReason,
  cachedReply,
  forwardedStatus,
  hitReply,
  toCachedResponse,
  withCacheStatus,
} from './cached-reply.ts';
import { type CachedResponse, contentOf } from './cached-response.ts';
import { type RequestDirectives, requestDirectives } from './directives.ts';
import { explainBypass, explainCached } from './explain.ts';
import { mayServeStale, reuseOf } from './freshness.ts';
import { invalidatedUrls, isGetEquivalent } from './invalidation.ts';
import {
  forwardedReply,
  isFreshOutcome,
  isUsableFor,
  notCachedReply,
  replacesStored,
  replyFromOutcome,
} from './outcome-reply.ts';
import { RequestCoalescer, type SharedResult } from './request-coalescer.ts';
import {
  type FetchOutcome,
  type SourceFetchParts,
  fetchFromSource,
  hasCredentials,
  storeFreshened,
  storeResponse,
} from './source-fetch.ts';
import { receiveResponse } from './storability.ts';
import {
  asSent,
  freshened,
  hasSourcePreconditions,
  isSameRepresentation,
  isValidatable,
  sourceRequest,
  unconditional,
} from './validation.ts';

/** URLs that are remembered for responses that cannot be shared, and for how long. */
const unsharedUrlsMax = 10_000;
const unsharedMs = 120_000;

/**
 * How long a request waits for the response to another one of the same content, before it is sent
 * itself: that of `proxy_cache_lock_timeout` of nginx.
 */
const coalescedWaitMsMax = 5_000;

/** `via` has this server's names in Via fields. */
interface CachedFetchParts extends SourceFetchParts {
  readonly via: ViaNames;
  /** The fields in which a trusted proxy names the client, by lower-case name. */
  readonly identityFields: readonly string[];
}

/**
 * The shared cache in front of fetched content (docs/design/fetching.md#cache, RFC 9111): the
 * response of a source answers later requests too, as long as the source allows it.
 */
export function cachedFetch(parts: CachedFetchParts): Fetcher {
  const cache = new Cache(parts);
  return {
    ...parts.fetch,
    respond(rule, request) {
      if (fetchPlan(rule).ini?.isCached === false) return parts.fetch.respond(rule, request);
      const replied = cache.respond(rule, request);
      if (!parts.answers.isShared) return replied;
      return replied.then(async (reply) => {
        // The client's next request may reach another process, which must see the change.
        await parts.answers.visible(cacheUrlOf(request));
        return reply;
      });
    },
    explain: (rule, asked) =>
      fetchPlan(rule).ini?.isCached === false
        ? parts.fetch.explain(rule, asked)
        : cache.explain(rule, asked),
  };
}

class Cache {
  readonly #parts: CachedFetchParts;
  readonly #planOf: ReturnType<typeof cachePlans>;
  readonly #coalescer: RequestCoalescer<FetchOutcome>;
  /** Keys whose responses are for one client only: their requests are not coalesced. */
  readonly #unshareable = createLruCache<true>(unsharedUrlsMax, { ttl: unsharedMs });

  constructor(parts: CachedFetchParts) {
    this.#parts = parts;
    this.#planOf = cachePlans(parts.identityFields);
    this.#coalescer = new RequestCoalescer(parts.answers, {
      waitMsMax: coalescedWaitMsMax,
      // Later requests would wait for nothing, too.
      onLate: (key) => this.#unshareable.set(key, true),
    });
  }

  async respond(rule: FetchRule, given: ContentRequest): Promise<Reply> {
    if (!isRead(given.method)) return this.#forward(rule, given);
    // An application may answer by the content of a GET, which no cache key has.
    const isUnkeyed = given.isPersonal === true || given.body !== undefined;
    if (isUnkeyed) return this.#bypass(rule, given, 'bypass');
    const directives = requestDirectives(given.fields);
    if (directives.noStore) return this.#bypass(rule, given, 'request');
    if (hasSourcePreconditions(given.fields)) return this.#bypass(rule, given, 'bypass');
    let lookup = this.#lookUp(rule, given, directives);
    if (lookup.overriddenBy !== undefined) return this.#bypass(rule, given, 'bypass');
    const { request } = lookup;
    let cached = selectStored(lookup);
    while (cached !== undefined) {
      const ready = this.#parts.answers.ready(cached);
      if (ready === true || (await ready)) break;
      // The store has removed it, unless the disk is not writable: do not find it again.
      lookup = withoutStored(lookup, cached);
      cached = selectStored(lookup);
    }
    const nowMs = this.#parts.now();
    if (cached !== undefined) {
      const reuse = reuseOf(cached.answer.freshness, directives, nowMs);
      if (reuse === 'while_revalidating') this.#revalidate(lookup, cached);
      if (reuse !== 'validate') return hitReply(cached, request, nowMs, this.#parts.answers);
    }
    if (directives.onlyIfCached) return notCachedReply(lookup.plan.fetch.id);
    if (request.method === 'HEAD') return this.#head(lookup, cached);
    if (request.fields.range !== undefined && !isWholeRepresentation(cached))
      return this.#range(lookup, cached);
    return this.#fetchWhole(lookup, cached);
  }

  explain(rule: FetchRule, asked: PageRequest): ExpectedReply {
    const explained = this.#parts.fetch.explain(rule, asked);
    if (!isRead(asked.method)) return explained;
    const request = { ...asked, address: unknownAddress, body: undefined } as const;
    const lookup = lookUp(this.#parts, this.#planOf(rule), request);
    if (lookup.overriddenBy !== undefined) return explainBypass(explained, lookup.overriddenBy);
    return explainCached(selectStored(lookup), explained, {
      directives: requestDirectives(asked.fields),
      nowMs: this.#parts.now(),
    });
  }

  #lookUp(rule: FetchRule, request: ContentRequest, directives: RequestDirectives): CacheLookup {
    const rulesPassed = countRulesInVia(request.fields.via);
    return { directives, rulesPassed, ...lookUp(this.#parts, this.#planOf(rule), request) };
  }

  /** Forwards other methods, and invalidates stored responses by the result. */
  async #forward(rule: FetchRule, request: ContentRequest): Promise<Reply> {
    const { fetch, now, answers } = this.#parts;
    const lookup = this.#lookUp(rule, request, requestDirectives(request.fields));
    const { url, plan } = lookup;
    const [requestMs, before] = [now(), answers.epoch()];
    const arrived = receiveResponse(
      await fetch.respond(plan.plainRule, lookup.request),
      requestMs,
      now(),
    );
    const { reply } = arrived;
    const invalid = invalidatedUrls(request, request.method, reply);
    if (invalid.length > 0) await answers.invalidate(invalid);
    // After another change of the URL, the order of the two is unknown.
    const isNewest =
      request.isPersonal !== true &&
      lookup.overriddenBy === undefined &&
      isGetEquivalent(request, request.method, arrived) &&
      !answers.isPurgedTwiceSince(before, url);
    const since = answers.epoch();
    const outcome: FetchOutcome = isNewest
      ? storeResponse(this.#parts, { ...lookup, since }, arrived)
      : { kind: 'forwarded', reply, reason: undefined };
    return replyFromOutcome({
      lookup,
      forwarded: 'method',
      cached: undefined,
      outcome,
      nowMs: now(),
      isCollapsed: false,
    });
  }

  async #bypass(
    rule: FetchRule,
    request: ContentRequest,
    forwarded: ForwardReason,
  ): Promise<Reply> {
    const reply = await this.#parts.fetch.respond(rule, request);
    const { status } = reply;
    return withCacheStatus(reply, forwardedStatus({ forwarded, status, outcome: 'pass' }));
  }

  /** Forwards a HEAD, and freshens or removes the stored GET responses (RFC 9111 §4.3.5). */
  async #head(lookup: CacheLookup, cached: CachedResponse | undefined): Promise<Reply> {
    const { fetch, now, answers } = this.#parts;
    const { plan, request, stored, sent } = lookup;
    const [requestMs, since] = [now(), answers.epoch()];
    const answered = await fetch.respond(plan.plainRule, request);
    const { reply, received } = receiveResponse(answered, requestMs, now());
    if (reply.status === 200 && !hasCredentials(sent, plan)) {
      for (const kept of matchingVary(stored, sent)) {
        const { answer, row } = kept;
        if (!isSameRepresentation(answer, received.fields)) await answers.drop(answer);
        else {
          const update = freshened(answer, received, sent);
          const fresh = toCachedResponse(update.answer, contentOf(kept), row);
          const { privateFields } = update;
          storeFreshened(answers, fresh, { received, privateFields, sent, plan, since });
        }
      }
    }
    const forwarded = forwardReason(lookup, cached);
    const cacheStatus = forwardedStatus({ forwarded, status: reply.status });
    return withCacheStatus(forwardedReply(reply, plan.fetch.httpresponse, request), cacheStatus);
  }

  /** Forwards a range request that no fresh stored response covers. */
  async #range(lookup: CacheLookup, cached: CachedResponse | undefined): Promise<Reply> {
    const question = { ...lookup, validating: [], fallback: cached };
    try {
      return this.#replyFrom(lookup, cached, await fetchFromSource(this.#parts, question));
    } catch (thrown) {
      return this.#serveStale(lookup, cached, thrown);
    }
  }

  /** Fetches the whole representation, once for all requests with the same key. */
  async #fetchWhole(lookup: CacheLookup, cached: CachedResponse | undefined): Promise<Reply> {
    const { request, directives } = lookup;
    const key = coalescingKey(lookup, cached);
    try {
      if (!directives.noCache && !this.#unshareable.has(key)) {
        const reply = await this.#coalescer.join(
          { key, url: lookup.url },
          request.signal,
          (signal) => this.#fetchOutcome(lookup, cached, { key, signal }).then(sharedResult),
          (outcome, { isFirst }) =>
            isFirst || isUsableFor(lookup, cached, outcome, this.#parts.now())
              ? this.#replyFrom(lookup, cached, outcome, !isFirst)
              : undefined,
        );
        if (reply !== undefined) return reply;
      }
      const outcome = await this.#fetchOutcome(lookup, cached, { key, signal: request.signal });
      return this.#replyFrom(lookup, cached, outcome);
    } catch (thrown) {
      return this.#serveStale(lookup, cached, thrown);
    }
  }

  /** Serves a stale response if the source is unreachable; rethrows if that is not allowed. */
  #serveStale(
    { request, directives }: CacheLookup,
    cached: CachedResponse | undefined,
    thrown: unknown,
  ): Reply {
    const nowMs = this.#parts.now();
    const isUnreachable = thrown instanceof Failure && !request.signal.aborted;
    if (!isUnreachable || cached === undefined) throw thrown;
    if (!mayServeStale(cached.answer.freshness, 'unreachable', directives, nowMs)) throw thrown;
    const detail = thrown.code;
    const cacheStatus = forwardedStatus({ forwarded: 'stale', detail, outcome: 'stale' });
    return cachedReply(cached, request, nowMs, cacheStatus);
  }

  /** Validates in the background (stale-while-revalidate, RFC 5861 §3). */
  #revalidate(lookup: CacheLookup, cached: CachedResponse): void {
    const part = isWholeRepresentation(cached) ? '' : `\n${lookup.request.fields.range}`;
    const key = coalescingKey(lookup, cached) + part;
    this.#coalescer
      .join(
        { key, url: lookup.url },
        new AbortController().signal,
        (signal) => this.#fetchOutcome(lookup, cached, { key, signal }).then(sharedResult),
        () => undefined,
      )
      .catch(() => undefined);
  }

  async #fetchOutcome(
    lookup: CacheLookup,
    cached: CachedResponse | undefined,
    { key, signal }: { readonly key: string; readonly signal: Cancellation },
  ): Promise<FetchOutcome> {
    const { request, stored } = lookup;
    const candidates = cached === undefined ? stored : [cached];
    const validating = candidates.filter(
      (one) => one.answer.range === undefined && isValidatable(one),
    );
    const isUnshareable = validating.length === 0 && this.#unshareable.has(key);
    const isPart = cached !== undefined && !isWholeRepresentation(cached);
    const { plan, url, sent, directives } = lookup;
    const question = { plan, url, sent, directives, fallback: cached };
    let outcome = await fetchFromSource(this.#parts, {
      ...question,
      request: isPart
        ? asSent(request, signal)
        : sourceRequest(request, { validating, isUnshareable, signal }),
      validating,
    });
    if (!isUnshareable && !isPart && outcome.kind === 'forwarded' && outcome.reply.status === 304) {
      const whole = unconditional(request, signal);
      outcome = await fetchFromSource(this.#parts, { ...question, request: whole, validating: [] });
    }
    if (cached !== undefined && !isPart && replacesStored(outcome)) {
      // The store reports its own failures.
      this.#parts.answers.drop(cached.answer).catch(() => undefined);
    }
    this.#noteShareability(key, outcome);
    return outcome;
  }

  #replyFrom(
    lookup: CacheLookup,
    cached: CachedResponse | undefined,
    outcome: FetchOutcome,
    isCollapsed = false,
  ): Reply {
    const forwarded = forwardReason(lookup, cached);
    return replyFromOutcome({
      lookup,
      forwarded,
      cached,
      outcome,
      nowMs: this.#parts.now(),
      isCollapsed,
    });
  }

  #noteShareability(key: string, outcome: FetchOutcome): void {
    const isUnshareable =
      outcome.kind === 'forwarded' ||
      (outcome.kind === 'stored' && !isFreshOutcome(outcome, this.#parts.now()));
    if (!isUnshareable) this.#unshareable.delete(key);
    // To renew an entry costs less than to replace it.
    else if (!this.#unshareable.has(key, { updateAgeOnHas: true }))
      this.#unshareable.set(key, true);
  }
}

/** Whether the whole representation is stored, and not a range of it. */
function isWholeRepresentation(cached: CachedResponse | undefined): boolean {
  return cached !== undefined && cached.answer.range === undefined;
}

function sharedResult(outcome: FetchOutcome): SharedResult<FetchOutcome> {
  const isOnItsWay = outcome.kind === 'stored' && !('page' in outcome.content);
  return {
    value: outcome,
    completed: isOnItsWay ? outcome.content.whole : undefined,
    discard: () => {
      if ('reply' in outcome) void discard(outcome.reply);
    },
  };
}
