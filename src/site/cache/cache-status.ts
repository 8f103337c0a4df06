import { ageMs, type Freshness } from './freshness.ts';

/** Why a request went on to its source (RFC 9211 §2.2). */
export type Forwarded =
  'bypass' | 'method' | 'uri-miss' | 'vary-miss' | 'miss' | 'request' | 'stale' | 'partial';

/** How a request went that its source was asked about. */
export interface Forwarding {
  readonly forwarded: Forwarded;
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
 * The member of Cache-Status (RFC 9211 §2) of an answer that was kept and is sent: for how many
 * more seconds it holds, negative where it is stale.
 */
export function hitStatus(freshness: Freshness, nowMs: number): string {
  const ttl = Math.floor((freshness.lifetimeMs - ageMs(freshness, nowMs)) / 1000);
  return `${cacheName}; hit; ttl=${ttl}`;
}

/** The member of Cache-Status of an answer that the source was asked about. */
export function forwardedStatus({
  forwarded,
  status,
  isStored = false,
  isCollapsed = false,
  detail,
}: Forwarding): string {
  const parameters = [
    `; fwd=${forwarded}`,
    status === undefined ? '' : `; fwd-status=${status}`,
    isStored ? '; stored' : '',
    isCollapsed ? '; collapsed' : '',
    detail === undefined ? '' : `; detail=${detail}`,
  ];
  return cacheName + parameters.join('');
}
