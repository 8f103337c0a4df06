import { viewOfDraft } from './log/draft-reads.ts';
import { isRuleInside } from '../../core/values/bounds.ts';
import type { SiteDraft } from './draft.ts';
import type { Caller } from '../../core/values/key.ts';
import type { Rule } from '../rules/rule.ts';
import { noSuchDraft, openDraftNamed } from './log/draft-store.ts';
import type { Reads, Store } from '../../core/log/store.ts';
import { versionsIn } from './operations/publish-plan.ts';
import type { Reader } from '../../core/operations/records/shown.ts';
import { isRuleSeen } from '../rules/bounds/rules.ts';
import { LRUCache } from 'lru-cache';
import type { WorkTurns } from '../../core/fair/turns.ts';
import { storedDrafts } from './log/family.ts';
import { storedRules } from '../rules/log/family.ts';

/** What decides which drafts a caller sees. */
type DraftReader = Pick<Caller, 'bounds' | 'keyId'>;

/** The caller that gets a report about a draft, in data that a thread can get. */
export type ReportReader = DraftReader & Reader;

/** The part of a caller that decides about a report. */
export function reportReader({ bounds, keyId, scopes }: Caller): ReportReader {
  return { ...(bounds && { bounds }), keyId, scopes };
}

/** The store, and the reads of the transaction in which a draft is looked up. */
interface DraftReads {
  readonly store: Pick<Store, 'view'>;
  readonly reads: Reads;
}

/** A draft that a caller sees, by its name or id, whatever its state. Throws `not_found`. */
export function draftSeen({ store, reads }: DraftReads, name: string, by: DraftReader): SiteDraft {
  const draft = reads.of(storedDrafts).draft(name) ?? reads.of(storedDrafts).draftNamed(name);
  if (draft === undefined || !isDraftSeen({ store, reads }, draft, by)) throw noSuchDraft(name);
  return draft;
}

/** As draftSeen, of an open draft. Throws `conflict` for one that has ended. */
export function openDraftSeen(
  { store, reads }: DraftReads,
  name: string,
  by: DraftReader,
): SiteDraft {
  const named = reads.of(storedDrafts).draftNamed(name) ?? reads.of(storedDrafts).draft(name);
  if (named !== undefined && !isDraftSeen({ store, reads }, named, by)) throw noSuchDraft(name);
  return openDraftNamed(reads, name);
}

/** Whether a caller sees a draft; walks its records, or those of its publication. */
export function isDraftSeen(parts: DraftReads, draft: SiteDraft, by: DraftReader): boolean {
  const steps = seenSteps(parts, draft, by);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** As isDraftSeen, in turns of the event loop. */
export async function isSeenInTurns(
  parts: DraftReads,
  draft: SiteDraft,
  by: DraftReader,
  turns: WorkTurns,
): Promise<boolean> {
  const steps = seenSteps(parts, draft, by);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    if (turns.isOver()) await turns.next();
  }
}

/**
 * Whether a caller sees a draft, in one step for each of its records: a bound key sees one that
 * changes page rules inside of its bounds alone, and of those that change nothing, or have ended,
 * its own.
 */
function* seenSteps(
  { store, reads }: DraftReads,
  draft: SiteDraft,
  { bounds, keyId }: DraftReader,
): Generator<undefined, boolean> {
  if (bounds === undefined) return true;
  const isOwn = draft.by === keyId;
  if (draft.state !== 'open') return isOwn && (yield* isPublishedInside(reads, draft, bounds));
  const inDraft = store.view(viewOfDraft(draft));
  let isEmpty = true;
  for (const record of reads.of(storedDrafts).draftRecords(draft)) {
    yield undefined;
    isEmpty = false;
    if (record.family !== 'userinterface') return false;
    const { live, draft: drafted, base } = versionsIn(inDraft, record);
    const versions = [live, drafted, base].filter((one) => one !== undefined);
    const isInside = versions.every((one) => isRuleInside(bounds, one as unknown as Rule));
    if (!isInside || !isRuleSeen(inDraft, record.id, bounds)) return false;
  }
  return isOwn || !isEmpty;
}

/** What of isPublishedInside is known: a publication does not change. */
const publishedInside = new LRUCache<string, boolean>({ max: 10_000 });

/** Whether the transaction that published a draft has changed nothing outside of bounds. */
function* isPublishedInside(
  reads: Reads,
  { txn = '' }: SiteDraft,
  bounds: NonNullable<DraftReader['bounds']>,
): Generator<undefined, boolean> {
  const key = JSON.stringify([txn, bounds]);
  const known = publishedInside.get(key);
  if (known !== undefined) return known;
  const isInside = yield* walkPublished(reads, txn, bounds);
  publishedInside.set(key, isInside);
  return isInside;
}

function* walkPublished(
  reads: Reads,
  txn: string,
  bounds: NonNullable<DraftReader['bounds']>,
): Generator<undefined, boolean> {
  const { first, last } = reads.txnSeqs(txn) ?? noSeqs;
  for (let seq = first; seq <= last; seq += 1) {
    yield undefined;
    const { family, id = '' } = reads.change(seq) ?? {};
    if (family === 'draft' || family === 'event') continue;
    if (family !== 'userinterface') return false;
    const then = reads.of(storedRules).ruleAt(id, seq) ?? reads.of(storedRules).ruleAt(id, seq - 1);
    if (then === undefined || !isRuleInside(bounds, then.rule)) return false;
  }
  return true;
}

const noSeqs = { first: 1, last: 0 };
