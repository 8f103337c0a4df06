import type { Reads, Store } from '../../../core/log/store.ts';
import { unknownField } from '../../../core/operations/problems.ts';
import {
  type FieldValues,
  type FieldWrite,
  type PlacedField,
  fieldsOf,
  placeRecord,
  requireSize,
} from '../../../core/operations/records/placement.ts';
import { urlAddressProblem } from '../../../core/outbound/address.ts';
import { Failure, type Problem } from '../../../core/values/failure.ts';
import { numberOf } from '../../../core/values/json/exact-number.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import type { Cidr } from '../../../core/values/network/cidr.ts';
import { KIB } from '../../../core/values/units.ts';
import { orderOperators } from '../filter.ts';
import { type Hook, type Node, isExecutedOn, waitingFields } from '../hook.ts';
import { type HookField, hookFields } from './hook-fields.ts';
import { nodesPart } from '../../nodes/log/node-states.ts';
import { storedTables } from '../../tables/log/family.ts';

/** All fields of a hook, including `_unknowns_`. */
const hookBytesMax = 64 * KIB;

/**
 * Places the fields of a hook (docs/design/page-rules.md#invalid-values); null restores the default
 * of a field. Returns the data of the change. Throws `invalid` for a hook without a usable url or
 * event, `too_large` past a limit.
 */
export function placeHookFields(write: FieldWrite<Hook>): JsonObject {
  return placeRecord(write, () => ({
    names: hookFields,
    placeField(name, values) {
      const definition = hookFields.get(name);
      const placed = definition && placeField(definition, values);
      if (definition === undefined || placed === undefined) {
        throw unusableField(name, definition?.required, values);
      }
      return placed;
    },
    complete(fields, unknowns) {
      // A caller may send the answer of an insert back; no hook stores and shows a secret.
      unknowns.delete('secret');
      requireSize('The hook', { fields, unknowns }, hookBytesMax);
    },
  }));
}

/** Undefined if the hook would lack a required field. */
function placeField(
  { standard, required, hasMembers, read }: HookField,
  { old, sent, waiting }: FieldValues,
): PlacedField | undefined {
  const next = (sent === undefined ? waiting : sent) ?? null;
  const before = (sent === null ? undefined : old) ?? standard;
  // Waiting members are added to those that are valid already.
  const members =
    hasMembers === true && sent === undefined && isJsonObject(before) ? before : undefined;
  const { value, waiting: unknown } = next === null ? {} : read(next, members);
  if (required !== undefined && (unknown !== undefined || (value ?? before) === undefined)) {
    return undefined;
  }
  const field = isJsonObject(members) && isJsonObject(value) ? { ...members, ...value } : value;
  return { field: field ?? before, unknown };
}

function unusableField(name: string, required = '', { sent, waiting }: FieldValues): Failure {
  const value = (sent === undefined ? waiting : sent) ?? null;
  const what = value === null ? 'is missing' : 'cannot be used';
  return new Failure('invalid', `${name} ${what}: it has to be ${required}.`, { field: name });
}

/**
 * The fields of a form or query, where all values are texts: numerals, `true` and `false` are read
 * as such in fields that have numbers and switches.
 */
export function hookFieldsFromText(sent: JsonObject): JsonObject {
  const { filter, frequency, event, table } = sent;
  return {
    ...sent,
    // A list with one member.
    ...(typeof event === 'string' && { event: [event] }),
    ...(typeof table === 'string' && { table: [table] }),
    ...readTexts(sent, ['active', 'order', 'retry_limit']),
    ...(isJsonObject(filter) && { filter: filterFromText(filter) }),
    ...(isJsonObject(frequency) && {
      frequency: { ...frequency, ...readTexts(frequency, ['max_events']) },
    }),
  };
}

/** A filter with numerals as numbers in the conditions that compare the order of values. */
function filterFromText(filter: JsonObject): JsonObject {
  const members = Object.entries(filter).map(([name, expected]): readonly [string, Json] => {
    if (!isJsonObject(expected)) return [name, expected];
    const compared = orderOperators.flatMap((operator) => {
      const text = expected[operator];
      const isNumeral = typeof text === 'string' && /^-?\d+(?:\.\d+)?$/.test(text);
      const number = isNumeral ? numberOf(text) : undefined;
      return number === undefined ? [] : [[operator, number] as const];
    });
    return [name, { ...expected, ...Object.fromEntries(compared) }];
  });
  return Object.fromEntries(members);
}

