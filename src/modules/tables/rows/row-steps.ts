import type { Row, StoredRow } from '../row.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { RecordStep, StoredRecord } from '../../../core/operations/records/family.ts';

/** A stored row as the operations of all families have records. */
export function rowRecord({ row, ...place }: StoredRow): StoredRecord<Row> {
  return { record: row, ...place };
}

/** As rowRecord; undefined for no row. */
export function rowRecordOf(stored: StoredRow | undefined): StoredRecord<Row> | undefined {
  return stored && rowRecord(stored);
}

/** The steps of an iteration over rows. */
export function* rowSteps(walked: ReturnType<Reads['rowsAfter']>): Iterable<RecordStep<Row>> {
  for (const { stored, ...step } of walked) yield { ...step, stored: rowRecordOf(stored) };
}

/** A step with the current row of an id. */
export function storedRow(reads: Pick<Reads, 'rowStep'>, id: string): RecordStep<Row> {
  const { stored, size } = reads.rowStep(id);
  return { id, stored: rowRecordOf(stored), size };
}
