import { needsUser } from '../../../core/http/visitor.ts';
import type { Reads } from '../../../core/log/store.ts';
import type { Call } from '../../../core/operations/operation.ts';
import { requireKnownFields } from '../../../core/operations/problems.ts';
import type {
  FamilyCall,
  RecordFamily,
  RecordParts,
  StoredRecord,
} from '../../../core/operations/records/family.ts';
import { repeatWindowMs } from '../../../core/operations/records/idempotency.ts';
import { seqOfMoment } from '../../../core/operations/records/moment.ts';
import type { RecordRevert } from '../../../core/operations/records/revert.ts';
import type { Reader, ShowFields } from '../../../core/operations/records/shown.ts';
import { Failure } from '../../../core/values/failure.ts';
import {
  type Json,
  type JsonObject,
  isJsonObject,
  sameJson,
} from '../../../core/values/json/json.ts';
import { hasScope } from '../../../core/values/key.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import { addressNetwork } from '../../../core/values/network/cidr.ts';
import { type Row, fieldOf, sameScalar, scalarOf, foldRow } from '../row.ts';
import type { StoredTable, TableDefinition } from '../table.ts';
import {
  type TableAccess,
  accessTo,
  actionOf,
  isSameOrigin,
  mayAccess,
  noAccess,
  requireSameOrigin,
  scopesFor,
} from './access.ts';
import type { AnonymousWrites } from './anonymous-writes.ts';
import { type RowTable, rowTable, withoutHidden } from './compiled-tables.ts';
import { rowRecord, rowRecordOf, rowSteps } from './index-walk.ts';
import { shownValueCharactersMax } from './limits.ts';
import { countMembers, rowFilters, selectRows } from './row-list.ts';
import {
  invalidFields,
  placeRowFields,
  referredRow,
  rowFieldsFromText,
  rowProblems,
  valueFromText,
} from './row-placement.ts';
import { rowPart, rowSchema } from './row-schema.ts';
import { storedTables } from '../log/family.ts';

/** The parts that the operations on rows need. */
export interface RowParts extends RecordParts {
  readonly anonymousWrites: AnonymousWrites;
  /** The origins of this site, besides that of a request. */
  readonly isOwnOrigin: (origin: string) => boolean;
}

/** Rows of tables (docs/design/records.md#tables-and-their-rows). */
export const rowFamily: RecordFamily<RowParts, Row> = {
  name: 'record',
  noun: 'row',
  command: 'record',
  scopes: { read: 'record.read', write: 'record.write' },
  tableDecides: true,
  schema: rowSchema,
  part: rowPart,
  summaries: {
    list: 'Lists the rows of a table, filtered and sorted by indexed fields, or found by a text.',
  },

  prepare: ({ visitor }) => visitor.prepare(needsUser),
  forCall(given, reads, parts, earlier) {
    const { table: name } = given.v;
    // A counter decides with other look-ups (outbox-entries.ts).
    const isSame = reads.of(storedTables).rowIdByKey === parts.store.of(storedTables).rowIdByKey;
    const now = isSame && typeof name === 'string' ? reads.of(storedTables).table(name) : undefined;
    if (earlier !== undefined && now !== undefined && now === earlier.definition) return earlier;
    return rowsFor(given, reads, parts);
  },
  hadRecord: () => true,

  find: (reads, id) => rowRecordOf(reads.of(storedTables).row(id)),
  findAt: (reads, id, seq) => rowRecordOf(reads.of(storedTables).rowAt(id, seq)),
  after: () => [],
  afterAt: () => [],
  fold: (before, change) => rowRecord(foldRow(before && { ...before, row: before.record }, change)),
  place: () => {
    throw new TypeError('a row is placed by its table');
  },
  placeAgain(reads, record) {
    const stored =
      typeof record.table === 'string' ? reads.of(storedTables).table(record.table) : undefined;
    if (stored === undefined) return {};
    const write = { current: record as unknown as Row, sent: {} };
    return placeRowFields(write, rowTable(reads, stored));
  },
  problems: () => [],
  isWithin: (reads, id, { table }) => tableOfRow(reads, id) === table,
  requireRevertible: requireFreeKeys,
  requireWriter(reads, records, writer) {
    const rows = records.map(({ id }) => ({ id, action: 'edit' }) as const);
    const says = 'The transaction has changed rows of a table: to take it back';
    requireWritableRows(reads, rows, { writer, says, field: 'txn' });
  },
  shown: shownRows,

  list: {
    filters: rowFilters,
    members: countMembers,
    textMeans: 'Words in the fields that the table searches, the most relevant rows first.',
    matches: () => false,
    columns: { ID: 'id', SEQ: ({ seq }) => JSON.stringify(seq), FIELDS: fieldsCell },
  },
};

