import type { Fields } from '../../core/http/request.ts';
import type { Reads } from '../../core/log/store.ts';
import type { Execute } from '../../core/operations/execute.ts';
import type { Call } from '../../core/operations/operation.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { type Caller, hasScope } from '../../core/values/key.ts';
import type { ClientAddress } from '../../core/values/network/peer.ts';
import { KIB } from '../../core/values/units.ts';
import { accessTo } from '../tables/rows/access.ts';
import { rowTable } from '../tables/rows/compiled-tables.ts';
import type { RowReader } from '../rules/site-access.ts';
import { storedTables } from '../tables/log/family.ts';

/**
 * Changes of the log that are read to find the tables with changed rows; after more changes, all
 * tables count as changed.
 */
export const changesReadMax = 1_000;
const changeBytesReadMax = 256 * KIB;

/**
 * Knows when the rows of tables changed last, from the log: each process reads the changes since
 * its last look.
 */
export class TableVersions {
  readonly #reads: Pick<Reads, 'seq' | 'change' | 'rowBytes' | 'of'>;
  readonly #newest = new Map<string, number>();
  /** The seq of the newest change that may concern all tables. */
  #ofAll = 0;
  #seq = -1;

  constructor(reads: Pick<Reads, 'seq' | 'change' | 'rowBytes' | 'of'>) {
    this.#reads = reads;
  }

