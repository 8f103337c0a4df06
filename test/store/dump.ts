import assert from 'node:assert/strict';
import { open } from 'lmdb';
import type { Change } from '../../src/model/change.ts';

type Fields = Record<string, unknown>;

interface Folded {
  fields: Fields;
  seq: number;
  insertedSeq: number;
}

/**
 * Reads a closed data folder with nothing of the store's own code, and asserts that it is what a
 * naive fold of its log makes of it: no gap, no half transaction, every projection as it has to be.
 * Returns the log. Knows plain keys only: short, no lone surrogates, `userinterface` alone.
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
      assert.deepEqual(found.sort(), candidatesOf(folded, name === 'wildcard').sort());
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

function foldNaively(rows: readonly Change[]): Map<string, Folded> {
  const folded = new Map<string, Folded>();
  for (const { seq, id, action, data } of rows) {
    const before = folded.get(id);
    if (action === 'invalidate') {
      folded.delete(id);
      continue;
    }
    const fields: Fields = action === 'edit' ? { ...before?.fields } : {};
    for (const [name, value] of Object.entries(data)) {
      fields[name] = value;
      if (action === 'edit' && value === null) Reflect.deleteProperty(fields, name);
    }
    folded.set(id, { fields, seq, insertedSeq: before?.insertedSeq ?? seq });
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

function textOf(key: Uint8Array): string {
  return Buffer.from(key).toString('latin1');
}
