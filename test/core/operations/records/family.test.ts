import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import {
  type Change,
  type RevertibleFamily,
  mergeFields,
} from '../../../../src/core/log/change.ts';
import { createExecute } from '../../../../src/core/operations/execute.ts';
import { type Call, bindOperations } from '../../../../src/core/operations/operation.ts';
import { unknownField } from '../../../../src/core/operations/problems.ts';
import type {
  RecordFamily,
  RecordParts,
  StoredRecord,
} from '../../../../src/core/operations/records/family.ts';
import { runRevert } from '../../../../src/core/operations/records/invalidate.ts';
import { placeRecord } from '../../../../src/core/operations/records/placement.ts';
import { recordOperations } from '../../../../src/core/operations/records/write.ts';
import { Failure, type Problem } from '../../../../src/core/values/failure.ts';
import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';
import { type Scope, scopes } from '../../../../src/core/values/key.ts';
import { openApi } from '../../../../src/modules/docs/openapi.ts';
import { type MemoryLog, memoryLog } from './memory-log.ts';

/** A record of a family that Waymark does not have. */
interface Lamp {
  readonly id: string;
  readonly name: string;
  readonly watts?: number;
  /** Only callers with the scope admin see former values. */
  readonly price?: string;
  readonly _unknowns_?: JsonObject;
}

function fold(before: StoredRecord<Lamp> | undefined, change: Change): StoredRecord<Lamp> {
  const { id, seq, data } = change;
  const fields = before === undefined ? data : mergeFields({ ...before.record }, data);
  const record = { ...fields, id } as unknown as Lamp;
  return { record, seq, insertedSeq: before?.insertedSeq ?? seq };
}

const isValid: Readonly<Record<string, (value: Json) => boolean>> = {
  name: (value) => typeof value === 'string' && value !== '',
  watts: (value) => Number.isInteger(value),
  price: (value) => typeof value === 'string',
};

let lamps: MemoryLog<StoredRecord<Lamp>>;

/** All that a new family costs. */
const lampFamily: RecordFamily<RecordParts, Lamp> = {
  name: 'lamp' as RevertibleFamily,
  noun: 'lamp',
  command: 'lamp',
  scopes: { read: 'read', write: 'design' },
  schema: {
    title: 'Lamp',
    fields: {
      name: { type: 'string' },
      watts: { type: 'integer' },
      price: { type: 'string' },
    },
    required: ['name'],
    lasting: ['name'],
    always: ['name'],
    server: {},
  },
  find: (_reads, id) => lamps.recordAt(id),
  findAt: (_reads, id, seq) => lamps.recordAt(id, seq),
  after: (_reads, id) => stepsAfter(id),
  afterAt: (_reads, id, seq) => stepsAfter(id, seq),
  fold,
  place: (write) =>
    placeRecord(write, () => ({
      names: new Set(Object.keys(isValid)),
      placeField(name, { old, sent, waiting }) {
        const next = sent === undefined ? waiting : sent;
        if (next === null) return {};
        if (next === undefined) return { field: old };
        return isValid[name]?.(next) === true ? { field: next } : { field: old, unknown: next };
      },
      complete(fields) {
        if (!fields.has('name'))
          throw new Failure('invalid', 'name is missing.', { field: 'name' });
      },
    })),
  problems: ({ _unknowns_: waiting = {} }, names) =>
    names
      .filter((name) => Object.hasOwn(waiting, name))
      .map((name): Problem => {
        const message = `${name} is not valid.`;
        if (isValid[name] !== undefined) return { field: name, reason: 'wrong_type', message };
        return unknownField(name, name, Object.keys(isValid));
      }),
  shown: (_states, reader) => (_id, fields) =>
    reader.scopes.has('admin') || fields.price === undefined ? fields : { ...fields, price: '***' },
  list: {
    filters: { watts: { type: 'integer', nullable: true } },
    matches: (lamp, { watts }) => watts === undefined || lamp.watts === watts,
    columns: { ID: 'id', NAME: 'name' },
  },
};

