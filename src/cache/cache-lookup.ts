import type { ContentRequest, Fields } from '../http/request.ts';
import { urlOf } from '../model/path.ts';
import { forwardedField, type ForwardedRequest } from '../proxy/request-fields.ts';
import type { PageRequest } from '../rules/source.ts';
import type { CachedResponse } from './cached-response.ts';
import type { CacheStore } from './cache-store.ts';
import type { ForwardReason } from './cache-status.ts';
import { covers } from './cached-reply.ts';
import type { CachePlan } from './cache-plan.ts';
import type { RequestDirectives } from './request-directives.ts';
import {
  selectingKey,
  withCanonicalLanguages,
  withCanonicalLists,
  type SentField,
} from './selection.ts';

/** A request that may be answered with what is kept, and what the cache knows of it. */
export interface CacheLookup {
  readonly plan: CachePlan;
  readonly url: string;
  readonly request: ContentRequest;
  readonly directives: RequestDirectives;
  readonly sent: SentField;
  /** How many rules the request has come through on its way here. */
  readonly rulesPassed: number;
  /** What is kept for its URL by its rule. */
  readonly stored: readonly CachedResponse[];
}

/**
 * What the cache knows of a request. Where another spelling of its fields means the same, the
 * request has that one: the source has to be sent what a stored answer is selected by.
 */
export function lookUp<T extends PageRequest & ForwardedRequest>(
  { answers, via }: { readonly answers: Pick<CacheStore, 'find'>; readonly via: string },
  plan: CachePlan,
  given: T,
): Pick<CacheLookup, 'plan' | 'url' | 'sent' | 'stored'> & { readonly request: T } {
  const url = urlOf(given);
  const stored = ofPlan(answers.find(url), plan);
  const inFields = (fields: Fields) => {
    const request = fields === given.fields ? given : { ...given, fields };
    const sent: SentField = (name) => forwardedField(plan.fetch, request, via, name);
    return { plan, url, request, sent, stored };
  };
  const lookup = inFields(withCanonicalLanguages(given.fields));
  const names = variedNames(stored).filter((name) => !plan.credentialFields.includes(name));
  if (names.length === 0 || matchingVary(stored, lookup.sent).length > 0) return lookup;
  return inFields(withCanonicalLists(lookup.request.fields, names));
}

/** Those of some answers that were asked for by a rule as it is now. */
function ofPlan(
  cached: readonly CachedResponse[],
  { fetch, hash }: CachePlan,
): readonly CachedResponse[] {
  if (cached.length === 0) return cached;
  return cached.filter(({ answer }) => answer.rule === fetch.id && answer.plan === hash);
}

/** The kept answer that a request selects (RFC 9111 §4.1) and that has all it asks for. */
export function selectStored({
  stored,
  sent,
  request,
}: Pick<CacheLookup, 'stored' | 'sent'> & {
  readonly request: Pick<ContentRequest, 'method' | 'fields'>;
}): CachedResponse | undefined {
  if (stored.length === 0) return undefined;
  const fitting = matchingVary(stored, sent).filter(({ answer }) => covers(answer, request));
  return fitting.find(({ answer }) => answer.range === undefined) ?? fitting[0];
}

/** Those of some answers that a request selects by the fields that they vary by. */
export function matchingVary(
  stored: readonly CachedResponse[],
  sent: SentField,
): readonly CachedResponse[] {
  let [names, key]: [string | undefined, string] = [undefined, ''];
  return stored.filter(({ answer: { varyNames, selecting } }) => {
    // Most answers of a URL vary by the same fields, whose values may be long.
    const named = varyNames.join();
    if (named !== names) [names, key] = [named, selectingKey(varyNames, sent)];
    return selecting.includes(key);
  });
}

/** A visit that does not know of one of the kept answers. */
export function withoutStored(lookup: CacheLookup, cached: CachedResponse): CacheLookup {
  return { ...lookup, stored: lookup.stored.filter((one) => one !== cached) };
}

/** Whether an answer is one for what a request says in the fields that it varies by. */
export function matchesVary(
  { varyNames, selecting }: Pick<CachedResponse['answer'], 'varyNames' | 'selecting'>,
  sent: SentField,
): boolean {
  return selecting.includes(selectingKey(varyNames, sent));
}

/** Why the source is asked (RFC 9211 §2.2). */
export function forwardReason(
  { stored, directives }: CacheLookup,
  cached: CachedResponse | undefined,
): ForwardReason {
  if (cached !== undefined)
    return directives.noCache || directives.maxAgeMs < Infinity ? 'request' : 'stale';
  if (stored.length === 0) return 'uri-miss';
  return stored.every(({ answer }) => answer.range !== undefined) ? 'partial' : 'vary-miss';
}

/**
 * What requests have in common that are answered alike, as far as it is known. Those that have come
 * through the same number of rules are: one that a source makes while it answers another comes
 * through one more, and two that wait for each other's answer would wait forever.
 */
export function coalescingKey(
  { plan, url, stored, sent, rulesPassed }: CacheLookup,
  cached: CachedResponse | undefined,
): string {
  const selecting = selectingKey(variedNames(stored), sent);
  return `${url}\n${plan.hash}\n${cached?.answer.id ?? ''}\n${rulesPassed}\n${selecting}`;
}

/** The names of the fields that some answers vary by. */
function variedNames(stored: readonly CachedResponse[]): readonly string[] {
  return stored.length === 0 ? [] : [...new Set(stored.flatMap(({ answer }) => answer.varyNames))];
}
