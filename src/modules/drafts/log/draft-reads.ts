import type { Database } from 'lmdb';
import type { Change } from '../../../core/log/change.ts';
import { changeInDraft, draftStateKey, draftVk, type SiteDraft } from '../draft.ts';
import type { Databases } from '../../../core/log/databases.ts';
import { seqBytes, storedJson } from '../../../core/log/encoding.ts';
import { createReads, rowSeqs } from '../../../core/log/reads.ts';
import type { LogFamily, Reads, View } from '../../../core/log/store.ts';
import { layeredNames } from './draft-entries.ts';
import { LayeredCounts, LayeredDatabase, type HiddenKeys } from './layered-database.ts';

/** A draft as its entries name it. */
export type DraftPlace = Pick<SiteDraft, 'id' | 'insertedSeq'>;

/**
 * The reads of a draft: the state of today with the changes of the draft on top, by the same code
 * as the live reads. `hidden` are entries of the draft that they ignore.
 */
export function createDraftReads(
  databases: Databases,
  families: readonly LogFamily[],
  draft: DraftPlace,
  hidden: HiddenKeys = new Set(),
): Reads {
  const layered = layeredDatabases(databases, draft, hidden);
  const reads = createReads(layered, families, draftRowsLast);
  return {
    ...reads,
    rowSeqs(id) {
      const live = rowSeqs(databases, id);
      const isLive = new Set(live);
      return [...live, ...reads.rowSeqs(id).filter((seq) => !isLive.has(seq))];
    },
    vkClaim(vk) {
      const own = reads.vkClaim(draftVk(draft.id, vk));
      return own === undefined ? reads.vkClaim(vk) : { ...own, vk };
    },
  };
}

/** The reads of an open draft, for Store.view. A moment of the past has no draft. */
export function viewOfDraft(draft: DraftPlace): View {
  return (databases, families) => createDraftReads(databases, families, draft);
}

/** The changes of a draft apply to the live record of today, whenever that was changed. */
function draftRowsLast(rows: readonly Change[]): readonly Change[] {
  const live = rows.filter(({ draft }) => draft === undefined);
  return [...live, ...rows.filter(({ draft }) => draft !== undefined)];
}

function layeredDatabases(
  databases: Databases,
  { id, insertedSeq: draft }: DraftPlace,
  hidden: HiddenKeys,
): Databases {
  const layers = layeredNames.map((name) => {
    if (name === 'tablecount') return [name, new LayeredCounts(databases, draft)] as const;
    return [name, new LayeredDatabase(databases, { name, draft, hidden })] as const;
  });
  return {
    ...databases,
    ...(Object.fromEntries(layers) as unknown as Databases),
    mark: new LayeredMarks(databases, { draft, hidden }) as unknown as Databases['mark'],
    log: new DraftLog(databases.log, id) as unknown as Databases['log'],
  };
}

/** The log, in which the rows of one draft are changes of its records. */
class DraftLog {
  readonly #log: Databases['log'];
  readonly #draft: string;

  constructor(log: Databases['log'], draft: string) {
    this.#log = log;
    this.#draft = draft;
  }

  get(seq: number): string | undefined {
    const text = this.#log.get(seq);
    if (text?.includes('"family":"draftchange"') !== true) return text;
    const inside = changeInDraft(storedJson(text) as Change);
    if (inside?.draft !== this.#draft) return text;
    return JSON.stringify({ ...inside.change, draft: inside.draft } satisfies Change);
  }

  getBinaryFast(seq: number): Buffer | undefined {
    return this.#log.getBinaryFast(seq);
  }
}

/** The marks of rows that do not count, in a draft. */
class LayeredMarks {
  readonly #live: Database<string, number>;
  readonly #layer: LayeredDatabase;

  constructor(
    databases: Databases,
    { draft, hidden }: { readonly draft: number; readonly hidden: HiddenKeys },
  ) {
    this.#live = databases.mark;
    this.#layer = new LayeredDatabase(databases, { name: 'mark', draft, hidden });
  }

  get(seq: number): string | undefined {
    if (!Number.isInteger(seq)) return undefined;
    const own = this.#layer.ownText(markKey(seq));
    if (own === undefined) return this.#live.get(seq);
    return own.startsWith('+') ? own.slice(1) : undefined;
  }

  doesExist(seq: number): boolean {
    return this.get(seq) !== undefined;
  }
}

/** The key of the mark of a row in a draft. */
export function markKey(seq: number): Buffer {
  const key = Buffer.allocUnsafe(seqBytes);
  key.writeUInt32BE(seq);
  return key;
}

/** Fills `draftstate` from the drafts of a layout without it. */
export function putDraftStates({ draft, draftstate }: Databases): void {
  for (const { value } of draft.getRange()) {
    draftstate.putSync(draftStateKey(storedJson(value) as SiteDraft), '');
  }
}
