import { createHash } from 'node:crypto';
import { fieldOfVariable, isOfClient } from '../../core/http/field-template.ts';
import type { ContentRequest, Fields, RequestTarget } from '../../core/http/request.ts';
import type { PageRequest } from '../../core/pipeline/source.ts';
import type { ViaNames } from '../../core/outbound/own-names.ts';
import { sentUrlOf, urlOf } from '../../core/values/path.ts';
import { type FetchPlan, type FetchRule, fetchPlan } from '../proxy/fetch-plan.ts';
import { type ForwardedRequest, forwardedField } from '../proxy/request-fields.ts';
import type { CacheStore } from './cache-store.ts';
import { type ForwardReason, covers } from './cached-reply.ts';
import type { CachedResponse } from './cached-response.ts';
import type { RequestDirectives } from './directives.ts';
import { type MadeField, madeFields, overridesOf } from './overriding-fields.ts';
import {
  type SentField,
  selectingKey,
  withCanonicalLanguages,
  withCanonicalLists,
} from './selection.ts';
import { spelledUrl } from './storage/record.ts';

/** A request, and the stored responses that may answer it. */
export interface CacheLookup {
  readonly plan: CachePlan;
  readonly url: string;
  readonly request: ContentRequest;
  readonly directives: RequestDirectives;
  readonly sent: SentField;
  /** The field by which the request is another one than its method and URL name, if it has one. */
  readonly overriddenBy: string | undefined;
  /** The number of rules that the request has passed through, by its Via field. */
  readonly rulesPassed: number;
  /** The stored responses of its URL and rule. */
  readonly stored: readonly CachedResponse[];
}

/**
 * Looks up the stored responses of a request. Normalizes the request's fields: the source must
 * receive the same values that select the stored response.
 */
export function lookUp<T extends PageRequest & ForwardedRequest>(
  { answers, via }: { readonly answers: Pick<CacheStore, 'find'>; readonly via: ViaNames },
  plan: CachePlan,
  given: T,
): Omit<CacheLookup, 'request' | 'directives' | 'rulesPassed'> & { readonly request: T } {
  const url = cacheUrlOf(given);
  const stored = ofPlan(answers.find(url), plan);
  const { bypass: overriddenBy, variant } = overridesOf(given, plan);
  const inFields = (fields: Fields) => {
    const request = fields === given.fields ? given : { ...given, fields };
    const field: SentField = (name) => forwardedField(plan.fetch, request, via, name);
    const sent = variant === '' ? field : Object.assign(field, { variant });
    return { plan, url, request, sent, overriddenBy, stored };
  };
  const lookup = inFields(withCanonicalLanguages(given.fields));
  const names = variedNames(stored).filter((name) => !plan.credentialFields.includes(name));
  if (names.length === 0 || matchingVary(stored, lookup.sent).length > 0) return lookup;
  return inFields(withCanonicalLists(lookup.request.fields, names));
}

/** The primary key of the responses to a request. */
export function cacheUrlOf(target: RequestTarget): string {
  return spelledUrl(urlOf(target), sentUrlOf(target));
}

/** Selects the responses that the current version of a rule stored. */
function ofPlan(
  cached: readonly CachedResponse[],
  { fetch, hash }: CachePlan,
): readonly CachedResponse[] {
  if (cached.length === 0) return cached;
  return cached.filter(({ answer }) => answer.rule === fetch.id && answer.plan === hash);
}

/** Selects the stored response that matches a request (RFC 9111 §4.1) and covers its range. */
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

/** Selects the responses whose Vary fields match a request. */
export function matchingVary(
  stored: readonly CachedResponse[],
  sent: SentField,
): readonly CachedResponse[] {
  let [names, key]: [string | undefined, string] = [undefined, ''];
  return stored.filter(({ answer: { varyNames, selecting } }) => {
    // Most responses of a URL have the same Vary, and the key is expensive for long values.
    const named = varyNames.join();
    if (named !== names) [names, key] = [named, selectingKey(varyNames, sent)];
    return selecting.includes(key);
  });
}

/** Removes a stored response from a lookup. */
export function withoutStored(lookup: CacheLookup, cached: CachedResponse): CacheLookup {
  return { ...lookup, stored: lookup.stored.filter((one) => one !== cached) };
}

