import type { Reads } from '../../../core/log/store.ts';
import { listRowsMax } from '../../../core/operations/limits.ts';
import { type Call, defineOperation } from '../../../core/operations/operation.ts';
import {
  type FamilyCall,
  type RecordFamily,
  familyFor,
  findRecord,
  namedId,
} from '../../../core/operations/records/family.ts';
import { examinedRecords, listPage } from '../../../core/operations/records/list.ts';
import { asOfProperty, seqOfMoment } from '../../../core/operations/records/moment.ts';
import { etagOfDigest, noSuchRecord, recordView } from '../../../core/operations/records/read.ts';
import { namingMembers } from '../../../core/operations/records/schema.ts';
import { readInTurns } from '../../../core/operations/turns.ts';
import type { Json, JsonObject } from '../../../core/values/json/json.ts';
import { jsonDigest } from '../../../core/values/json/prepared-json.ts';
import type { StaticOutput } from '../../../core/values/json/static.ts';
import type { TableField } from '../compiled-table.ts';
import { type Row, fieldOf } from '../row.ts';
import { tableIndexes } from '../table.ts';
import { type TableAccess, accessTo, mayAccess } from './access.ts';
import { rowTable, withoutHidden } from './compiled-tables.ts';
import {
  type ReferenceReads,
  type RowParts,
  type TableCall,
  openTable,
  rowFamily,
  visibleReference,
} from './row-family.ts';
import { countMembers, rowFilters } from './row-list.ts';
import { rowPart } from './row-schema.ts';
import { storedTables } from '../log/family.ts';
import { withReads } from '../../../core/log/reads.ts';

/** Rows that a reference lists as choices for a form. */
const referenceChoicesMax = 200;

const text = { type: 'string' } as const;
const shownRow: JsonObject = {
  title: 'ShownRow',
  type: 'object',
  required: ['id', 'table', 'seq'],
  additionalProperties: true,
  properties: {
    id: { ...text, description: 'A UUIDv7 that the server sets.' },
    table: { ...text, description: 'The name of the table.' },
    seq: { type: 'integer', description: 'Version of the row.' },
    _titles_: {
      type: 'object',
      additionalProperties: true,
      description: 'By field: the title of the row that its value refers to (x-table).',
    },
  },
};

const rowList: JsonObject = {
  title: 'ShownRowList',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: { type: 'array', items: shownRow },
    next: { type: ['string', 'null'], description: 'Send it as after to get the next page.' },
    ...countMembers,
  },
};

const getInput = {
  type: 'object',
  required: namingMembers(rowPart).required,
  // The field that is the key of the table.
  additionalProperties: true,
  properties: {
    ...namingMembers(rowPart).properties,
    ...rowFilters,
    text: { ...text, nullable: true, description: 'Words in the fields that are searched.' },
    after: { ...text, nullable: true, description: 'The next of the page before.' },
    limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    as_of: {
      ...asOfProperty,
      description:
        'A seq or a date-time: the answer as it was then. It needs the scope record.read.',
    },
  },
} as const;

/**
 * record.get: one row or a list of rows for a page: without `writeOnly` fields and `_unknowns_`,
 * and with the titles of the rows that they refer to. Refuses with `not_found`.
 */
export const getRow = defineOperation({
  name: 'svc1.record.get',
  scope: 'record.read',
  tableDecides: true,
  forPages: true,
  effect: 'reads',
  inDrafts: true,
  summary: 'A row, or a list of rows, as a running page may see it.',
  input: getInput as never,
  output: { oneOf: [shownRow, rowList] },
  etag: true,
  failures: ['not_found'],
  run: (parts: RowParts) => async (input, call) => {
    await rowFamily.prepare?.(call);
    const v = input as JsonObject;
    const given: FamilyCall = { operation: 'get', v, call, input: getInput };
    const open = openTable(given, parts.store, parts);
    const data = namesOne(v, open)
      ? oneRow(parts, given)
      : await readInTurns(parts, call, (then, turns) =>
          listPage(shownFamily(then, given).family, then, v, { ...call, turns }),
        );
    const { caller } = call;
    const isForAll = caller.keyId === undefined && open.access.read !== 'own';
    return {
      kind: 'data',
      data,
      etag: etagOfDigest(jsonDigest(data)),
      ...(isForAll && open.access.user === undefined && { forAll: { variesByLanguage: false } }),
    };
  },
});