/**
 * What a reader sees of versions of rows: by a scope for the rows of the table, all but what is
 * write-only; where anonymous callers may read, a version that is the current one.
 */
function shownRows(states: readonly Reads[], reader: Reader): ShowFields {
  const [reads] = states;
  // A history asks for many versions of one row.
  let last: { readonly id: string; readonly stored: StoredTable | undefined } | undefined;
  return (id, fields) => {
    if (last?.id !== id) last = { id, stored: reads && tableHaving(reads, id) };
    const { stored } = last;
    if (reads === undefined || stored === undefined) return {};
    const { read } = accessTo(stored.table, reader, undefined);
    const isCurrent = (): boolean =>
      states.some((state) =>
        sameJson({ ...fields, id }, (state.of(storedTables).row(id)?.row ?? null) as Json),
      );
    if (read !== 'scope' && (read !== 'anonymous' || !isCurrent())) return {};
    return withoutHidden(rowTable(reads, stored).hidden, fields);
  };
}

/** A row that a caller would insert or edit beside records of other families. */
interface WrittenRow {
  readonly id: string;
  readonly action: 'insert' | 'edit';
}

/**
 * Throws `forbidden` for rows that a caller may not write, as record.insert and record.edit would.
 * `says` begins the message, up to what needs the scope; `field` is that of the input.
 */
export function requireWritableRows(
  reads: Reads,
  rows: Iterable<WrittenRow>,
  given: { readonly writer: Reader; readonly says: string; readonly field: string },
): void {
  const { writer, says, field } = given;
  if (hasScope(writer, 'admin')) return;
  for (const { id, action } of rows) {
    const table = tableHaving(reads, id)?.table;
    if (table !== undefined && accessTo(table, writer, undefined)[action] === 'scope') continue;
    const [scope = 'admin'] = table === undefined ? [] : scopesFor(table, action);
    throw new Failure('forbidden', `${says} needs the scope ${scope}.`, { field });
  }
}

/** The table that a row is, or was, in. */
export function tableHaving(reads: Reads, rowId: string): StoredTable | undefined {
  const name = tableOfRow(reads, rowId);
  return name === undefined ? undefined : reads.of(storedTables).table(name);
}

/** The fields of a row in one cell. */
function fieldsCell({ id: _id, seq: _seq, table: _table, ...fields }: JsonObject): string {
  return JSON.stringify(fields);
}

/** A call on a table to which its caller has access. */
export interface TableCall {
  readonly table: RowTable;
  readonly access: TableAccess;
  readonly call: Call;
  readonly operation: FamilyCall['operation'];
}

/**
 * Finds the table that a call names, and the access of its caller. Throws `unauthenticated` or
 * `forbidden` without access, and `not_found` for an unknown table.
 */
