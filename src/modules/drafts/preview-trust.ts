import { LRUCache } from 'lru-cache';
import { changeInDraft, type SiteDraft } from './draft.ts';
import { hasScope } from '../../core/values/key.ts';
import type { Store } from '../../core/log/store.ts';

/** Drafts whose authors are in memory. */
const draftsKnownMax = 100;
/** Records of a draft, and rows of the log since, that are examined for its authors. */
const recordsExaminedMax = 10_000;

/** The authors of the changes of a draft, up to a seq of the log. */
interface KnownAuthors {
  readonly authors: Set<string>;
  seq: number;
}

/**
 * Makes the function that tells whether all changes of a draft are by keys that could make them
 * live alone (`design`), or by commands: then its pages may run scripts in a preview. Of a draft
 * with more changes than are examined, it says no.
 */
export function createPreviewTrust(
  store: Pick<Store, 'seq' | 'change' | 'key' | 'inDraft' | 'draftRecords'>,
): (draft: SiteDraft) => boolean {
  const known = new LRUCache<string, KnownAuthors>({ max: draftsKnownMax });

  function authorsOf(draft: SiteDraft): ReadonlySet<string> | undefined {
    const newest = store.seq();
    const before = known.get(draft.id);
    const found =
      before !== undefined && newest - before.seq <= recordsExaminedMax
        ? withNewer(before, draft, newest)
        : allAuthors(draft, newest);
    if (found !== undefined) known.set(draft.id, found);
    return found?.authors;
  }

  function withNewer(before: KnownAuthors, { id }: SiteDraft, newest: number): KnownAuthors {
    while (before.seq < newest) {
      before.seq += 1;
      const change = store.change(before.seq);
      const isOwn = change !== undefined && changeInDraft(change)?.draft === id;
      if (isOwn) before.authors.add(change.by);
    }
    return before;
  }

  function allAuthors(draft: SiteDraft, seq: number): KnownAuthors | undefined {
    const inDraft = store.inDraft(draft);
    const authors = new Set<string>();
    let examined = 0;
    for (const { family, id } of store.draftRecords(draft)) {
      examined += 1;
      if (examined > recordsExaminedMax) return undefined;
      for (const row of inDraft.rows(family, id)) {
        if (row.draft !== undefined) authors.add(row.by);
      }
    }
    return { authors, seq };
  }

  return (draft) => {
    const authors = authorsOf(draft);
    return authors !== undefined && [...authors].every((by) => isTrusted(store, by));
  };
}

/** Whether an author may write pages that run scripts at once; a revoked key may nothing. */
function isTrusted(store: Pick<Store, 'key'>, by: string): boolean {
  if (by === 'anonymous' || by.startsWith('user:')) return false;
  const key = store.key(by);
  return key === undefined ? !isId(by) : hasScope({ scopes: new Set(key.scopes) }, 'design');
}

/** Whether a name in the log is the id of a key; otherwise it is that of a command. */
function isId(by: string): boolean {
  return /^[\da-f]{8}-/.test(by);
}