/** Whether the Vary fields of a response match a request. */
export function matchesVary(
  { varyNames, selecting }: Pick<CachedResponse['answer'], 'varyNames' | 'selecting'>,
  sent: SentField,
): boolean {
  return selecting.includes(selectingKey(varyNames, sent));
}

/** Why the request is forwarded (RFC 9211 §2.2). */
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
 * The key by which requests are coalesced. It includes the number of rules passed: a request that a
 * source makes while it answers another one has passed one more, and two requests that wait for
 * each other would never end.
 */
export function coalescingKey(
  { plan, url, stored, sent, rulesPassed }: CacheLookup,
  cached: CachedResponse | undefined,
): string {
  const selecting = selectingKey(variedNames(stored), sent);
  return `${url}\n${plan.hash}\n${cached?.answer.id ?? ''}\n${rulesPassed}\n${selecting}`;
}

/** All field names in the Vary of some responses. */
function variedNames(stored: readonly CachedResponse[]): readonly string[] {
  return stored.length === 0 ? [] : [...new Set(stored.flatMap(({ answer }) => answer.varyNames))];
}

/** A content.fetch rule, prepared for the cache. */
export interface CachePlan {
  readonly fetch: FetchPlan;
  /** The rule without `httpresponse`: it keeps the status of the source. */
  readonly plainRule: FetchRule;
  /** A hash of all settings that affect the request to the source or its response. */
  readonly hash: string;
  /** Fields that identify the client to the source, by lower-case name. */
  readonly credentialFields: readonly string[];
  readonly made: readonly MadeField[];
}

/**
 * Returns a function that prepares a rule once. An edited rule is another object. `identityFields`
 * are the fields in which a trusted proxy names the client, by lower-case name. Throws as fetchPlan
 * does.
 */
export function cachePlans(identityFields: readonly string[]): (rule: FetchRule) => CachePlan {
  const known = new WeakMap<FetchRule, CachePlan>();
  return (rule) => {
    let plan = known.get(rule);
    if (plan === undefined) {
      plan = readPlan(rule, identityFields);
      known.set(rule, plan);
    }
    return plan;
  };
}

/** Fields by which clients say who they are, also those that only applications know. */
const clientCredentials: readonly string[] = [
  ...['apikey', 'authorization', 'cookie'],
  ...['x-api-key', 'api-key', 'x-apikey', 'x-api-token', 'x-app-key', 'x-auth-key'],
  ...['x-auth-token', 'x-access-token', 'x-session-token', 'x-session-id', 'x-user-token'],
  ...['x-token', 'x-authorization', 'private-token', 'x-vault-token', 'x-shopify-access-token'],
  ...['x-id-token', 'x-jwt-assertion', 'cf-access-jwt-assertion', 'x-auth-request-access-token'],
];

function readPlan(rule: FetchRule, identityFields: readonly string[]): CachePlan {
  const { path, httpresponse, enginedata } = rule;
  const credentialFields = [...clientCredentials, ...identityFields];
  const decisive = JSON.stringify([
    ...[storedFormat, credentialFields],
    ...[path, httpresponse ?? null, enginedata ?? null],
  ]);
  const fetch = fetchPlan(rule);
  return {
    fetch,
    credentialFields: sentCredentials(fetch, credentialFields),
    made: madeFields(fetch),
    plainRule: withoutStatus(rule),
    hash: createHash('sha256').update(decisive).digest('base64url').slice(0, planCharacters),
  };
}

function withoutStatus({ httpresponse: _status, ...rule }: FetchRule): FetchRule {
  return rule;
}

/**
 * The fields to a source that identify the client: those of the client that the rule does not set
 * itself, and those that it makes of one of them, of the user or of the client's certificate.
 */
function sentCredentials(
  { headers }: FetchPlan,
  credentialFields: readonly string[],
): readonly string[] {
  const identifies = (variable: string): boolean =>
    isOfClient(variable) || credentialFields.includes(fieldOfVariable(variable) ?? '');
  const made = [...headers].filter(([, { variables }]) => variables.some(identifies));
  return [...credentialFields.filter((name) => !headers.has(name)), ...made.map(([name]) => name)];
}

const planCharacters = 22;

/** Counts up when answers that earlier versions stored must not be used any more. */
const storedFormat = 4;
