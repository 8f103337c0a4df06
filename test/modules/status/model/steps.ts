import fc from 'fast-check';
import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';
import { origins, paths } from './reading.ts';
import { fieldNames, kinds, otherNames, valuesOf } from './values.ts';
import { wishes } from './winner.ts';

/** A number that selects an existing item; 0 selects the newest one. */
export type Pick = number;

/** A moment: the time or the seq of a row, or a text that is neither. */
export interface Moment {
  readonly row: Pick;
  readonly as: 'seq' | 'time' | 'seq before' | 'just before' | 'just after' | 'other zone' | 'none';
}

/** The selection of rows. */
export interface Selector {
  readonly by: readonly ('id' | 'txn' | 'by' | 'from' | 'until')[];
  readonly record: Pick;
  readonly txn: Pick;
  readonly writer: number;
  readonly from: Moment;
  readonly until: Moment;
}

/** A write by one call. */
export type Write =
  | { readonly do: 'insert'; readonly v: JsonObject; readonly vk: Vk }
  | {
      readonly do: 'edit';
      readonly record: Pick;
      readonly v: JsonObject;
      readonly ifSeq: 'right' | 'wrong' | 'null' | 'none';
      readonly vk: Vk;
    }
  | {
      readonly do: 'send back';
      readonly row: Pick;
      readonly v: JsonObject;
      readonly whole: boolean;
    }
  | { readonly do: 'again'; readonly asked: Pick };

/** A chosen idempotency key, or that of an earlier answer, or none. */
export type Vk = { readonly text: string } | { readonly earlier: Pick } | 'none';

/** One step of a sequence, without ids, which only a run knows. */
export type Step =
  | (Write & { readonly author: number })
  | { readonly do: 'at once'; readonly writes: readonly Write[]; readonly author: number }
  | {
      readonly do: 'invalidate' | 'undo';
      readonly rows: Selector;
      readonly confirm: 'no' | 'right' | 'stale' | 'wrong';
      readonly vk: Vk;
      readonly author: number;
    }
  | { readonly do: 'add a key' }
  | { readonly do: 'read'; readonly record: Pick; readonly asOf: Moment | null | undefined }
  | {
      readonly do: 'history';
      readonly record: Pick;
      readonly limit: number;
      readonly before: Moment | undefined;
      readonly qk: string;
    }
  | { readonly do: 'list'; readonly filters: JsonObject; readonly asOf: Moment | undefined }
  | {
      readonly do: 'get';
      readonly origin: string;
      readonly path: string;
      readonly languages: string | undefined;
      readonly asOf: Moment | undefined;
    };

/** All values are equally likely, because fast-check prefers the ends of a range. */
const upTo = (max: number): fc.Arbitrary<number> =>
  fc.constantFrom(...Array.from({ length: max + 1 }, (_, at) => at));
const pick = upTo(11);
const author = upTo(2);
const rarely = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });

const moment: fc.Arbitrary<Moment> = fc.record({
  row: pick,
  as: fc.constantFrom(
    ...(['seq', 'time', 'seq before', 'just before', 'just after', 'other zone'] as const),
    ...(['seq', 'time', 'none'] as const),
  ),
});

const vk: fc.Arbitrary<Vk> = fc.oneof(
  { weight: 6, arbitrary: fc.constant('none' as const) },
  { weight: 3, arbitrary: fc.constantFrom('v1', 'v2', 'v3', 'v4', 'v5').map((text) => ({ text })) },
  { weight: 1, arbitrary: pick.map((earlier) => ({ earlier })) },
);

/** Fields that others depend on are more frequent. */
const fieldAndValue: fc.Arbitrary<readonly [string, Json]> = fc
  .constantFrom(...fieldNames, 'kind', 'engine', 'engine', 'enginedata', 'enginedata')
  .chain((name) => fc.tuple(fc.constant(name), fc.constantFrom(...valuesOf(name), null)));
const otherAndValue: fc.Arbitrary<readonly [string, Json]> = fc.tuple(
  fc.constantFrom(...otherNames),
  fc.constantFrom<Json>(1, 'x', null, { a: null }, ['XYZ'], false),
);
const someFields = (maxLength: number): fc.Arbitrary<JsonObject> =>
  fc
    .array(fc.oneof({ weight: 6, arbitrary: fieldAndValue }, otherAndValue), { maxLength })
    .map((entries) => Object.fromEntries(entries));

/** Fields of a caller, some of them in `_unknowns_`. */
const changes = fc
  .tuple(someFields(4), rarely(fc.oneof(someFields(3), fc.constantFrom<Json>('x', null))))
  .map(([named, unknowns]): JsonObject =>
    unknowns === undefined ? named : { ...named, _unknowns_: unknowns },
  );

