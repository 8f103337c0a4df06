import type { CacheOutcome, Reply } from '../http/reply.ts';
import { ageMs, type Freshness } from './freshness.ts';

/** How the cache handled a request, for clients and the access log. */
export interface CacheStatus {
  /** A member of Cache-Status (RFC 9211 §2). */
  readonly member: string;
  readonly outcome: CacheOutcome;
}

/** Adds Cache-Status to a response. */
export function withCacheStatus(reply: Reply, { member, outcome }: CacheStatus): Reply {
  const fields = [...reply.fields, 'Cache-Status', member];
  return { ...reply, fields, cache: outcome };
}

/** Why a request was forwarded to its source (RFC 9211 §2.2). */
export type ForwardReason =
  | 'bypass'
  | 'method'
  | 'uri-miss'
  | 'vary-miss'
  | 'miss'
  | 'request'
  | 'stale'
  | 'partial';

/** How a request was forwarded. */
interface ForwardedRequest {
  readonly forwarded: ForwardReason;
  readonly outcome?: CacheOutcome;
  /** The status of the source; undefined if it did not respond. */
  readonly status?: number;
  readonly isStored?: boolean;
  /** Whether it was coalesced with another request. */
  readonly isCollapsed?: boolean;
  /** Why it was not stored, or why a stale response was served: a token. */
  readonly detail?: string | undefined;
}

/** This cache's name in Cache-Status. */
const cacheName = 'waymark';

/** The Cache-Status of a hit, with the remaining lifetime in seconds, negative if stale. */
export function hitStatus(freshness: Freshness, nowMs: number): CacheStatus {
  const ttl = Math.floor((freshness.lifetimeMs - ageMs(freshness, nowMs)) / 1000);
  return { member: `${cacheName}; hit; ttl=${ttl}`, outcome: ttl < 0 ? 'stale' : 'hit' };
}

/** The Cache-Status of a forwarded request. */
export function forwardedStatus({
  forwarded,
  outcome = 'miss',
  status,
  isStored = false,
  isCollapsed = false,
  detail,
}: ForwardedRequest): CacheStatus {
  let member = `${cacheName}; fwd=${forwarded}`;
  if (status !== undefined) member += `; fwd-status=${status}`;
  if (isStored) member += '; stored';
  if (isCollapsed) member += '; collapsed';
  if (detail !== undefined) member += `; detail=${detail}`;
  return { member, outcome };
}
