import { mergeFields } from '../../core/log/change.ts';
import type { LoggedDraft, Reads } from '../../core/log/store.ts';
import { requireNoMistakes } from '../../core/operations/problems.ts';
import { sentNames } from '../../core/operations/records/placement.ts';
import { Failure, type Problem } from '../../core/values/failure.ts';
import { parseJson } from '../../core/values/json/parse.ts';
import { type Json, type JsonObject, isJsonObject, sameJson } from '../../core/values/json/json.ts';
import { type Scope, hasScope } from '../../core/values/key.ts';
import { type CompiledTable, type TableField, compileTable } from '../tables/compiled-table.ts';
import { definitionFields } from '../tables/definition.ts';
import { placeTableFields } from '../tables/operations/table-family.ts';
import { type Row, type Scalar, type StoredRow, scalarOf } from '../tables/row.ts';
import { accessTo } from '../tables/rows/access.ts';
import { rowTable } from '../tables/rows/compiled-tables.ts';
import { placeRowFields, referredRow, rowProblems } from '../tables/rows/row-placement.ts';
import type { TableDefinition } from '../tables/table.ts';
import { type ImportLine, restored } from './import-line.ts';
import { storedTables } from '../tables/log/family.ts';

/** A line of a table or row, placed by what the log and the lines before it have. */
export interface PlacedLine {
  readonly draft: Pick<LoggedDraft, 'family' | 'action' | 'data'>;
  /** As LineProblems. */
  readonly names: readonly string[];
  readonly problems: readonly Problem[];
}

/** How lines of tables and rows are written. */
interface RowImportOptions {
  readonly isStrict: boolean;
  /** The scopes of the caller; undefined for a command, which may write everything. */
  readonly scopes: readonly Scope[] | undefined;
}

/**
 * The tables and rows of one transaction of an import. A row is placed in the transaction, because
 * a line before it can be its table.
 */
export class RowImport {
  readonly #reads: Reads;
  readonly #options: RowImportOptions;
  readonly #tables = new Map<string, CompiledTable>();
  readonly #references = new Map<CompiledTable, readonly TableField[]>();
  readonly #keys = new Set<string>();

  constructor(reads: Reads, options: RowImportOptions) {
    this.#reads = reads;
    this.#options = options;
  }

  /**
   * Places the record of a line; undefined if it exists with the same fields. Throws a Failure for
   * a line that makes no record, or that the caller may not write.
   */
  place(line: ImportLine): PlacedLine | undefined {
    const v = parseJson(line.text) as JsonObject;
    return line.family === 'table' ? this.#table(v, line) : this.#row(v, line);
  }

  #table(v: JsonObject, { vkScope }: ImportLine): PlacedLine | undefined {
    this.#require('admin', 'a table needs the scope admin.');
    const place = (sent: JsonObject): JsonObject =>
      placeTableFields({ current: undefined, sent }, this.#reads);
    const data = vkScope === 'record' ? restored(v, place) : place(v);
    const definition = data as unknown as TableDefinition;
    const { name } = definition;
    const existing =
      this.#reads.of(storedTables).table(name)?.table ?? this.#tables.get(name)?.definition;
    if (existing !== undefined) {
      const isSame = definitionFields.every((field) => sameJson(existing[field], data[field]));
      if (isSame) return undefined;
      const message = `the table ${name} exists with other fields, and an import edits no record.`;
      throw new Failure('conflict', message, { field: 'name' });
    }
    this.#tables.set(name, compileTable(definition));
    const names = Object.keys(isJsonObject(data._unknowns_) ? data._unknowns_ : {});
    return { draft: { family: 'table', action: 'insert', data }, names, problems: [] };
  }