export function openTable(
  given: FamilyCall,
  reads: Reads,
  { isOwnOrigin }: Pick<RowParts, 'isOwnOrigin'>,
): TableCall {
  const { operation, v, call } = given;
  const { table: name } = v;
  if (typeof name !== 'string' || name === '') {
    throw new Failure('invalid', 'table is missing: the name of the table.', { field: 'table' });
  }
  const stored = reads.of(storedTables).table(name);
  if (stored === undefined) throw unknownTable(name, operation, call, reads);
  const user = call.visitor.signedInUser()?.name;
  const access = accessTo(stored.table, call.caller, user);
  const extents =
    operation === 'schema'
      ? [access.read, access.insert, access.edit]
      : [access[actionOf(operation)]];
  if (extents.every((extent) => extent === 'none')) throw noAccess(operation, name, call.caller);
  const isByUser = extents.every((extent) => extent === 'own' || extent === 'none');
  const isWrite = ['insert', 'edit', 'invalidate'].includes(operation);
  if (isByUser && (isWrite || call.transport === 'websocket' || call.fields.origin !== undefined)) {
    requireSameOrigin(call, isOwnOrigin);
  }
  requireKnownMembers(given, stored.table);
  const table = rowTable(reads, stored);
  // If anonymous callers may write, a page of another site writes without a user, not as the user
  // of the cookie.
  if (!isWrite || user === undefined || isSameOrigin(call, isOwnOrigin)) {
    return { table, access, call, operation };
  }
  return { table, access: accessTo(stored.table, call.caller, undefined), call, operation };
}

/** Throws `invalid` for a member that the operation would ignore; the key names a row. */
function requireKnownMembers(
  { operation, v, input }: FamilyCall,
  { key }: Pick<TableDefinition, 'key'>,
): void {
  if (!isJsonObject(input?.properties)) return;
  const known = [...Object.keys(input.properties), ...(key === undefined ? [] : [key])];
  requireKnownFields(v, `svc1.record.${operation}`, known);
}