function namesOne(v: JsonObject, { table }: TableCall): boolean {
  const { key } = table.definition;
  return [v.id, key === undefined ? undefined : fieldOf(v, key)].some(
    (one) => (one ?? null) !== null,
  );
}

function oneRow(parts: RowParts, given: FamilyCall): JsonObject {
  const { store } = parts;
  const { v, call } = given;
  const { family, seq } = shownFamily(parts, given);
  const stored = findRecord(family, store, { id: namedId(family, v, store), seq });
  if (stored === undefined) throw noSuchRecord(family, v.id);
  return recordView(family, parts, stored, call.origin);
}

/** The family with rows as pages see them, and the moment that the call names. */
function shownFamily(
  parts: RowParts,
  given: FamilyCall,
): { readonly family: RecordFamily<RowParts, Row>; readonly seq: number | undefined } {
  const { store } = parts;
  const { as_of: asOf } = given.v;
  const seq = typeof asOf === 'string' ? seqOfMoment(store, 'as_of', asOf) : undefined;
  const open = openTable(given, store, parts);
  return {
    family: withTitles(familyFor(rowFamily, given, store, parts), open, { now: store, seq }),
    seq,
  };
}

/** The family with rows as pages see them, and titles as of the same moment. */
function withTitles(
  family: RecordFamily<RowParts, Row>,
  open: TableCall,
  { now, seq }: { readonly now: Reads; readonly seq: number | undefined },
): RecordFamily<RowParts, Row> {
  const reads = seq === undefined ? now : rowsOfMoment(now, seq, open.call);
  const references = [...open.table.fields.values()].filter((one) => one.refersTo !== undefined);
  return {
    ...family,
    view(row) {
      const { _unknowns_: _waiting, ...fields } = withoutHidden(
        open.table.hidden,
        row as unknown as JsonObject,
      );
      const titles = references.flatMap((field) => {
        const value = fieldOf(fields, field.name);
        const title = value === undefined ? undefined : titleOf(open, reads, field, value);
        return title === undefined ? [] : [[field.name, title] as const];
      });
      return titles.length === 0 ? fields : { ...fields, _titles_: Object.fromEntries(titles) };
    },
  };
}

/** The reads of references as of a moment: of tables whose past the caller may read. */
function rowsOfMoment(reads: Reads, seq: number, { caller }: Call): ReferenceReads {
  const tables = reads.of(storedTables);
  const of = withReads(reads, storedTables, {
    table(name) {
      const stored = tables.table(name);
      const access = stored && accessTo(stored.table, caller, undefined);
      return access?.read === 'scope' ? stored : undefined;
    },
    row: (id) => tables.rowAt(id, seq),
    rowByKey: (table, value) => tables.rowByKeyAt(table, value, seq),
  });
  return { rows: reads.rows, of };
}

/** The title of the row that a value refers to, if the caller may read it. */
function titleOf(
  open: TableCall,
  reads: ReferenceReads,
  { refersTo = '' }: TableField,
  value: Json,
): Json | undefined {
  const found = visibleReference(open, reads, refersTo, value);
  const target = reads.of(storedTables).table(refersTo);
  const field = target && rowTable(reads, target).title;
  return found === undefined || field === undefined ? undefined : fieldOf(found.row, field);
}

const tableSchema = {
  title: 'TableSchema',
  type: 'object',
  required: ['table', 'schema', 'index', 'search', 'may', 'references', 'seq'],
  properties: {
    table: text,
    schema: { type: 'object', additionalProperties: true, description: 'JSON Schema 2020-12.' },
    key: { ...text, description: 'The field that identifies a row.' },
    title: { ...text, description: 'The field that stands for a row in other tables.' },
    owner: { ...text, description: 'The field with the user of a row; the server sets it.' },
    honeypot: { ...text, description: 'The name of a form field that people leave empty.' },
    index: { type: 'array', items: text, description: 'Fields to filter and sort by.' },
    search: { type: 'array', items: text, description: 'Fields in which text is found.' },
    may: {
      type: 'object',
      description: 'Whether the caller may read, insert and edit: all rows, or its own.',
      properties: Object.fromEntries(
        ['read', 'insert', 'edit'].map((one) => [
          one,
          { type: 'string', enum: ['all', 'own', 'none'] },
        ]),
      ),
    },
    references: {
      type: 'object',
      additionalProperties: true,
      description: 'By field with x-table: the table, its key, and the rows to choose from.',
    },
    seq: { type: 'integer', description: 'Version of the definition.' },
  },
} as const;

