import type { WorkTurns } from '../../fair/turns.ts';
import { Failure } from '../../values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../values/json/json.ts';
import { listCharactersMax, listRowsDefault, listRowsMax, ruleCharacters } from '../limits.ts';
import { type Call, type OperationDefinition, defineOperation } from '../operation.ts';
import { readInTurns } from '../turns.ts';
import {
  type OrderedSteps,
  type RecordFamily,
  type RecordFields,
  type RecordParts,
  type RecordStep,
  type StoredRecord,
  familyFor,
  fieldsSent,
} from './family.ts';
import { asOfProperty, seqOfMoment } from './moment.ts';
import { recordView, shownRecord } from './read.ts';
import { recordSchemas } from './schema.ts';
import { shownTo } from './shown.ts';

/** Records that are examined for one page of a list; a long record counts as several. */
const listExaminedMax = 200_000;

interface ListInput {
  text?: string;
  after?: string;
  limit?: number;
  as_of?: string;
  sort?: string;
}

const anyText = 'A text in any field, in upper or lower case.';
const optionalText = { type: 'string', nullable: true } as const;

/**
 * list of a family: the records that match all filters, in the order of their ids, which is that of
 * their inserts. `next` is the `after` of the next page, and null at the end. A page may have fewer
 * rows than `limit` and still have a next one, because the work for one page is limited.
 */
export function listOperation<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
): OperationDefinition<Parts> {
  const { name, noun, scopes, schema, list, summaries, part } = family;
  return defineOperation({
    name: `svc1.${name}.list`,
    scope: scopes.read,
    ...(family.tableDecides && { tableDecides: true }),
    effect: 'reads',
    inDrafts: true,
    summary: summaries?.list ?? `Lists the ${noun}s that match all filters, oldest first.`,
    output: listSchema(recordSchemas(schema).list, list.members),
    input: {
      type: 'object',
      required: Object.keys(part?.members ?? {}),
      properties: {
        ...part?.members,
        ...list.filters,
        text: { ...optionalText, description: list.textMeans ?? anyText },
        ...sortProperty(list),
        after: { ...optionalText, description: 'The next of the page before.' },
        limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
        ...(family.afterAt !== undefined && { as_of: asOfProperty }),
      },
    },
    run: (parts: Parts) => async (v, call) => {
      await family.prepare?.(call);
      const input = v as ListInput & JsonObject;
      const data = await readInTurns(parts, call, (then, turns) => {
        const given = { operation: 'list', v: input, call } as const;
        const bound = familyFor(family, given, then.store, then);
        return listPage(bound, then, input, { origin: call.origin, caller: call.caller, turns });
      });
      return { kind: 'data', data };
    },
  });
}

/** The schema of a list with further members. */
function listSchema(list: JsonObject, members: JsonObject = {}): JsonObject {
  return { ...list, properties: { ...(list.properties as JsonObject), ...members } };
}

/** The `sort` of a family whose list has several orders. */
function sortProperty({ orders, ordersMean: description }: SortedList): JsonObject {
  if (orders === undefined) return {};
  const names = ['inserted', ...Object.keys(orders)];
  return { sort: { ...optionalText, enum: [...names, null], ...(description && { description }) } };
}

type SortedList = Pick<RecordFamily<RecordParts, RecordFields>['list'], 'orders' | 'ordersMean'>;

/**
 * The steps in the order that `sort` names, with cursors that name it; undefined for the order of
 * the inserts. Throws `invalid` for the cursor of another order, and for an order in the past.
 */
function orderOf<R>(
  orders: Readonly<Record<string, OrderedSteps<R>>>,
  { sort = 'inserted', after, isOfPast }: ListInput & { after: string; isOfPast: boolean },
): OrderedSteps<R> | undefined {
  const steps = orders[sort];
  const mark = steps === undefined ? '' : `${sort}:`;
  // No id of a record has a colon.
  if (after !== '' && (mark === '' ? after.includes(':') : !after.startsWith(mark))) {
    const message = 'after has to be the `next` of an earlier answer, with the same sort.';
    throw new Failure('invalid', message, { field: 'after' });
  }
  if (steps === undefined) return undefined;
  if (isOfPast) {
    const message = 'A list with as_of is in the order of the inserts: leave out sort.';
    throw new Failure('invalid', message, { field: 'sort' });
  }
  return function* inOrder(reads, given) {
    const place = given.after.slice(mark.length);
    for (const step of steps(reads, { ...given, after: place })) {
      yield { ...step, cursor: mark + (step.cursor ?? step.id) };
    }
  };
}

