import type { CachePurge } from '../../model/cache-admin.ts';
import { cacheJournalMax } from './limits.ts';
import type { CacheDatabases } from './environment.ts';

/** What a purge looks at of an answer. */
interface Purged {
  readonly url: string;
  readonly rule: string | undefined;
}

/** Whether a purge is about an answer; without a rule, whether it may be. */
export function isSelected(purge: CachePurge, entry: Purged): boolean {
  switch (purge.kind) {
    case 'url':
      return entry.url === purge.url;
    case 'prefix':
      return entry.url.startsWith(purge.prefix);
    case 'rule':
      return entry.rule === undefined || entry.rule === purge.rule;
    case 'all':
      return true;
  }
}

/** The number of purges so far: what was asked for before one is not to be kept after it. */
export function epochOf({ meta }: Pick<CacheDatabases, 'meta'>): number {
  return Number(meta.get('epoch') ?? 0);
}

/** Begins an epoch with a purge; to be called in a write transaction. */
export function beginEpoch({ meta, journal }: CacheDatabases, purge: CachePurge): void {
  const epoch = epochOf({ meta }) + 1;
  meta.putSync('epoch', String(epoch));
  journal.putSync(epoch, JSON.stringify(purge));
  journal.removeSync(epoch - cacheJournalMax);
}

/**
 * Whether a purge since an epoch is about an answer. Of more purges than are remembered, one may
 * have been.
 */
export function isPurgedSince(databases: CacheDatabases, since: number, entry: Purged): boolean {
  return purgesSince(databases, since, entry, 1) > 0;
}

/** How many purges since an epoch are about an answer, or may have been, counted up to so many. */
export function purgesSince(
  databases: CacheDatabases,
  since: number,
  entry: Purged,
  max: number,
): number {
  const epoch = epochOf(databases);
  if (epoch - since > cacheJournalMax) return max;
  let purges = 0;
  for (let at = since + 1; at <= epoch && purges < max; at += 1) {
    const text = databases.journal.get(at);
    if (text === undefined || isSelected(JSON.parse(text) as CachePurge, entry)) purges += 1;
  }
  return purges;
}
