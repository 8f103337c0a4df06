import { viewOfDraft } from './log/draft-reads.ts';
import { LRUCache } from 'lru-cache';
import { changeInDraft, type SiteDraft } from './draft.ts';
import { hasScope, keyEndMs } from '../../core/values/key.ts';
import type { Store } from '../../core/log/store.ts';
import type { DraftedRecordName } from './log/drafts-reads.ts';
import { storedDrafts } from './log/family.ts';

/** Drafts whose authors are in memory. */
const draftsKnownMax = 100;
/** Rows that one request examines for the authors of a draft: some tens of milliseconds. */
const rowsExaminedMax = 2_000;

/** The authors of a draft that were found so far. */
interface KnownAuthors {
  readonly authors: Set<string>;
  /** The record up to which the draft was walked; undefined at its start. */
  last: DraftedRecordName | undefined;
  isWalked: boolean;
  /** Seq of the log up to which later changes were added. */
  seq: number;
}

/**
 * Makes the function that tells whether all changes of a draft are by keys that could make them
 * live alone (`design`), or by commands: then its pages may run scripts in a preview. It says no
 * until it has walked the draft, which takes several requests for a large one.
 */
export function createPreviewTrust(
  store: Pick<Store, 'seq' | 'change' | 'key' | 'view' | 'of'>,
): (draft: SiteDraft, nowMs: number) => boolean {
  const known = new LRUCache<string, KnownAuthors>({ max: draftsKnownMax });

  /** Walks the records of a draft; returns how many more rows may be examined. */
  function walk(draft: SiteDraft, found: KnownAuthors): number {
    let left = rowsExaminedMax;
    if (found.isWalked) return left;
    const inDraft = store.view(viewOfDraft(draft));
    for (const { family, id } of store.of(storedDrafts).draftRecords(draft, found.last)) {
      if (left <= 0) return left;
      const rows = inDraft.rows(family, id);
      for (const row of rows) if (row.draft !== undefined) found.authors.add(row.by);
      left -= rows.length;
      found.last = { family, id };
    }
    found.isWalked = true;
    return left;
  }

  function follow({ id }: SiteDraft, found: KnownAuthors, rows: number): void {
    const newest = Math.min(store.seq(), found.seq + rows);
    while (found.seq < newest) {
      found.seq += 1;
      const change = store.change(found.seq);
      const isOwn = change !== undefined && changeInDraft(change)?.draft === id;
      if (isOwn) found.authors.add(change.by);
    }
  }

  return (draft, nowMs) => {
    const found = known.get(draft.id) ?? {
      ...{ authors: new Set<string>(), last: undefined, isWalked: false, seq: store.seq() },
    };
    known.set(draft.id, found);
    follow(draft, found, walk(draft, found));
    const isWhole = found.isWalked && found.seq >= store.seq();
    return isWhole && [...found.authors].every((by) => isTrusted(store, by, nowMs));
  };
}

/** Whether an author may write pages that run scripts at once: no revoked and no ended key may. */
function isTrusted(store: Pick<Store, 'key'>, by: string, nowMs: number): boolean {
  if (by === 'anonymous' || by.startsWith('user:')) return false;
  const key = store.key(by);
  if (key === undefined) return !isKeyId(by);
  return keyEndMs(key) > nowMs && hasScope({ scopes: new Set(key.scopes) }, 'design');
}

/** Whether a name in the log is the id of a key; otherwise it is that of a command. */
export function isKeyId(by: string): boolean {
  return /^[\da-f]{8}-/.test(by);
}