  #row(v: JsonObject, { vkScope }: ImportLine): PlacedLine {
    const { table: name, id: _id, ...sent } = v;
    const table = typeof name === 'string' ? this.#tableOf(name) : undefined;
    if (table === undefined) {
      const shown = JSON.stringify(name ?? null).slice(0, shownCharacters);
      throw new Failure('invalid', `there is no table ${shown}.`, { field: 'table' });
    }
    const { definition } = table;
    const { scopes } = this.#options;
    if (scopes !== undefined) {
      const access = accessTo(definition, { scopes: new Set(scopes) }, undefined);
      const message = `a row of ${definition.name} needs the scope record.write.`;
      if (access.insert !== 'scope') throw new Failure('forbidden', message);
    }
    const place = (fields: JsonObject): JsonObject =>
      placeRowFields({ current: undefined, sent: fields }, table);
    const isExported = vkScope === 'record';
    const data = isExported ? restored(sent, place) : place(sent);
    this.#takeKey(definition, data);
    const draft = { family: 'record', action: 'insert', data } as const;
    // Fields that wait in an exported row are no mistakes of this import.
    if (isExported) return { draft, names: [], problems: [] };
    const names = Object.keys(isJsonObject(data._unknowns_) ? data._unknowns_ : {});
    if (names.length === 0) return { draft, names, problems: [] };
    const row = mergeFields({ id: '' }, data) as Row;
    // The rows that references name may follow: see referenceProblems.
    const problems = rowProblems(row, sentNames(sent), table, () => ({ row, ...noPlace }));
    requireNoMistakes({ isStrict: this.#options.isStrict }, problems);
    return { draft, names, problems };
  }

  /**
   * The references of a placed row that name no row in the log or in the lines placed before. As in
   * an insert, a row that the caller may not read counts as none.
   */
  referenceProblems({ family, data }: PlacedLine['draft']): readonly Problem[] {
    const table = family === 'record' ? this.#tableOf(data.table as string) : undefined;
    if (table === undefined) return [];
    const references = this.#referencesOf(table).filter(
      ({ name }) => scalarOf(data[name]) !== null,
    );
    if (references.length === 0) return [];
    const row = mergeFields({ id: '' }, data) as Row;
    const names = references.map(({ name }) => name);
    return rowProblems(row, names, table, ({ refersTo = '' }, value) =>
      this.#referred(refersTo, value, row),
    );
  }

  #referred(refersTo: string, value: Json, row: Row): StoredRow | undefined {
    const target = this.#tableOf(refersTo)?.definition;
    if (target === undefined) return undefined;
    const { scopes } = this.#options;
    const access = scopes && accessTo(target, { scopes: new Set(scopes) }, undefined);
    if (access?.read === 'none') return undefined;
    const isPlaced = this.#keys.has(keyName(refersTo, scalarOf(value)));
    return isPlaced ? { row, ...noPlace } : referredRow(this.#reads, refersTo, value);
  }

  #referencesOf(table: CompiledTable): readonly TableField[] {
    let references = this.#references.get(table);
    if (references === undefined) {
      references = [...table.fields.values()].filter(({ refersTo }) => refersTo !== undefined);
      this.#references.set(table, references);
    }
    return references;
  }

  #tableOf(name: string): CompiledTable | undefined {
    const known = this.#tables.get(name);
    if (known !== undefined) return known;
    const stored = this.#reads.of(storedTables).table(name);
    if (stored === undefined) return undefined;
    const table = rowTable(this.#reads, stored);
    this.#tables.set(name, table);
    return table;
  }

  #takeKey({ name, key }: TableDefinition, data: JsonObject): void {
    if (key === undefined) return;
    const value = scalarOf(data[key]);
    const taken = keyName(name, value);
    if (
      this.#keys.has(taken) ||
      this.#reads.of(storedTables).rowIdByKey(name, value) !== undefined
    ) {
      const shown = JSON.stringify(value).slice(0, shownCharacters);
      const message = `${name} has a row with the ${key} ${shown} already.`;
      throw new Failure('conflict', message, { field: key });
    }
    this.#keys.add(taken);
  }

  #require(scope: Scope, message: string): void {
    const { scopes } = this.#options;
    if (scopes === undefined || hasScope({ scopes: new Set(scopes) }, scope)) return;
    throw new Failure('forbidden', message);
  }
}

function keyName(table: string, key: Scalar): string {
  return `${table} ${JSON.stringify(key)}`;
}

const shownCharacters = 80;
const noPlace = { seq: 0, insertedSeq: 0 } as const;
