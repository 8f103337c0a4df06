import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { percentilesOf, type Percentiles } from '../rules/matching.ts';
import { pickedRows, rowAt, skuOf } from './rows.ts';

// The peer in its own process, without HTTP: durable as Waymark is, with a sync at every commit.

function openSqlite(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, 'peer.sqlite'));
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  database.exec(
    'CREATE TABLE IF NOT EXISTS products ' +
      '(id INTEGER PRIMARY KEY, sku TEXT UNIQUE, shop, title, price, stock, made)',
  );
  database.exec('CREATE INDEX IF NOT EXISTS shop ON products (shop)');
  database.exec('CREATE INDEX IF NOT EXISTS price ON products (price)');
  return database;
}

/** Rows a second, durable, with so many to a transaction. */
export function measureSqliteInserts(folder: string, rows: number, perCommit: number): number {
  const database = openSqlite(folder);
  const insert = database.prepare(
    'INSERT INTO products (sku, shop, title, price, stock, made) VALUES (?, ?, ?, ?, ?, ?)',
  );
  const started = performance.now();
  for (let first = 0; first < rows; first += perCommit) {
    database.exec('BEGIN');
    for (let at = first; at < Math.min(rows, first + perCommit); at += 1) {
      const { sku, shop, title, price, stock, made } = rowAt(at);
      insert.run(sku, shop, title, price, stock, made);
    }
    database.exec('COMMIT');
  }
  const seconds = (performance.now() - started) / 1000;
  database.close();
  return rows / seconds;
}

/** Microseconds of one row by its key, and milliseconds of 50 rows by an index. */
export function measureSqliteReads(
  folder: string,
  rows: number,
): { readonly byKeyUs: Percentiles; readonly listMs: Percentiles } {
  const database = openSqlite(folder);
  const byKey = database.prepare('SELECT * FROM products WHERE sku = ?');
  const list = database.prepare('SELECT * FROM products WHERE shop = ? ORDER BY id LIMIT 50');
  const [keyTimes, listTimes]: [number[], number[]] = [[], []];
  for (const at of pickedRows(rows, 20_000)) {
    const started = performance.now();
    byKey.get(skuOf(at));
    keyTimes.push((performance.now() - started) * 1000);
  }
  for (const at of pickedRows(rows, 3_000)) {
    const started = performance.now();
    list.all(rowAt(at).shop);
    listTimes.push(performance.now() - started);
  }
  database.close();
  return { byKeyUs: percentilesOf(keyTimes), listMs: percentilesOf(listTimes) };
}