  /** A text that changes with each change of some tables or of rows in them. */
  version(tables: readonly string[]): string {
    this.#catchUp();
    return tables.map((name) => Math.max(this.#ofAll, this.#newest.get(name) ?? 0)).join(' ');
  }

  #catchUp(): void {
    const newest = this.#reads.seq();
    if (this.#seq < 0 || newest < this.#seq || newest - this.#seq > changesReadMax) {
      this.#ofAll = newest;
      this.#newest.clear();
    } else {
      for (let seq = this.#seq + 1; seq <= newest; seq += 1) this.#read(seq);
    }
    this.#seq = newest;
  }

  #read(seq: number): void {
    if (this.#reads.rowBytes(seq) > changeBytesReadMax) {
      this.#ofAll = seq;
      return;
    }
    const { family, id, data } = this.#reads.change(seq) ?? {};
    if (family === 'table') this.#ofAll = seq;
    if (family !== 'record' || id === undefined) return;
    const table = this.#reads.of(storedTables).row(id)?.row.table ?? data?.table;
    if (typeof table === 'string') this.#newest.set(table, seq);
    else this.#ofAll = seq;
  }
}

let readers = 0;

interface PageRowsParts {
  readonly store: Pick<Reads, 'seq' | 'change' | 'rowBytes' | 'rows' | 'of'>;
  /** Runs record.get. */
  readonly execute: () => Execute;
  /** The caller without a key at an address. */
  readonly anonymous: (address: ClientAddress) => Caller;
}

/**
 * The rows for rendered pages: those that record.get returns to a caller without a key, with or
 * without a signed-in user.
 */
export function createPageRows(parts: PageRowsParts): RowReader {
  const { store, anonymous } = parts;
  const versions = new TableVersions(store);
  readers += 1;
  // Another configuration may give other callers access.
  const own = readers;
  return {
    variesByUser: (tables) =>
      withReferences(store, tables).some(
        (name) => store.of(storedTables).table(name)?.table.read?.includes('user') === true,
      ),
    version: (tables) =>
      tables.length === 0 ? '' : `${own}: ${versions.version(withReferences(store, tables))}`,
    get: (input, request) => {
      const { origin, visitor, address } = request;
      // A link of another site may lead to the page.
      const fields = withoutOrigin(request.fields);
      const caller = anonymous(address);
      return getRows(parts, input, { origin, fields, visitor, caller, transport: 'http' });
    },
  };
}

/** How a call reads the rows of pages. */
type RowCall = Pick<Call, 'origin' | 'fields' | 'visitor' | 'caller' | 'transport'>;

/**
 * The rows for pages in a preview: those that record.get returns to the caller's key. Neither the
 * visitor that the preview describes nor the signed-in user counts. Its `version` throws
 * `forbidden` for a table that the key may not read, or that may not exist.
 */
export function createRowsFor(parts: PageRowsParts): (call: RowCall) => RowReader {
  const { store } = parts;
  const versions = new TableVersions(store);
  return (given) => {
    const call = { ...given, visitor: given.visitor.with({ isSignedOut: true }) };
    const extentOf = (name: string): string => {
      const stored = store.of(storedTables).table(name);
      if (stored !== undefined) return accessTo(stored.table, call.caller, undefined).read;
      return hasScope(call.caller, 'record.read') ? 'scope' : 'none';
    };
    return {
      variesByUser: () => false,
      version(tables) {
        if (tables.length === 0) return '';
        const hidden = tables.find((name) => extentOf(name) === 'none');
        if (hidden !== undefined) throw cannotPreview(hidden, call);
        const all = withReferences(store, tables);
        return `preview ${all.map(extentOf).join()}: ${versions.version(all)}`;
      },
      get: (input) => getRows(parts, input, call),
    };
  };
}

function cannotPreview(table: string, { caller }: RowCall): Failure {
  const scope = `record.read:${table}`;
  const message = `This page shows rows of ${table}: a preview also needs the scope ${scope}.`;
  return new Failure(caller.keyId === undefined ? 'unauthenticated' : 'forbidden', message);
}

/**
 * The rows that rendered pages showed at a moment, for a caller who may read the past of their
 * tables. Its `version` throws `forbidden` for another caller, and `unprocessable` for a table that
 * not every visitor may read.
 */
export function createPastRows(
  parts: PageRowsParts,
  { seq, call }: { readonly seq: number; readonly call: RowCall },
): RowReader {
  const { store, anonymous } = parts;
  const { caller } = call;
  // A page of the past is the same for all callers with these scopes.
  const visitor = call.visitor.with({ isSignedOut: true });
  const readsPast = (name: string): boolean => {
    const stored = store.of(storedTables).table(name);
    return stored === undefined || accessTo(stored.table, caller, undefined).read === 'scope';
  };
  const requirePast = (name: string): void => {
    if (!readsPast(name)) {
      const scope = `record.read:${name}`;
      const message = `This page shows rows of ${name}: as_of also needs the scope ${scope}.`;
      throw new Failure('forbidden', message, { field: 'as_of' });
    }
    const stored = store.of(storedTables).table(name);
    const extent = stored && accessTo(stored.table, anonymous(caller.address), undefined).read;
    if (extent !== 'none' && extent !== 'own') return;
    const message = `This page shows rows of ${name} that only some visitors may read.`;
    throw new Failure('unprocessable', `${message} They are not shown as of the past.`);
  };
  return {
    variesByUser: () => false,
    version(tables) {
      if (tables.length === 0) return '';
      tables.forEach(requirePast);
      // What is hidden, and which titles the caller may see, is decided now.
      const read = withReferences(store, tables).filter(readsPast);
      const reads = store.of(storedTables);
      return `as of ${seq}: ${read.map((name) => `${name} ${reads.table(name)?.seq}`).join()}`;
    },
    get: (input) => getRows(parts, { ...input, as_of: String(seq) }, { ...call, visitor }),
  };
}

/** The tables, and those that their rows refer to. */
function withReferences(
  store: Pick<Reads, 'rows' | 'of'>,
  tables: readonly string[],
): readonly string[] {
  const referred = tables.flatMap((name) => {
    const stored = store.of(storedTables).table(name);
    return stored === undefined
      ? []
      : [...rowTable(store, stored).fields.values()].flatMap(({ refersTo }) => refersTo ?? []);
  });
  return [...new Set([...tables, ...referred])];
}

async function getRows(
  { execute }: PageRowsParts,
  input: JsonObject,
  { caller, origin, fields, visitor, transport }: RowCall,
): Promise<JsonObject> {
  const result = await execute().run('svc1.record.get', input, {
    ...{ caller, origin, fields, visitor, transport },
    vk: undefined,
    qk: undefined,
    signal: () => AbortSignal.timeout(readMs),
  });
  if (result.kind !== 'data' || !isJsonObject(result.data)) {
    throw new Failure('internal', 'record.get has not answered with data.');
  }
  return result.data;
}

const readMs = 10_000;

function withoutOrigin(fields: Fields): Fields {
  const others = Object.entries(fields).filter(
    ([name]) => name !== 'origin' && name !== 'sec-fetch-site',
  );
  return Object.assign(Object.create(null) as Record<string, string>, Object.fromEntries(others));
}
