import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';

/** A row of the model's log, without its transaction and times, which the server chooses. */
export interface Entry {
  readonly seq: number;
  readonly by: string;
  readonly action: 'insert' | 'edit' | 'invalidate';
  readonly id: string;
  readonly data: JsonObject;
}

/** A row of a page rule. Changes of keys have seqs, but no rows here. */
export interface Row extends Entry {
  readonly txn: string;
  readonly dtu_txn: string;
  readonly dtu_stored: string;
}

/** The fold of the rows in force of a record. */
export interface State {
  readonly id: string;
  /** Seq of its newest row, also of an invalidate. */
  readonly seq: number;
  readonly insertedSeq: number;
  readonly fields: ReadonlyMap<string, Json>;
  readonly unknowns: ReadonlyMap<string, Json>;
}

/** The rows that an invalidate names. */
export function namedBy({ data }: Entry): readonly number[] {
  return data.rows as readonly number[];
}

/** The oldest invalidate in force that names a row; undefined for a row in force. */
export function invalidating<T extends Entry>(rows: readonly T[], row: Entry): T | undefined {
  return rows.find(
    (other) =>
      other.action === 'invalidate' &&
      namedBy(other).includes(row.seq) &&
      invalidating(rows, other) === undefined,
  );
}

/** Replays all rows in force of a record; undefined without its insert. */
export function replay(rows: readonly Entry[], id: string): State | undefined {
  const own = rows.filter((row) => row.id === id);
  const inForce = own.filter((row) => invalidating(own, row) === undefined);
  const insert = inForce.find(({ action }) => action === 'insert');
  if (insert === undefined) return undefined;
  const fields = new Map<string, Json>();
  const unknowns = new Map<string, Json>();
  for (const { action, data } of inForce) {
    if (action === 'invalidate') continue;
    const { _unknowns_: others = {}, ...named } = data;
    put(fields, named);
    put(unknowns, others as JsonObject);
  }
  return { id, seq: own.at(-1)?.seq ?? 0, insertedSeq: insert.seq, fields, unknowns };
}

function put(into: Map<string, Json>, changes: JsonObject): void {
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) into.delete(name);
    else into.set(name, value);
  }
}

/** Ids of all records that ever existed, in the order of their inserts. */
export function everyId(rows: readonly Entry[]): readonly string[] {
  return rows.filter(({ action }) => action === 'insert').map(({ id }) => id);
}

/** All records, in the order of their inserts. */
export function replayAll(rows: readonly Entry[]): readonly State[] {
  return everyId(rows).flatMap((id) => replay(rows, id) ?? []);
}
