import assert from 'node:assert/strict';
import { open } from 'lmdb';
import type { Change } from '../../../src/core/log/change.ts';

type Fields = Record<string, unknown>;

interface Folded {
  fields: Fields;
  seq: number;
  insertedSeq: number;
}

/**
 * Reads a closed data folder without the store's code, and asserts that it equals a naive fold of
 * its log: no gaps, no incomplete transactions, every projection correct. Returns the log. It
 * supports only short keys without lone surrogates, and only page rules.
 */
export async function dumpChecked(folder: string): Promise<readonly Change[]> {
  const environment = open({ path: folder, maxDbs: 16, overlappingSync: false });
  try {
    const database = (name: string, options = {}) =>
      environment.openDB<string, Uint8Array>({
        name,
        encoding: 'string',
        keyEncoding: 'binary',
        ...options,
      });
    const log = environment.openDB<string, number>({
      name: 'log',
      encoding: 'string',
      keyEncoding: 'uint32',
    });
    const rows = [...log.getRange()].map(({ key, value }) => {
      const change = JSON.parse(value) as Change;
      assert.equal(change.seq, key);
      return change;
    });
    assert.deepEqual(
      rows.map(({ seq }) => seq),
      rows.map((_, at) => at + 1),
      'seqs without gaps',
    );

    const folded = foldNaively(rows);
    const texts = (name: string, options = {}) =>
      [...database(name, options).getRange()].map(({ key, value }) => `${textOf(key)} ${value}`);
    assert.deepEqual(
      new Map(
        [...database('rule').getRange()].map(({ key, value }) => [textOf(key), JSON.parse(value)]),
      ),
      new Map(
        [...folded].map(([id, { fields, seq, insertedSeq }]) => [
          id,
          { rule: { id, ...fields }, seq, insertedSeq },
        ]),
      ),
    );
    for (const name of ['exact', 'wildcard']) {
      const found = texts(name, { dupSort: true });
      const expected = candidatesOf(folded, name === 'wildcard');
      const marks = severalKeys(expected).map((key) => `${key} ${name === 'exact' ? '!' : '~'}`);
      assert.deepEqual(found.sort(), [...expected, ...marks].sort());
    }
    const history = [...database('history').getKeys()].map((key) => Buffer.from(key));
    assert.deepEqual(
      history
        .map(
          (key) => `${key.toString('utf8', 0, key.length - 5)} ${key.readUInt32BE(key.length - 4)}`,
        )
        .sort(),
      rows.map(({ id, seq }) => `${id} ${seq}`).sort(),
    );
    return rows;
  } finally {
    await environment.close();
  }
}

/** Folds forward: after each change it folds all rows of the record again, newest first. */
function foldNaively(rows: readonly Change[]): Map<string, Folded> {
  const folded = new Map<string, Folded>();
  for (const id of new Set(rows.map((row) => row.id))) {
    const own = rows.filter((row) => row.id === id);
    const counts = (row: Change): boolean =>
      !own.some(
        (other) =>
          other.action === 'invalidate' &&
          other.seq > row.seq &&
          (other.data.rows as number[]).includes(row.seq) &&
          counts(other),
      );
    const insert = own.find((row) => row.action === 'insert' && counts(row));
    if (insert === undefined) continue;
    const fields: Fields = { ...insert.data };
    for (const row of own.filter(({ action }) => action === 'edit').filter(counts)) {
      for (const [name, value] of Object.entries(row.data)) {
        fields[name] = value;
        if (value === null) Reflect.deleteProperty(fields, name);
      }
    }
    folded.set(id, { fields, seq: own.at(-1)?.seq ?? 0, insertedSeq: insert.seq });
  }
  return folded;
}

function candidatesOf(folded: ReadonlyMap<string, Folded>, wildcards: boolean): string[] {
  return [...folded].flatMap(([id, { fields, seq, insertedSeq }]) => {
    const [origin, path] = [fields.origin as string, fields.path as string];
    const isWildcard = path.startsWith('/') && path.endsWith('*');
    if (isWildcard !== wildcards) return [];
    const designedAt = fields.designed_at as string | undefined;
    const { kind, lang = null, rve = null } = fields;
    const packed = [id, seq, insertedSeq, kind, lang, rve];
    const value = JSON.stringify([
      ...packed,
      designedAt === undefined ? null : Date.parse(designedAt),
    ]);
    const key = Buffer.from(`${origin}\0${isWildcard ? path.slice(0, -1) : path}`);
    return [`${textOf(key)} ${value}`];
  });
}

/** The keys that occur in several of the texts `key [value]`. */
function severalKeys(texts: readonly string[]): readonly string[] {
  const byKey = Map.groupBy(texts, (text) => text.slice(0, text.indexOf(' [')));
  return [...byKey].flatMap(([key, { length }]) => (length > 1 ? [key] : []));
}

function textOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}