/** A page of the list of a family as a call sees it, from the parts of one state of the log. */
export async function listPage<Parts extends RecordParts, R extends RecordFields>(
  family: RecordFamily<Parts, R>,
  parts: Parts,
  input: ListInput & JsonObject,
  { turns, ...call }: Pick<Call, 'origin' | 'caller'> & { readonly turns: WorkTurns },
): Promise<JsonObject> {
  const { list } = family;
  const {
    text,
    after = '',
    limit = listRowsDefault,
    as_of: asOf,
    ...filters
  } = fieldsSent(family, input) as ListInput & JsonObject;
  const { store } = parts;

  // A list that takes no as_of may still get one that is null.
  const isOfPast = family.afterAt !== undefined && asOf !== undefined;
  const seq = isOfPast ? seqOfMoment(store, 'as_of', asOf) : undefined;
  const show = seq === undefined ? undefined : shownTo(family, [store], call.caller);
  const selected = list.select?.({ filters: { ...filters, ...(text && { text }) }, seq }, store);
  const parsed = selected === undefined ? (list.parse?.(filters) ?? filters) : {};
  const inOrder = list.orders && orderOf(list.orders, { ...input, after, isOfPast });
  const isFound = (record: R): boolean => selected !== undefined || list.matches(record, parsed);
  const hasText = text === undefined || selected !== undefined ? () => true : textSearch(text);
  const stepsAfter = (cursor: string): Iterable<RecordStep<R>> | undefined => {
    if (selected !== undefined) return selected.stepsAfter(cursor);
    if (inOrder !== undefined) return inOrder(store, { after: cursor, filters: parsed });
    return seq === undefined ? family.after(store, cursor) : family.afterAt?.(store, cursor, seq);
  };
  const page = await readPage(
    stepsAfter,
    {
      after,
      limit,
      endsAtShown: (selected ?? list).endsAtShown === true,
      rowOf: (stored) => {
        // The filters see only what the caller may see.
        const seen = show === undefined ? stored : shownRecord(stored, show);
        if (!isFound(seen.record) || !hasText(seen.record)) return undefined;
        const view = recordView(family, parts, seen, call.origin);
        return list.row?.(view) ?? view;
      },
    },
    turns,
  );
  return { ...page, ...(await selected?.members?.(turns)) };
}

/** A page of a list; `next` is null at its end. */
interface Page {
  readonly rows: readonly JsonObject[];
  readonly next: string | null;
}

/** A page of a list, whose `rowOf` takes the records after a position, in turns. */
export async function readPage<R>(
  stepsAfter: (id: string) => Iterable<RecordStep<R>> | undefined,
  {
    after,
    limit,
    endsAtShown,
    rowOf,
    examinedMax = listExaminedMax,
  }: {
    readonly after: string;
    readonly limit: number;
    readonly endsAtShown: boolean;
    /** The row of a record; undefined if the record does not match. */
    readonly rowOf: (stored: StoredRecord<R>) => JsonObject | undefined;
    /** Records that it examines; a long one counts as several. */
    readonly examinedMax?: number;
  },
  turns: WorkTurns,
): Promise<Page> {
  const rows: JsonObject[] = [];
  let [characters, examined, lastShown] = [0, 0, after];
  for (const { id, stored, size, cursor = id } of stepsAfter(after) ?? []) {
    const row = stored && rowOf(stored);
    if (row !== undefined) {
      rows.push(row);
      lastShown = cursor;
      characters += JSON.stringify(row).length;
      if (rows.length === limit || characters > listCharactersMax) return { rows, next: cursor };
    }
    examined += examinedRecords(size);
    if (examined >= examinedMax && !endsAtShown) return { rows, next: cursor };
    if (examined >= examinedMax && rows.length > 0) return { rows, next: lastShown };
    if (turns.isOver()) await turns.next();
  }
  return { rows, next: null };
}

/** A long record counts as several. */
export function examinedRecords(size: number): number {
  return 1 + Math.floor(size / ruleCharacters);
}

/**
 * Makes the search of a text in all fields of a record, in upper or lower case. It finds the text
 * as a person writes it and, in a field that is no text, also as JSON.
 */
function textSearch(text: string): (record: object) => boolean {
  const sought = text.toLowerCase();
  return (record) =>
    (Object.values(record) as Json[]).map(searchableText).join('\n').toLowerCase().includes(sought);
}

/** A value as JSON, followed by its texts where JSON escapes characters in them. */
function searchableText(value: Json): string {
  if (typeof value === 'string') return value;
  const json = JSON.stringify(value);
  return json.includes('\\') ? [json, ...textsIn(value)].join('\n') : json;
}

/** All texts in a value, and the names of its members. */
function textsIn(value: Json): readonly string[] {
  if (typeof value === 'string') return [value];
  if (!isJsonObject(value)) return Array.isArray(value) ? value.flatMap(textsIn) : [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...textsIn(member)]);
}
