import { percentilesOf, type Percentiles } from '../rules/matching.ts';
import type { Service } from '../rules/service.ts';
import { pickedRows, products, rowAt } from './rows.ts';

/** Lists that are not counted: V8 compiles as it goes. */
const listsToGetWarm = 300;

/** Milliseconds of a list over a websocket, one after the other, of 50 rows by an index. */
export async function measureLists(
  service: Service,
  { rows, lists, input }: ListOrder,
): Promise<Percentiles> {
  const times: number[] = [];
  for (const at of pickedRows(rows, listsToGetWarm + lists)) {
    const started = performance.now();
    const { data } = await service.call('svc1.record.list', {
      ...{ table: products.name, limit: 50 },
      ...input(at),
    });
    times.push(performance.now() - started);
    if ((data.rows as readonly object[]).length !== 50) throw new Error('a list has other rows');
  }
  return percentilesOf(times.slice(listsToGetWarm));
}

interface ListOrder {
  readonly rows: number;
  readonly lists: number;
  /** The condition of the list for row number `at`. */
  readonly input: (at: number) => object;
}

/** Inserts a second over one websocket with so many in flight, each one durable when counted. */
export async function measureRowInserts(
  service: Service,
  { first, inserts, inFlight }: InsertOrder,
): Promise<number> {
  let next = first;
  const started = performance.now();
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (next < first + inserts) {
        const at = next;
        next += 1;
        await service.call('svc1.record.insert', { table: products.name, ...rowAt(at) });
      }
    }),
  );
  return inserts / ((performance.now() - started) / 1000);
}

interface InsertOrder {
  /** The number of the first row. */
  readonly first: number;
  readonly inserts: number;
  readonly inFlight: number;
}
