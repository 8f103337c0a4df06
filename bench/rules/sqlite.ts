import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { percentilesOf, type Percentiles } from './matching.ts';
import { placeOf, visitOf } from './fill.ts';

// SQLite, on which PocketBase and many others are built, as durable as Waymark: WAL with a sync at
// every commit.

function openSqlite(folder: string): DatabaseSync {
  const database = new DatabaseSync(join(folder, 'peer.sqlite'));
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;');
  database.exec('CREATE TABLE IF NOT EXISTS rule (id INTEGER PRIMARY KEY, origin, path, content)');
  database.exec('CREATE INDEX IF NOT EXISTS place ON rule (origin, path)');
  return database;
}

/** Durable rows a second, `perCommit` in each transaction. */
export function measureSqliteInserts(folder: string, rows: number, perCommit: number): number {
  const database = openSqlite(folder);
  const insert = database.prepare('INSERT INTO rule (origin, path, content) VALUES (?, ?, ?)');
  const started = performance.now();
  for (let first = 0; first < rows; first += perCommit) {
    database.exec('BEGIN');
    for (let at = first; at < Math.min(rows, first + perCommit); at += 1) {
      const { origin, path } = placeOf(at);
      insert.run(origin, path, `<h1>Page ${at}</h1>`);
    }
    database.exec('COMMIT');
  }
  const seconds = (performance.now() - started) / 1000;
  database.close();
  return rows / seconds;
}

/** Measures an indexed look-up of an exact path, the simplest part of a match. */
export function measureSqliteLookups(folder: string, rows: number): Percentiles {
  const database = openSqlite(folder);
  const select = database.prepare('SELECT id, content FROM rule WHERE origin = ? AND path = ?');
  const times: number[] = [];
  let at = 1;
  for (let done = 0; done < 100_000; done += 1) {
    at = (at * 48_271) % 2_147_483_647;
    const { origin, path } = visitOf(at % rows);
    const started = performance.now();
    select.get(origin, path);
    times.push((performance.now() - started) * 1000);
  }
  database.close();
  return percentilesOf(times.slice(10_000));
}

/** Milliseconds of durable edits of a row, one after the other. */
export function measureSqliteEdits(folder: string, edits: number): readonly number[] {
  const database = openSqlite(folder);
  const update = database.prepare('UPDATE rule SET content = ? WHERE id = ?');
  const times: number[] = [];
  for (let edit = 1; edit <= edits; edit += 1) {
    const started = performance.now();
    update.run(String(edit), edit);
    times.push(performance.now() - started);
  }
  database.close();
  return times;
}
