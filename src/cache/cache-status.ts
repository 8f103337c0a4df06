import type { CacheOutcome, Reply } from '../http/reply.ts';
import { ageMs, type Freshness } from './freshness.ts';

/** What an answer says of the cache, to clients and to the access log. */
export interface CacheStatus {
  /** A member of Cache-Status (RFC 9211 §2). */
  readonly member: string;
  readonly outcome: CacheOutcome;
}

/** An answer that says what the cache did for it. */
export function withCacheStatus(reply: Reply, { member, outcome }: CacheStatus): Reply {
  const fields = [...reply.fields, 'Cache-Status', member];
  return { ...reply, fields, cache: outcome };
}

/** Why a request went on to its source (RFC 9211 §2.2). */
export type ForwardReason =
  | 'bypass'
  | 'method'
  | 'uri-miss'
  | 'vary-miss'
  | 'miss'
  | 'request'
  | 'stale'
  | 'partial';

/** How a request went that its source was asked about. */
interface ForwardedRequest {
  readonly forwarded: ForwardReason;
  readonly outcome?: CacheOutcome;
  /** The status that the source answered with; undefined where it did not answer. */
  readonly status?: number;
  readonly isStored?: boolean;
  /** Whether it waited for the same answer as another request. */
  readonly isCollapsed?: boolean;
  /** Why it was not stored, or what stood in for it: a token. */
  readonly detail?: string | undefined;
}

/** This cache's name in Cache-Status. */
const cacheName = 'waymark';

/**
 * Of an answer that was kept and is sent: for how many more seconds it holds, negative where it is
 * stale.
 */
export function hitStatus(freshness: Freshness, nowMs: number): CacheStatus {
  const ttl = Math.floor((freshness.lifetimeMs - ageMs(freshness, nowMs)) / 1000);
  return { member: `${cacheName}; hit; ttl=${ttl}`, outcome: ttl < 0 ? 'stale' : 'hit' };
}

/** Of an answer that the source was asked about. */
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
