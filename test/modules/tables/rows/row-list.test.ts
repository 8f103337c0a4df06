import { withReads } from '../../../../src/core/log/reads.ts';
import { storedTables } from '../../../../src/modules/tables/log/family.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Row } from '../../../../src/modules/tables/row.ts';
import type { Reads } from '../../../../src/core/log/store.ts';
import { compileTable } from '../../../../src/modules/tables/compiled-table.ts';
import { eventLoop, type WorkTurns } from '../../../../src/core/fair/turns.ts';
import type { Caller } from '../../../../src/core/values/key.ts';
import type { RecordStep } from '../../../../src/core/operations/records/family.ts';
import { listPage } from '../../../../src/core/operations/records/list.ts';
import { selectRows } from '../../../../src/modules/tables/rows/row-list.ts';

const definition = { id: 't', name: 'x', index: ['n'], schema: { properties: { n: {} } } };
const table = { ...compileTable(definition), stored: undefined, hidden: new Set() } as never;

/** The id of the row at a place, and the reverse. */
const idOf = (at: number): string => `${String(at).padStart(8, '0')}-0000-7000-8000-000000000000`;
const placeOf = (id: string): number => Number(id.slice(0, 8));

/** Rows that do not exist in a store, of which one in ten belongs to the caller. */
function rowsOf(count: number, size: number): Pick<Reads, 'of'> {
  const rowStep = (id: string) => {
    const row = { id, table: 'x', n: placeOf(id), isOwn: placeOf(id) % 10 === 3 };
    return { id, stored: { row, seq: 1, insertedSeq: 1 }, size };
  };
  const reads = {
    rowStep,
    *rowsAfter(_name: string, after: string) {
      for (let at = after === '' ? 0 : placeOf(after) + 1; at < count; at += 1) {
        yield rowStep(idOf(at));
      }
    },
  };
  return { of: () => reads as never };
}

const isVisible = (row: Row): boolean => row.isOwn === true;
const access = { isVisible, seesAll: false } as const;

test('a count lets other requests run, and ends when its caller has gone', async () => {
  const select = (count: number, size: number) =>
    selectRows(
      { filters: { count: true }, seq: undefined },
      table,
      rowsOf(count, size) as Reads,
      access,
    );
  let taken = 0;
  const counting: WorkTurns = {
    isOver: () => true,
    next: () => Promise.resolve(void (taken += 1)),
  };
  assert.deepEqual(await select(5_000, 100).members?.(counting), { count: 500 });
  assert.equal(taken, 5_000, 'it can wait at each row');
  const gone = select(5_000, 100).members?.(eventLoop.turns('gone', AbortSignal.abort()));
  await assert.rejects(Promise.resolve(gone), { name: 'AbortError' });
  // Long rows count as several, so a minimum is reported sooner.
  const long = await select(5_000, 4_096_000).members?.(eventLoop.turns('long'));
  assert.deepEqual(long, { count: 10, count_is_minimum: true });
});

test('a step of an index has the size of its row', () => {
  const of = withReads(rowsOf(9, 5_000), storedTables, {
    indexBuild: () => undefined,
    rowsByIndex: () => [{ id: idOf(3), cursor: 'AA' }],
  });
  const reads = { of } as Reads;
  const selection = { filters: { sort: 'n' }, seq: undefined };
  const steps = [...selectRows(selection, table, reads, access).stepsAfter('')];
  assert.deepEqual(
    steps.map(({ size }) => size),
    [5_000],
  );
});

test('a page of a caller that sees its own rows never ends at the row of another user', async () => {
  const shown = 299;
  function* stepsAfter(cursor: string): Iterable<RecordStep<Row>> {
    for (let at = cursor === '' ? 0 : Number(cursor) + 1; at < 600; at += 1) {
      const record = { id: String(at), table: 'x' } as unknown as Row;
      const stored = at === shown ? { record, seq: 1, insertedSeq: 1 } : undefined;
      yield { id: String(at), stored, size: 4_096_000, cursor: String(at) };
    }
  }
  const pageOf = async (endsAtShown: boolean, after: string): Promise<unknown> => {
    const family = { list: { select: () => ({ stepsAfter, endsAtShown }) } };
    const call = { turns: eventLoop.turns('page'), origin: '', caller: {} as Caller };
    const { rows, next } = await listPage(family as never, { store: {} } as never, { after }, call);
    return [(rows as object[]).length, next];
  };
  assert.deepEqual(await pageOf(false, ''), [0, '199']);
  assert.deepEqual(await pageOf(true, ''), [1, String(shown)]);
  assert.deepEqual(await pageOf(true, String(shown)), [0, null]);
});