function* stepsAfter(after: string, seq?: number) {
  for (const id of lamps.ids()) {
    if (id > after) yield { id, stored: lamps.recordAt(id, seq), size: 0 };
  }
}

/** Runs operations on lamps, by default for a caller with all scopes. */
function lampService(): (
  operation: string,
  v: object,
  more?: Partial<Call> & { readonly held?: readonly Scope[] },
  // oxlint-disable-next-line typescript/no-explicit-any -- a test reads any member
) => Promise<any> {
  lamps = memoryLog(fold);
  const { store } = lamps;
  let made = 0;
  const parts: RecordParts = {
    store,
    newId: () => `lamp-${(made += 1)}`,
    now: Date.now,
    revertInThread: (request) => runRevert(store, [lampFamily], request),
  };
  const operations = bindOperations(recordOperations(lampFamily), parts);
  const execute = createExecute(operations, { keyRates: { count: () => undefined } });
  return async (operation, v, { held = scopes, ...more } = {}) => {
    const caller = { scopes: new Set(held), keyId: 'k', rate: undefined, address: '127.0.0.1' };
    const call = { caller, origin: 'http://localhost', fields: {}, ...more };
    const signal = () => new AbortController().signal;
    return execute.run(`svc1.lamp.${operation}`, v, { ...call, signal } as unknown as Call);
  };
}

