import type { ContentRequest, Fields } from '../../http/request.ts';
import { Failure } from '../../model/failure.ts';
import { isJsonObject } from '../../model/json.ts';
import type { Caller } from '../../model/key.ts';
import type { RowReader } from '../../rendering/rendered-pages.ts';
import { TableVersions } from '../../rendering/table-versions.ts';
import type { Reads } from '../../store/store.ts';
import type { Execute } from '../execute.ts';
import { rowTable } from './compiled-tables.ts';

let readers = 0;

/**
 * The rows for rendered pages: those that record.get returns to a caller without a key, with or
 * without a signed-in user. `execute` runs that operation.
 */
export function createPageRows({
  store,
  execute,
  anonymous,
}: {
  readonly store: Pick<Reads, 'seq' | 'change' | 'rowBytes' | 'row' | 'rows' | 'table'>;
  readonly execute: () => Execute;
  /** The caller without a key at an address. */
  readonly anonymous: (address: string) => Caller;
}): RowReader {
  const versions = new TableVersions(store);
  readers += 1;
  // Another configuration may give other callers access.
  const own = readers;

  /** The tables, and those that their rows refer to. */
  function withReferences(tables: readonly string[]): readonly string[] {
    const referred = tables.flatMap((name) => {
      const stored = store.table(name);
      return stored === undefined
        ? []
        : [...rowTable(store, stored).fields.values()].flatMap(({ refersTo }) => refersTo ?? []);
    });
    return [...new Set([...tables, ...referred])];
  }

  return {
    variesByUser: (tables) =>
      withReferences(tables).some(
        (name) => store.table(name)?.table.read?.includes('user') === true,
      ),
    version: (tables) =>
      tables.length === 0 ? '' : `${own}: ${versions.version(withReferences(tables))}`,
    async get(input, { address, origin, fields, visitor }: ContentRequest) {
      const result = await execute().run('svc1.record.get', input, {
        caller: anonymous(address),
        vk: undefined,
        qk: undefined,
        ...{ origin, visitor, transport: 'http' },
        // The answer goes into a page: a link of another site may lead to it.
        fields: withoutOrigin(fields),
        signal: () => AbortSignal.timeout(readMs),
      });
      if (result.kind !== 'data' || !isJsonObject(result.data)) {
        throw new Failure('internal', 'record.get has not answered with data.');
      }
      return result.data;
    },
  };
}

const readMs = 10_000;

function withoutOrigin(fields: Fields): Fields {
  const others = Object.entries(fields).filter(
    ([name]) => name !== 'origin' && name !== 'sec-fetch-site',
  );
  return Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(others));
}
