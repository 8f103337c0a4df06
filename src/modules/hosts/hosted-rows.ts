import type { DataHost, HostClient } from './host-client.ts';
import { Failure } from '../../core/values/failure.ts';
import { isJsonObject, type JsonObject } from '../../core/values/json/json.ts';
import { needsUser } from '../../core/http/visitor.ts';
import type { Call, Operation, OperationResult } from '../../core/operations/operation.ts';
import type { FamilyCall } from '../../core/operations/records/family.ts';
import { actionOf } from '../tables/rows/access.ts';
import { unknownField } from '../tables/rows/row-conditions.ts';
import {
  countAnonymousWrite,
  onlyWritten,
  openTable,
  requireOneRow,
  type RowParts,
  type TableCall,
} from '../tables/rows/row-family.ts';
import { storedTables } from '../tables/log/family.ts';

/** The parts that calls of data hosts need. */
interface HostedParts extends RowParts {
  readonly hosts: HostClient;
  readonly keyFileOf: (table: string) => string | undefined;
}

/** The operations on rows that a data host answers for a table that has one. */
const passed: ReadonlySet<string> = new Set(
  ['insert', 'edit', 'read', 'list', 'invalidate', 'get'].map((one) => `svc1.record.${one}`),
);

/**
 * Makes operations on rows call the data host of their table, if it has one
 * (docs/design/records.md#rows-on-another-server). The table of this server decides about access;
 * the host gets the key of this server, never that of the caller.
 */
export function withDataHosts(
  operations: readonly Operation[],
  parts: HostedParts,
): readonly Operation[] {
  return operations.map((operation): Operation => {
    if (!passed.has(operation.name)) return operation;
    return {
      ...operation,
      run(v, call) {
        const input = v as JsonObject;
        const host = hostOf(input, parts);
        if (host === undefined) return operation.run(v, call);
        return callHost(host, operation, { input, call }, parts);
      },
    };
  });
}

function hostOf(
  { table: name }: JsonObject,
  { store, keyFileOf }: HostedParts,
): DataHost | undefined {
  if (typeof name !== 'string') return undefined;
  const url = store.of(storedTables).table(name)?.table.host;
  return url === undefined ? undefined : { url, keyFile: keyFileOf(name) };
}

async function callHost(
  host: DataHost,
  { name, input: schema }: Pick<Operation, 'name' | 'input'>,
  { input, call }: { readonly input: JsonObject; readonly call: Call },
  parts: HostedParts,
): Promise<OperationResult> {
  await call.visitor.prepare(needsUser);
  const operation = name.slice('svc1.record.'.length) as FamilyCall['operation'];
  const isStored = operation === 'insert' || operation === 'edit';
  const given = { operation, v: input, call, ...(!isStored && { input: schema }) };
  const open = openTable(given, parts.store, parts);
  const extent = open.access[actionOf(operation)];
  if (extent === 'own') {
    const message = 'A table on another server cannot have rows of single users.';
    throw new Failure('forbidden', message, { field: 'table' });
  }
  // A key that may read no more than anonymous callers must not read the past.
  const isPast = (input.as_of ?? null) !== null || call.qk === 'history';
  if (isPast && extent !== 'scope') {
    const message = 'The history of rows needs an API key with the scope record.read.';
    throw new Failure('forbidden', message, { field: 'as_of' });
  }
  if (operation === 'invalidate') requireOneRow(open, input);
  refuseHidden(input, open);
  const { honeypot } = open.table.definition;
  if (actionOf(operation) !== 'read' && countAnonymousWrite(open, input, parts).isDiscarded) {
    const seen = { id: parts.newId(), ...without(input, honeypot), seq: 0 };
    return { kind: 'data', data: { ...seen, unknowns: [], problems: [] } };
  }
  const { vk, qk, isStrict = false } = call;
  const v = without(input, honeypot);
  const signal = call.signal();
  const answer = await parts.hosts
    .call(host, { name, v, vk, qk, isStrict, signal })
    .catch((error: unknown) => {
      throw withoutRow(open, error);
    });
  const { data, vk: answeredVk, replayed } = answer;
  return {
    kind: 'data',
    // Fields that the schema of this server hides stay hidden, even if the host shows them.
    data: readable(open, v, shown(data ?? null, open.table.hidden)),
    ...(typeof answeredVk === 'string' && { vk: answeredVk }),
    ...(replayed === true && { replayed }),
  };
}

/** Hidden fields are unknown to `where` and `sort`, also if the host would answer. */
function refuseHidden({ where, sort }: JsonObject, { table }: TableCall): void {
  const conditions = isJsonObject(where) ? Object.keys(where) : [];
  for (const name of conditions) {
    if (table.hidden.has(name)) throw unknownField(name, table, 'where');
  }
  const sorted = typeof sort === 'string' ? sort.replace(/^-/, '') : '';
  if (table.hidden.has(sorted)) throw unknownField(sorted, table, 'sort');
}

/** A conflict without the id of another row, for a caller that may not read the rows. */
function withoutRow({ access, table }: TableCall, error: unknown): unknown {
  const isConflict = error instanceof Failure && error.code === 'conflict';
  if (!isConflict || access.read !== 'none') return error;
  const { name, key = 'key' } = table.definition;
  const message =
    `The data host of ${name} refuses the write: another row has its ${key} already, or its vk ` +
    'was used for another request.';
  return new Failure('conflict', message, error.field === undefined ? {} : { field: error.field });
}

/** The answer to a write for a caller that may not read the rows: see rowView. */
function readable(
  { access, operation, table }: TableCall,
  sent: JsonObject,
  data: unknown,
): unknown {
  if (actionOf(operation) === 'read' || !isJsonObject(data)) return data;
  if (operation === 'invalidate') {
    const { changes } = data;
    if (access.read === 'scope' || !Array.isArray(changes)) return data;
    const bare = (changes as readonly JsonObject[]).map((one) => ({ ...one, fields: {} }));
    return { ...data, changes: bare };
  }
  if (access.read !== 'none') return data;
  const members = ['seq', 'unknowns', 'problems'].filter((name) => Object.hasOwn(data, name));
  const kept = members.map((name) => [name, data[name]] as const);
  return { ...onlyWritten(data, sent, table), ...Object.fromEntries(kept) };
}

function without(fields: JsonObject, name: string | undefined): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([one]) => one !== name));
}

/** An answer without hidden fields, at any depth: rows of lists and of the history among them. */
function shown(data: unknown, hidden: ReadonlySet<string>): unknown {
  if (hidden.size === 0) return data;
  if (Array.isArray(data)) return data.map((one: unknown) => shown(one, hidden));
  if (!isJsonObject(data)) return data;
  const members = Object.entries(data).filter(([name]) => !hidden.has(name));
  return Object.fromEntries(members.map(([name, one]) => [name, shown(one, hidden)]));
}