suite('a record family that is only a description', () => {
  test('has records that are inserted, read, edited and listed', async () => {
    const run = lampService();
    const inserted = await run('insert', { name: 'Heron', watts: 7 });
    const record = { id: 'lamp-1', name: 'Heron', watts: 7, seq: 1 };
    assert.deepEqual(inserted.data, { ...record, unknowns: [], problems: [] });
    assert.equal(inserted.etag, '"1"');
    assert.deepEqual((await run('read', { id: 'lamp-1' })).data, record);

    const edited = await run('edit', { ...inserted.data, watts: 9 });
    assert.deepEqual([edited.data.watts, edited.data.seq], [9, 2]);
    const then = await run('read', { id: 'lamp-1', as_of: '1' });
    assert.deepEqual(then.data, record);
    await run('insert', { name: 'Tern', watts: 7 });
    const ids = async (v: object) =>
      (await run('list', v)).data.rows.map(({ id }: Lamp): string => id);
    assert.deepEqual(await ids({}), ['lamp-1', 'lamp-2']);
    assert.deepEqual(await ids({ watts: 7 }), ['lamp-2']);
    assert.deepEqual(await ids({ watts: 7, as_of: '1' }), ['lamp-1']);
    assert.deepEqual(await ids({ text: 'HERON' }), ['lamp-1']);
    assert.equal((await run('list', { limit: 1 })).data.next, 'lamp-1');
    await assert.rejects(run('read', { id: 'x' }), {
      code: 'not_found',
      message: 'There is no lamp "x".',
    });
  });

  test('keeps what is not valid, names it, and refuses it in strict mode', async () => {
    const run = lampService();
    const { data } = await run('insert', { name: 'Heron', watts: 'many', pric: '9' });
    assert.deepEqual(data._unknowns_, { watts: 'many', pric: '9' });
    assert.deepEqual(data.unknowns, ['watts', 'pric']);
    assert.deepEqual(
      data.problems.map(({ field, reason, suggestion }: Problem) => [field, reason, suggestion]),
      [
        ['watts', 'wrong_type', undefined],
        ['pric', 'unknown_field', 'price'],
      ],
    );
    const corrected = await run('edit', { id: 'lamp-1', watts: 7, pric: null });
    assert.deepEqual([corrected.data.watts, corrected.data._unknowns_], [7, undefined]);
    await assert.rejects(run('edit', { id: 'lamp-1', watts: '7' }, { isStrict: true }), {
      code: 'invalid',
      field: 'watts',
    });
    await assert.rejects(run('insert', { watts: 7 }), { code: 'invalid', field: 'name' });
  });

  test('answers a repeated vk as before, and refuses it for another request', async () => {
    const run = lampService();
    const first = await run('insert', { name: 'Heron' }, { vk: 'a' });
    const again = await run('insert', { name: 'Heron' }, { vk: 'a' });
    assert.deepEqual([again.replayed, again.data], [true, first.data]);
    await assert.rejects(run('insert', { name: 'Tern' }, { vk: 'a' }), { code: 'conflict' });
    const edit = { id: 'lamp-1', watts: 9 };
    await run('edit', edit, { vk: 'b' });
    assert.equal((await run('edit', edit, { vk: 'b' })).replayed, true);
    const derived = await run('insert', { name: 'Tern' });
    assert.equal((await run('insert', { name: 'Tern' })).data.id, derived.data.id);
  });

  test('refuses an edit of a record that has changed', async () => {
    const run = lampService();
    await run('insert', { name: 'Heron' });
    await run('edit', { id: 'lamp-1', watts: 7, if_seq: 1 });
    const late = run('edit', { id: 'lamp-1', watts: 9, if_seq: 1 });
    await assert.rejects(late, { code: 'precondition_failed', field: 'if_seq' });
    const fields = { 'if-match': '"1"' };
    const lateByTag = run('edit', { id: 'lamp-1', watts: 9 }, { fields });
    await assert.rejects(lateByTag, { code: 'precondition_failed', field: 'If-Match' });
  });

  test('has a history, and changes that can be reverted', async () => {
    const run = lampService();
    await run('insert', { name: 'Heron', price: '10' });
    await run('edit', { id: 'lamp-1', price: '12' });
    const dryRun = (await run('invalidate', { id: 'lamp-1', from: '2' })).data;
    assert.deepEqual(dryRun.changes[0].fields, { price: { now: '12', then: '10' } });
    const done = await run('invalidate', { id: 'lamp-1', from: '2', confirm: dryRun.digest });
    assert.equal(done.data.done, true);
    assert.equal((await run('read', { id: 'lamp-1' })).data.price, '10');
    const history = async (held: readonly Scope[]) =>
      (await run('read', { id: 'lamp-1' }, { qk: 'history', held })).data.rows;
    assert.deepEqual(
      (await history(['admin'])).map(({ action, data, data_invalidated: old }: HistoryRow) => [
        action,
        (data ?? old)?.price,
      ]),
      [
        ['invalidate', undefined],
        ['edit', '12'],
        ['insert', '10'],
      ],
    );
    assert.equal((await history(['read']))[2].data.price, '***');
    const gone = (await run('invalidate', { id: 'lamp-1' })).data;
    await run('invalidate', { id: 'lamp-1', confirm: gone.digest });
    await assert.rejects(run('read', { id: 'lamp-1' }), { code: 'not_found' });
  });

  test('needs its scopes, and is in the documents of the API', async () => {
    const run = lampService();
    await assert.rejects(run('insert', { name: 'Heron' }, { held: ['read'] }), {
      code: 'forbidden',
    });
    const operations = recordOperations(lampFamily);
    const parts = { operations, version: '1', base: '', anonymous: [], eventTypes: () => [] };
    const { paths, components } = openApi(parts, 'http://localhost') as unknown as OpenApi;
    assert.deepEqual(
      Object.keys(paths),
      ['insert', 'edit', 'read', 'list', 'invalidate'].map((one) => `/svc1/lamp/${one}`),
    );
    for (const title of ['NewLamp', 'LampEdit', 'Lamp', 'WrittenLamp', 'LampList']) {
      assert.ok(title in components.schemas, title);
    }
  });
});

interface HistoryRow {
  readonly action: string;
  readonly data?: JsonObject;
  readonly data_invalidated?: JsonObject;
}

interface OpenApi {
  readonly paths: object;
  readonly components: { readonly schemas: object };
}
