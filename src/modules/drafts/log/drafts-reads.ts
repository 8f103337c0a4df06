import type { Databases } from '../../../core/log/databases.ts';
import { historyPrefix, keyOf, seqBytes, storedJson } from '../../../core/log/encoding.ts';
import { type DraftedFamily, type SiteDraft, draftStateKey } from '../draft.ts';
import { draftEnd, draftPrefix, layerPrefix } from './draft-entries.ts';

/** The order in which the records of a draft are listed and published: tables before rows. */
const familyOrder: readonly DraftedFamily[] = [
  'userinterface',
  'table',
  'record',
  'webhook',
  'secret',
];

/** The name of a record that a draft changes. */
export interface DraftedRecordName {
  readonly family: DraftedFamily;
  readonly id: string;
}

/** A record that a draft changes. */
export interface DraftedRecord extends DraftedRecordName {
  /** Seq of the draft's first change of it: live changes since then are conflicts. */
  readonly first: number;
  /** Why the draft cannot change the live record of today, as a sentence. */
  readonly problem?: string;
}

/** Reads of drafts and of the records that they change. */
export interface DraftsReads {
  /** A draft, also one that is no longer open. */
  draft(id: string): SiteDraft | undefined;
  /** The latest draft that has a name: the open one, if there is one. */
  draftNamed(name: string): SiteDraft | undefined;
  /** The drafts of a state in the order of their ids, after `after`. */
  draftsIn(state: SiteDraft['state'], after?: string): Iterable<SiteDraft>;
  /** The records that an open draft changes, of one family after the other, by their ids. */
  draftRecords(draft: SiteDraft, after?: DraftedRecordName): Iterable<DraftedRecord>;
  /** How many changes an open draft has of one record. */
  draftChangesOf(draft: SiteDraft, id: string): number;
}

/** The end of the keys of a state: `!` follows the space. */
function stateRange(state: SiteDraft['state']): { readonly start: Buffer; readonly end: Buffer } {
  return { start: keyOf(`${state} `), end: keyOf(`${state}!`) };
}

/** The key of a record that a draft changes, in `draftrecord`. */
export function draftRecordKey(draft: number, family: DraftedFamily, id: string): Buffer {
  const place = Buffer.from([familyOrder.indexOf(family)]);
  return Buffer.concat([draftPrefix(draft), place, keyOf(id)]);
}

/** Creates the reads of drafts and of the records that they change. */
export function createDraftsReads({
  draft,
  draftstate,
  draftname,
  draftrecord,
  draftentry,
}: Databases): DraftsReads {
  const byId = (id: string): SiteDraft | undefined => {
    const text = draft.get(keyOf(id));
    return text === undefined ? undefined : (storedJson(text) as SiteDraft);
  };
  return {
    draft: byId,
    draftNamed(name) {
      const id = draftname.get(keyOf(name));
      return id === undefined ? undefined : byId(id);
    },
    *draftsIn(state, after) {
      const range = stateRange(state);
      const start =
        after === undefined
          ? range
          : { ...range, start: draftStateKey({ state, id: after }), exclusiveStart: true };
      for (const key of draftstate.getKeys(start)) {
        const id = Buffer.from(key).toString('utf8', state.length + 1);
        const found = byId(id);
        if (found !== undefined) yield found;
      }
    },
    *draftRecords({ insertedSeq }, after) {
      const start =
        after === undefined
          ? { start: draftPrefix(insertedSeq) }
          : { start: draftRecordKey(insertedSeq, after.family, after.id), exclusiveStart: true };
      for (const { value } of draftrecord.getRange({ ...start, end: draftEnd(insertedSeq) })) {
        const { family, id, first, problem } = storedJson(value) as DraftedRecord;
        yield { family, id, first, ...(problem !== undefined && { problem }) };
      }
    },
    draftChangesOf({ insertedSeq }, id) {
      const start = Buffer.concat([layerPrefix(insertedSeq, 'history'), historyPrefix(id)]);
      const end = Buffer.concat([start, Buffer.alloc(seqBytes, 0xff)]);
      return draftentry.getKeysCount({ start, end });
    },
  };
}