/**
 * record.schema: describes a table for a form: its schema, its key, the actions that the caller may
 * do, and the rows that its references can name.
 */
export const getTableSchema = defineOperation({
  name: 'svc1.record.schema',
  scope: 'record.read',
  tableDecides: true,
  forPages: true,
  effect: 'reads',
  inDrafts: true,
  summary: 'The schema of a table, and what the caller may do with its rows.',
  input: {
    type: 'object',
    required: ['table'],
    properties: { table: { type: 'string', description: 'The name of the table.' } },
  },
  output: tableSchema,
  etag: true,
  failures: ['not_found'],
  run: (parts: RowParts) => async (v, call) => {
    await rowFamily.prepare?.(call);
    const { store } = parts;
    const given: FamilyCall = { operation: 'schema', v: { ...v }, call };
    const data = schemaView(openTable(given, store, parts), store);
    return { kind: 'data', data, etag: etagOfDigest(jsonDigest(data)) };
  },
});

function schemaView(open: TableCall, reads: Reads): JsonObject & StaticOutput<typeof tableSchema> {
  const { table, access } = open;
  const { definition, stored } = table;
  const { name, schema = {}, key, owner, honeypot } = definition;
  const { fields, search } = tableIndexes(definition);
  const references = [...table.fields.values()].flatMap((field) => {
    const choices = field.refersTo === undefined ? undefined : referenceView(open, reads, field);
    return choices === undefined ? [] : [[field.name, choices] as const];
  });
  return {
    table: name,
    schema,
    ...(key !== undefined && { key }),
    ...(table.title !== undefined && { title: table.title }),
    ...(owner !== undefined && { owner }),
    ...(honeypot !== undefined && { honeypot }),
    index: fields,
    search,
    may: mayView(access),
    references: Object.fromEntries(references),
    seq: stored.seq,
  };
}

function mayView({ read, insert, edit }: TableAccess): JsonObject {
  const shown = (extent: TableAccess['read']): string =>
    extent === 'scope' || extent === 'anonymous' ? 'all' : extent;
  return { read: shown(read), insert: shown(insert), edit: shown(edit) };
}

/** The rows that a field can refer to, with their titles; undefined if the caller sees none. */
function referenceView(
  open: TableCall,
  reads: Reads,
  { refersTo = '' }: TableField,
): JsonObject | undefined {
  const stored = reads.of(storedTables).table(refersTo);
  if (stored === undefined) return undefined;
  const { definition: target, title } = rowTable(reads, stored);
  const access = accessTo(target, open.call.caller, open.access.user);
  if (access.read === 'none') return undefined;
  const { key } = target;
  const choices: JsonObject[] = [];
  let examined = 0;
  for (const { stored, size } of reads.of(storedTables).rowsAfter(refersTo, '')) {
    examined += examinedRecords(size);
    if (choices.length >= referenceChoicesMax || examined > 10 * referenceChoicesMax) break;
    if (stored === undefined || !mayAccess(access, 'read', target, stored.row)) continue;
    const value = key === undefined ? stored.row.id : fieldOf(stored.row, key);
    if (value === undefined) continue;
    const shown = title === undefined ? undefined : fieldOf(stored.row, title);
    choices.push({ value, title: shown ?? value });
  }
  const { rows } = reads.of(storedTables).tableCounts(refersTo);
  const isWhole = access.read !== 'own' && choices.length >= rows;
  return {
    table: refersTo,
    ...(key !== undefined && { key }),
    ...(title !== undefined && { title }),
    choices,
    is_whole: isWhole || examined < referenceChoicesMax,
  };
}
