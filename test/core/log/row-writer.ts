import { families } from '../../../src/families.ts';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { uuidv7 } from 'uuidv7';
import type { Draft } from '../../../src/core/log/change.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { openStore } from '../../../src/core/log/open.ts';
import { indexBuilder } from '../../../src/modules/tables/log/index-build.ts';
import { storedTables } from '../../../src/modules/tables/log/family.ts';

// A process that changes the rows of a table, and the indexes of the table, until it is killed.
// Argument: the folder. It prints `ready`, then seq and id of every acknowledged change of a row.

const [folder = ''] = process.argv.slice(2);
const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
const never = new AbortController().signal;
const tableId = await store.commit('writer', (reads) => {
  const id = reads.of(storedTables).table('lamps')?.table.id ?? uuidv7();
  const data = { name: 'lamps', schema: {}, key: 'sku', index: ['price'], search: ['title'] };
  const isNew = reads.of(storedTables).table('lamps') === undefined;
  const drafts: Draft[] = isNew ? [{ family: 'table', id, action: 'insert', data }] : [];
  return { drafts, answer: () => id };
});
const ids = [...store.of(storedTables).rowsAfter('lamps', '')].map(({ id }) => id);
process.stdout.write('ready\n');

await Promise.all([...Array.from({ length: 32 }, () => changeRows()), changeIndexes()]);

async function changeRows(): Promise<never> {
  for (;;) {
    try {
      const made = await store.commit('writer', () => ({
        drafts: nextDrafts(),
        answer: (changes) => changes,
      }));
      process.stdout.write(made.map(({ seq, id }) => `${seq} ${id}\n`).join(''));
    } catch (error) {
      // Another row has the key, or another write has invalidated the row.
      if (!(error instanceof Failure) || error.code !== 'conflict') throw error;
    }
  }
}

/** Inserts, an edit, an invalidate, or the invalidate of one. */
function nextDrafts(): readonly Draft[] {
  const kind = Math.random();
  const id = ids[Math.floor(Math.random() * ids.length)];
  if (id === undefined || kind < 0.4) return [insert()];
  if (kind < 0.45) return Array.from({ length: 50 }, insert);
  const isThere = store.of(storedTables).row(id) !== undefined;
  if (isThere && kind < 0.8) return [{ family: 'record', id, action: 'edit', data: fields() }];
  const rows = store.rows('record', id);
  const named = isThere ? rows.map(({ seq }) => seq) : rows.slice(-1).map(({ seq }) => seq);
  return [{ family: 'record', id, action: 'invalidate', data: { rows: named } }];
}

function insert(): Draft {
  const id = uuidv7();
  ids.push(id);
  return { family: 'record', id, action: 'insert', data: { table: 'lamps', ...fields() } };
}

function fields(): JsonObject {
  const number = Math.floor(Math.random() * 100_000);
  return { sku: `SKU ${number}`, price: number % 10, title: `A lamp of kind ${number % 7}` };
}

/** Removes indexes and adds them again, and builds them meanwhile. */
async function changeIndexes(): Promise<never> {
  for (let count = 0; ; count += 1) {
    const data = count % 2 === 0 ? { index: ['title'] } : { index: ['price'], search: ['title'] };
    const without = count % 4 === 2 ? { search: null } : {};
    await store.commit('writer', () => ({
      drafts: [{ family: 'table', id: tableId, action: 'edit', data: { ...data, ...without } }],
      answer: () => undefined,
    }));
    await store.part(indexBuilder).build(never, () => undefined);
    await nextTurn();
  }
}
