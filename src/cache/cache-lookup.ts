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
  readonly asked: RequestDirectives;
  readonly sent: SentField;
  /** How many rules the request has come through on its way here. */
  readonly rulesPassed: number;
  /** What is kept for its URL by its rule. */
  readonly known: readonly CachedResponse[];
}

/**
 * What the cache knows of a request. Where another spelling of its fields means the same, the
 * request has that one: the source has to be sent what a stored answer is selected by.
 */
export function lookUp<T extends PageRequest & ForwardedRequest>(
  { answers, via }: { readonly answers: Pick<CacheStore, 'find'>; readonly via: string },
  plan: CachePlan,
  given: T,
): Pick<CacheLookup, 'plan' | 'url' | 'sent' | 'known'> & { readonly request: T } {
  const url = urlOf(given);
  const known = ofPlan(answers.find(url), plan);
  const inFields = (fields: Fields) => {
    const request = fields === given.fields ? given : { ...given, fields };
    const sent: SentField = (name) => forwardedField(plan.fetch, request, via, name);
    return { plan, url, request, sent, known };
  };
  const visit = inFields(withCanonicalLanguages(given.fields));
  const names = variedNames(known).filter((name) => !plan.credentialFields.includes(name));
  if (names.length === 0 || matchingVary(known, visit.sent).length > 0) return visit;
  return inFields(withCanonicalLists(visit.request.fields, names));
}

/** Those of some answers that were asked for by a rule as it is now. */
function ofPlan(
  held: readonly CachedResponse[],
  { fetch, hash }: CachePlan,
): readonly CachedResponse[] {
  if (held.length === 0) return held;
  return held.filter(({ answer }) => answer.rule === fetch.id && answer.plan === hash);
}

/** The kept answer that a request selects (RFC 9111 §4.1) and that has all it asks for. */
export function selectStored({
  known,
  sent,
  request,
}: Pick<CacheLookup, 'known' | 'sent'> & {
  readonly request: Pick<ContentRequest, 'method' | 'fields'>;
}): CachedResponse | undefined {
  if (known.length === 0) return undefined;
  const fitting = matchingVary(known, sent).filter(({ answer }) => covers(answer, request));
  return fitting.find(({ answer }) => answer.range === undefined) ?? fitting[0];
}

/** Those of some answers that a request selects by the fields that they vary by. */
export function matchingVary(
  known: readonly CachedResponse[],
  sent: SentField,
): readonly CachedResponse[] {
  let [names, key]: [string | undefined, string] = [undefined, ''];
  return known.filter(({ answer: { varyNames, selecting } }) => {
    // Most answers of a URL vary by the same fields, whose values may be long.
    const named = varyNames.join();
    if (named !== names) [names, key] = [named, selectingKey(varyNames, sent)];
    return selecting.includes(key);
  });
}

/** A visit that does not know of one of the kept answers. */
export function withoutStored(visit: CacheLookup, held: CachedResponse): CacheLookup {
  return { ...visit, known: visit.known.filter((one) => one !== held) };
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
  { known, asked }: CacheLookup,
  held: CachedResponse | undefined,
): ForwardReason {
  if (held !== undefined) return asked.noCache || asked.maxAgeMs < Infinity ? 'request' : 'stale';
  if (known.length === 0) return 'uri-miss';
  return known.every(({ answer }) => answer.range !== undefined) ? 'partial' : 'vary-miss';
}

/**
 * What requests have in common that are answered alike, as far as it is known. Those that have come
 * through the same number of rules are: one that a source makes while it answers another comes
 * through one more, and two that wait for each other's answer would wait forever.
 */
export function coalescingKey(
  { plan, url, known, sent, rulesPassed }: CacheLookup,
  held: CachedResponse | undefined,
): string {
  const selecting = selectingKey(variedNames(known), sent);
  return `${url}\n${plan.hash}\n${held?.answer.id ?? ''}\n${rulesPassed}\n${selecting}`;
}

/** The names of the fields that some answers vary by. */
function variedNames(known: readonly CachedResponse[]): readonly string[] {
  return known.length === 0 ? [] : [...new Set(known.flatMap(({ answer }) => answer.varyNames))];
}
