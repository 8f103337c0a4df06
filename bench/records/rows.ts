import { families } from '../../src/families.ts';
import { mkdir } from 'node:fs/promises';
import { uuidv7 } from 'uuidv7';
import type { LoggedDraft } from '../../src/core/log/store.ts';
import { openStore } from '../../src/core/log/open.ts';

/** Rows of one transaction while a folder is filled. */
const rowsPerCommit = 20_000;
/** Rows of a shop are so many times as few as all rows. */
export const shops = 1_000;

/** The table of the benchmark, as table.insert takes it. */
export const products = {
  name: 'products',
  schema: {
    type: 'object',
    required: ['sku'],
    properties: {
      sku: { type: 'string' },
      shop: { type: 'string' },
      title: { type: 'string' },
      price: { type: 'number' },
      stock: { type: 'integer' },
      made: { type: 'string', format: 'date' },
    },
  },
  key: 'sku',
  index: ['shop', 'price'],
  read: ['anonymous'],
} as const;

/** The key of row number `at`. */
export function skuOf(at: number): string {
  return `P-${String(at).padStart(9, '0')}`;
}

/** The fields of row number `at`, the same in every folder. */
export function rowAt(at: number) {
  return {
    sku: skuOf(at),
    shop: `shop-${at % shops}`,
    title: `Lamp ${at} of brass with a shade of linen`,
    price: ((at * 7_919) % 100_000) / 100,
    stock: at % 50,
    made: `20${String(10 + (at % 16))}-0${1 + (at % 9)}-1${at % 10}`,
  };
}

/** Row numbers below a count that look random, the same in every run. */
export function* pickedRows(count: number, picks: number): Iterable<number> {
  let at = 1;
  for (let done = 0; done < picks; done += 1) {
    at = (at * 48_271) % 2_147_483_647;
    yield at % count;
  }
}

/** The result of the process that fills a folder. */
export interface FillTimes {
  readonly seconds: number;
}

/** Fills a folder with a table of so many rows. */
export async function fillFolder(folder: string, rows: number): Promise<void> {
  await mkdir(folder, { recursive: true });
  const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
  const write = (drafts: readonly LoggedDraft[]) =>
    store.commit('bench', () => ({ drafts, answer: () => undefined }));
  await write([{ family: 'table', id: uuidv7(), action: 'insert', data: { ...products } }]);
  for (let first = 0; first < rows; first += rowsPerCommit) {
    const count = Math.min(rowsPerCommit, rows - first);
    await write(Array.from({ length: count }, (_, at) => draftOf(first + at)));
  }
  await store.close();
}

function draftOf(at: number): LoggedDraft {
  const data = { table: products.name, ...rowAt(at) };
  return { family: 'record', id: uuidv7(), action: 'insert', data };
}