/** Mostly a usable rule: few are refused, and many have the same place. */
const rule = fc
  .tuple(
    fc.constantFrom(...kinds, 'content' as const, 'content' as const),
    fc.constantFrom('/', '/a', '/a/b', '/a*', '/a/*', '/*', '/p%2520q'),
    fc.constantFrom('*', '*', 'http://shop.example'),
    changes,
  )
  .map(([kind, path, origin, more]): JsonObject => ({
    kind,
    path,
    ...(origin !== '*' && { origin }),
    ...(kind === 'content' && { content: 'one' }),
    ...(kind === 'content.fetch' && { enginedata: { source: 'http://far.example/*' } }),
    ...more,
  }));

const insert: fc.Arbitrary<Write> = fc.record({ do: fc.constant('insert'), v: rule, vk });
const edit: fc.Arbitrary<Write> = fc.record({
  do: fc.constant('edit'),
  record: pick,
  v: changes,
  ifSeq: fc.constantFrom('none', 'none', 'none', 'right', 'wrong', 'null'),
  vk,
});
const sendBack: fc.Arbitrary<Write> = fc.record({
  do: fc.constant('send back'),
  row: pick,
  v: fc.oneof(fc.constant<JsonObject>({}), changes),
  whole: fc.boolean(),
});
const again: fc.Arbitrary<Write> = fc.record({ do: fc.constant('again'), asked: pick });

const by = (write: fc.Arbitrary<Write>): fc.Arbitrary<Step> =>
  fc.tuple(write, author).map(([one, who]) => ({ ...one, author: who }));

const rows: fc.Arbitrary<Selector> = fc.record({
  by: fc.constantFrom<Selector['by'][]>(
    ['id'],
    ['txn'],
    ['by'],
    ['by', 'from'],
    ['by', 'from', 'until'],
    ['from', 'until'],
    ['until'],
    ['from'],
    ['id', 'from'],
    ['id', 'by'],
    [],
  ),
  record: pick,
  txn: pick,
  writer: upTo(3),
  from: moment,
  until: moment,
});

const revert = (what: 'invalidate' | 'undo'): fc.Arbitrary<Step> =>
  fc.record({
    do: fc.constant(what),
    rows,
    confirm: fc.constantFrom('right', 'right', 'right', 'no', 'stale', 'wrong'),
    vk,
    author,
  });

const listFilters = fc.record(
  {
    origin: fc.constantFrom<Json>(...origins.keys(), 'shop.example', null),
    path: fc.constantFrom<Json>(...paths.keys(), '', 'sum', null),
    kind: fc.constantFrom<Json>(...kinds, 'blog', null),
    table: fc.constantFrom<Json>('products', 'u', null),
    engine: fc.constantFrom<Json>('html', 'none', null),
    text: fc.constantFrom<Json>('xyz', 'ONE', 'secret', '', null),
    after: fc.constantFrom<Json>('', null),
    limit: fc.constantFrom<Json>(1, 2, 3, 1000, null),
  },
  { requiredKeys: [] },
);

const atOnce: fc.Arbitrary<Step> = fc.record({
  do: fc.constant('at once'),
  writes: fc.array(fc.oneof(insert, edit, again), { minLength: 2, maxLength: 4 }),
  author,
});

/** A step with its weight. */
function times(count: number, step: fc.Arbitrary<Step>): readonly fc.Arbitrary<Step>[] {
  return Array.from({ length: count }, () => step);
}

/** All steps; frequent ones have a higher weight. */
export const steps: readonly fc.Arbitrary<Step>[] = [
  ...times(7, by(insert)),
  ...times(6, by(edit)),
  ...times(2, by(sendBack)),
  ...times(2, by(again)),
  ...times(2, atOnce),
  ...times(4, revert('invalidate')),
  ...times(4, revert('undo')),
  fc.constant({ do: 'add a key' }),
  fc.record({ do: fc.constant('read'), record: pick, asOf: fc.oneof(moment, fc.constant(null)) }),
  fc.record({
    do: fc.constant('history'),
    record: pick,
    limit: fc.integer({ min: 1, max: 4 }),
    before: rarely(moment),
    qk: fc.constantFrom('history', 'history', 'history', 'past'),
  }),
  fc.record({ do: fc.constant('list'), filters: listFilters, asOf: rarely(moment) }),
  fc.record({
    do: fc.constant('get'),
    origin: fc.constantFrom('http://shop.example', 'HTTP://Shop.Example:80', 'https://b.example'),
    path: fc.constantFrom(...paths.keys()),
    languages: fc.constantFrom(undefined, ...wishes.keys()),
    asOf: rarely(moment),
  }),
];