function readTexts(sent: JsonObject, names: readonly string[]): JsonObject {
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = sent[name];
      const value = typeof text === 'string' ? readText(text) : undefined;
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

function readText(text: string): Json | undefined {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  return text === 'true' || text === 'false' ? text === 'true' : undefined;
}

/**
 * The problems of the named fields of a hook: values in its `_unknowns_`, and valid values without
 * an effect. `nodes` begins with this one, and is undefined if they are unknown.
 */
export function hookProblems(
  hook: Hook,
  names: readonly string[],
  nodes: readonly [Node, ...Node[]] | undefined,
): readonly Problem[] {
  const known = [...hookFields.keys()];
  const { fields, unknowns } = fieldsOf(hook);
  const pausing = new Set(waitingFields(hook));
  return names.flatMap((name): readonly Problem[] => {
    const definition = hookFields.get(name);
    const value = unknowns.get(name) ?? fields.get(name);
    if (value === undefined || (definition === undefined && !unknowns.has(name))) return [];
    if (definition === undefined) return [unknownField(name, name, known)];
    const valid = fields.get(name);
    const members = unknowns.has(name) && isJsonObject(valid) ? valid : undefined;
    const problems = definition.read(value, members).problems.map((problem) => {
      const message = `${problem.message} ${pausedMessage}`;
      return pausing.has(name) ? { ...problem, message } : problem;
    });
    const isPlaced = name === 'where' && nodes !== undefined;
    return isPlaced ? [...problems, ...placeProblems(hook, nodes)] : problems;
  });
}

const pausedMessage = 'The hook is paused until this is corrected.';

/** This node, and those that follow it or are in its cluster. */
export function knownNodes(
  { name, role }: Node,
  { part }: Pick<Store, 'part'>,
): readonly [Node, ...Node[]] {
  const nodes = part(nodesPart);
  const others = nodes.all().map((other): Node => {
    // A role that only a later version has delivers what names the node.
    return { name: other.name, role: isRole(other.role) ? other.role : 'replica' };
  });
  return [{ name, role }, ...others];
}

function isRole(role: string): role is Node['role'] {
  return ['all', 'central', 'replica', 'counter'].includes(role);
}

/** A problem if no known node executes a hook; the first node is this one. */
export function placeProblems(hook: Hook, nodes: readonly [Node, ...Node[]]): readonly Problem[] {
  const { where = '' } = hook;
  const [node] = nodes;
  if (nodes.some((one) => isExecutedOn(hook, one))) return [];
  const message =
    `No node is known that executes hooks at ${JSON.stringify(where)}: ` +
    `this one is ${JSON.stringify(node.name)}, with the role ${node.role}. Nothing is delivered.`;
  return [{ field: 'where', reason: 'no_effect', message }];
}

/** A problem if the URL has a private address, to which this server refuses to deliver. */
export function privateUrlProblems(
  { url }: Pick<Hook, 'url'>,
  allowPrivate: readonly Cidr[],
): readonly Problem[] {
  const why = urlAddressProblem(url, allowPrivate);
  if (why === undefined) return [];
  const message = `Deliveries to this URL are refused: ${why} of [webhook] in the ini file.`;
  return [{ field: 'url', reason: 'unreachable_private', message }];
}

/** The tables of Waymark's own records. */
const ownTables = ['userinterface', 'webhook', 'key', 'table'] as const;

/**
 * A problem for each table that does not exist and has nearly the name of one that does.
 * Applications may raise events about tables that Waymark does not have.
 */
export function tableProblems({ table = [] }: Hook, reads: Pick<Reads, 'of'>): readonly Problem[] {
  const known = [
    ...ownTables,
    ...[...reads.of(storedTables).tablesAfter('')].map((stored) => stored.table.name),
  ];
  return table.flatMap((name): readonly Problem[] => {
    const suggestion = known.includes(name) ? undefined : nearestName(name, known);
    if (suggestion === undefined) return [];
    const message = `There is no table ${name}. Did you mean ${suggestion}?`;
    return [{ field: 'table', reason: 'no_effect', message, suggestion }];
  });
}
