import type { OperationDefinition } from '../operation.ts';
import type { RecordFamily, RecordFields, RecordParts } from './family.ts';
import { invalidateOperation } from './invalidate.ts';
import { listOperation } from './list.ts';
import { readOperation } from './read.ts';
import { editOperation, insertOperation } from './write.ts';

/** The operations of a record family (docs/design/records.md): insert, edit, read and others. */
export function recordOperations<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): readonly OperationDefinition<Parts>[] {
  return [
    insertOperation(family),
    editOperation(family),
    readOperation(family),
    listOperation(family),
    invalidateOperation(family),
  ];
}