function unknownTable(
  name: string,
  operation: FamilyCall['operation'],
  { caller }: Call,
  reads: Reads,
): Failure {
  const scope = actionOf(operation) === 'read' ? 'record.read' : 'record.write';
  if (!hasScope(caller, scope)) return noAccess(operation, name, caller);
  const names = [...reads.of(storedTables).tablesAfter('')].map(({ table }) => table.name);
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`;
  return new Failure(
    'not_found',
    `There is no table ${JSON.stringify(name.slice(0, shownValueCharactersMax))}.${hint}`,
    { field: 'table' },
  );
}

/** The rows of a table as a call sees them. */
function rowsFor(given: FamilyCall, reads: Reads, parts: RowParts): RecordFamily<RowParts, Row> {
  const open = openTable(given, reads, parts);
  const { table, access } = open;
  const { definition } = table;
  requireOwnRows(definition);
  const action = actionOf(given.operation);
  const isVisible = (row: Row): boolean => isSeen(open, row, action);
  const visible = (stored: StoredRecord<Row> | undefined): StoredRecord<Row> | undefined =>
    stored !== undefined && isVisible(stored.record) ? stored : undefined;
  requirePastAccess(given, access);
  return {
    ...rowFamily,
    definition: table.stored,
    find: (now, id) => visible(rowRecordOf(now.of(storedTables).row(id))),
    findAt: (now, id, seq) => visible(rowRecordOf(now.of(storedTables).rowAt(id, seq))),
    after: (now, id) => rowSteps(now.of(storedTables).rowsAfter(definition.name, id)),
    afterAt: (now, id, seq) => rowSteps(now.of(storedTables).rowsAt(definition.name, id, seq)),
    idOf: (v, now) => idByKey(v, now, table),
    hadRecord: (now, id) => hadRow(now, id, open),
    ...authorOf(open),
    within: { table: definition.name },

    beforeWrite: (sent) => countAnonymousWrite(open, sent, parts),
    place(write) {
      const { honeypot } = definition;
      const sent = honeypot === undefined ? write.sent : without(write.sent, honeypot);
      const data = placeRowFields({ ...write, sent: withOwner(open, sent, write.current) }, table);
      requireFreeKey(open, reads, { data, current: write.current });
      return data;
    },
    fromText: (sent) => rowFieldsFromText(sent, table),
    problems: (row, names) =>
      rowProblems(row, names, table, ({ refersTo = '' }, value) =>
        visibleReference(open, reads, refersTo, value),
      ),
    view: (row, written) => rowView(open, row, written),
    requireRevertAccess(now, v) {
      requireRevertAccess(open, now, v);
    },
    list: {
      ...rowFamily.list,
      select: (selection, now) =>
        selectRows(selection, table, now, { isVisible, seesAll: access.read !== 'own' }),
    },
  };
}

/** Throws `conflict` for a table that has its rows on another server: see hosted-rows.ts. */
export function requireOwnRows({ name, host }: TableDefinition): void {
  if (host === undefined) return;
  throw new Failure('conflict', `The rows of ${name} are on its data host: call that server.`, {
    field: 'table',
  });
}

/**
 * Whether a caller sees a row in an operation. An edit sees the rows that it may change, and those
 * that the caller may read: it then says that they may not be changed.
 */
function isSeen(
  { table, access }: TableCall,
  row: Row,
  action: 'read' | 'insert' | 'edit',
): boolean {
  const { definition } = table;
  if (row.table !== definition.name) return false;
  if (action === 'insert') return mayAccess(access, 'insert', definition, row);
  if (mayAccess(access, action, definition, row)) return true;
  if (action === 'read' || !mayAccess(access, 'read', definition, row)) return false;
  throw new Failure('forbidden', 'This row belongs to another user.');
}

/** The past shows rows as they were for others, so it needs a scope. */
function requirePastAccess({ operation, v, call }: FamilyCall, { read }: TableAccess): void {
  const isPast = (v.as_of ?? undefined) !== undefined || call.qk === 'history';
  if (!isPast || read === 'scope' || actionOf(operation) !== 'read') return;
  const field = call.qk === 'history' ? 'qk' : 'as_of';
  const message = 'The history of rows needs an API key with the scope record.read.';
  throw new Failure('forbidden', message, { field });
}

function authorOf({
  access,
  call,
  operation,
}: TableCall): Pick<RecordFamily<RowParts, Row>, 'author' | 'identity' | 'repeatsForMs'> {
  const extent = access[actionOf(operation)];
  if (extent === 'scope') return {};
  if (access.user !== undefined) {
    const author = `user:${access.user}`;
    return { author, identity: { author }, repeatsForMs: repeatWindowMs };
  }
  const identity = { address: addressNetwork(call.caller.address) };
  return { identity, repeatsForMs: repeatWindowMs };
}

/** Counts an anonymous write, and recognises one of a program by the field that people leave. */
export function countAnonymousWrite(
  { table, access, call, operation }: TableCall,
  sent: JsonObject,
  { anonymousWrites }: RowParts,
): { readonly isDiscarded: boolean } {
  const extent = access[actionOf(operation)];
  if (extent === 'scope') return { isDiscarded: false };
  if (access.user === undefined) anonymousWrites.count(call.caller.address);
  const { honeypot } = table.definition;
  const trap = honeypot === undefined ? undefined : fieldOf(sent, honeypot);
  const isDiscarded =
    operation === 'insert' && ![undefined, null, '', false].includes(trap as never);
  if (isDiscarded) anonymousWrites.discard();
  return { isDiscarded };
}

function without(fields: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([one]) => one !== name));
}

/**
 * The sent fields with the owner of the row: a caller without a scope can write only its own rows,
 * or rows without an owner. Throws `forbidden` for another owner.
 */
function withOwner(
  { table, access, operation }: TableCall,
  sent: JsonObject,
  current: Row | undefined,
): JsonObject {
  const { owner } = table.definition;
  if (owner === undefined || access[actionOf(operation)] === 'scope') return sent;
  const rightful = current === undefined ? access.user : fieldOf(current, owner);
  const waiting = sent._unknowns_;
  const nested = typeof waiting === 'object' && waiting !== null && Object.hasOwn(waiting, owner);
  const given = fieldOf(sent, owner);
  const isOther = given !== undefined && given !== null && given !== rightful;
  if (isOther || nested || (current !== undefined && given === null)) {
    throw new Failure('forbidden', `The server sets ${owner}: leave it out.`, { field: owner });
  }
  const others = without(sent, owner);
  return current !== undefined || rightful === undefined
    ? others
    : { ...others, [owner]: rightful };
}

/** Throws `conflict` for a key that another row has; with its id if the caller may see that row. */
function requireFreeKey(
  open: TableCall,
  reads: Reads,
  { data, current }: { readonly data: JsonObject; readonly current: Row | undefined },
): void {
  const { table, access } = open;
  const { name, key } = table.definition;
  if (key === undefined) return;
  const value = scalarOf(data[key]);
  if (value === null) return;
  const id = reads.of(storedTables).rowIdByKey(name, value);
  if (id === undefined || id === current?.id) return;
  const existing = reads.of(storedTables).row(id)?.row;
  const isShown = existing !== undefined && mayAccess(access, 'read', table.definition, existing);
  const which = isShown ? `: ${id}` : '';
  const shown = JSON.stringify(value).slice(0, shownValueCharactersMax);
  throw new Failure('conflict', `${name} has a row with the ${key} ${shown} already${which}.`, {
    field: key,
  });
}

/** Throws `conflict` for a revert that would give a row a key that another row has by then. */
function requireFreeKeys(reads: Reads, records: readonly RecordRevert[]): void {
  const reverted = new Map(records.map(({ id, then }) => [id, then]));
  for (const { id, then } of records) {
    const name = then?.table;
    if (typeof name !== 'string') continue;
    const key = reads.of(storedTables).table(name)?.table.key;
    const value = key === undefined ? null : scalarOf(then?.[key]);
    if (key === undefined || value === null) continue;
    const holder = reads.of(storedTables).rowIdByKey(name, value);
    if (holder === undefined || holder === id) continue;
    const isFreed =
      reverted.has(holder) && !sameScalar(scalarOf(reverted.get(holder)?.[key]), value);
    if (isFreed) continue;
    // Without the value and the id of the other row: the caller may not read the rows.
    throw new Failure(
      'conflict',
      `The row ${id} of ${name} would have its former ${key} again, which another row has now. ` +
        'Change that row first, or leave this one out.',
      { field: key },
    );
  }
}

function idByKey(v: JsonObject, reads: Reads, table: RowTable): string | undefined {
  const { name, key } = table.definition;
  const field = key === undefined ? undefined : table.fields.get(key);
  const value = key === undefined ? undefined : fieldOf(v, key);
  if (field === undefined || value === undefined || value === null) {
    const or = key === undefined ? '' : ` or ${key}`;
    throw new Failure('invalid', `Name the row of ${name}: id${or} is missing.`, { field: 'id' });
  }
  const scalar = scalarOf(valueFromText(value, field));
  if (typeof v.as_of !== 'string') return reads.of(storedTables).rowIdByKey(name, scalar);
  return reads.of(storedTables).rowByKeyAt(name, scalar, seqOfMoment(reads, 'as_of', v.as_of))?.row
    .id;
}

/** The table that a row is or was in; undefined for an unknown id. */
function tableOfRow(reads: Pick<Reads, 'rows' | 'of'>, id: string): string | undefined {
  const now = reads.of(storedTables).row(id)?.row.table;
  if (now !== undefined) return now;
  const [first] = reads.rows('record', id);
  return typeof first?.data.table === 'string' ? first.data.table : undefined;
}

/**
 * A deleted row belongs to the table if it was inserted into this table, not into a former one of
 * the same name.
 */
function hadRow(reads: Reads, id: string, open: TableCall): boolean {
  const { table, access, operation } = open;
  const stored = reads.of(storedTables).row(id);
  if (stored !== undefined) {
    return (
      stored.row.table === table.definition.name && isSeen(open, stored.row, actionOf(operation))
    );
  }
  if (access[actionOf(operation)] !== 'scope') return false;
  const [first] = reads.rows('record', id);
  if (first === undefined || first.seq < table.stored.insertedSeq) return false;
  return first.data.table === table.definition.name;
}

/**
 * Only a caller with a scope may revert changes of others; without it, a caller may delete one row.
 */
function requireRevertAccess(open: TableCall, reads: Reads, v: JsonObject): void {
  requireOneRow(open, v);
  if (open.access.edit === 'scope') return;
  if (typeof v.id === 'string' && reads.of(storedTables).row(v.id) === undefined) {
    throw new Failure('forbidden', 'Only a key with the scope record.write may restore a row.');
  }
}

/** Throws `forbidden` for a revert by more than a row, unless by a scope. */
export function requireOneRow({ access }: TableCall, v: JsonObject): void {
  if (access.edit === 'scope') return;
  const selections = ['txn', 'by', 'from', 'until'];
  const field = selections.find((name) => (v[name] ?? undefined) !== undefined);
  if (field !== undefined) {
    throw new Failure('forbidden', `Only a key with the scope record.write may use ${field}.`, {
      field,
    });
  }
}

/** The reads that find the row of a reference, and its table. */
export type ReferenceReads = Pick<Reads, 'rows' | 'of'>;

/** The row that a reference names, if the caller may read it. */
export function visibleReference(
  { call, access }: Pick<TableCall, 'call' | 'access'>,
  reads: ReferenceReads,
  refersTo: string,
  value: Parameters<typeof referredRow>[2],
): ReturnType<typeof referredRow> {
  const target = reads.of(storedTables).table(refersTo)?.table;
  const found = referredRow(reads, refersTo, value);
  if (target === undefined || found === undefined) return undefined;
  const there = accessTo(target, call.caller, access.user);
  return mayAccess(there, 'read', target, found.row) ? found : undefined;
}

/**
 * A row without hidden fields; a caller that may not read it sees only the values that it sends.
 */
function rowView(open: TableCall, row: Row, written: JsonObject | undefined): JsonObject {
  const { table, access } = open;
  const fields = withoutHidden(table.hidden, row as unknown as JsonObject);
  const mayRead = mayAccess(access, 'read', table.definition, row);
  if (written === undefined && mayRead && table.definition.rows_pending === true) {
    const problems = invalidFields(row, table).filter(({ field }) => !table.hidden.has(field));
    return problems.length === 0 ? fields : { ...fields, problems: problems as never };
  }
  if (mayRead) return fields;
  return onlyWritten(fields, written ?? {}, table);
}

/** The fields that have the sent values: an invalid edit leaves the former value. */
export function onlyWritten(
  { id = '', table: name = '', _unknowns_: unknowns, ...fields }: JsonObject,
  written: JsonObject,
  table: RowTable,
): JsonObject {
  const { _unknowns_: nested } = written;
  const sources = [written, isJsonObject(nested) ? nested : {}];
  const isWritten = (one: string, value: Json): boolean => {
    const field = table.fields.get(one);
    return sources
      .flatMap((source) => (Object.hasOwn(source, one) ? (source[one] ?? null) : []))
      .some((sent) => {
        return sameJson(sent, value) || (field && sameJson(valueFromText(sent, field), value));
      });
  };
  const among = (all: JsonObject): JsonObject =>
    Object.fromEntries(Object.entries(all).filter(([one, value]) => isWritten(one, value)));
  const waiting = isJsonObject(unknowns) ? among(unknowns) : {};
  return {
    ...{ id, table: name, ...among(fields) },
    ...(Object.keys(waiting).length > 0 && { _unknowns_: waiting }),
  };
}
