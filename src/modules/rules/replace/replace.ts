import type { WorkTurns } from '../../../core/fair/turns.ts';
import type { Decision, LoggedDraft, Reads } from '../../../core/log/store.ts';
import { authorise } from '../../../core/operations/execute.ts';
import { listRowsDefault } from '../../../core/operations/limits.ts';
import {
  type Call,
  type OperationResult,
  authorOf,
  defineOperation,
} from '../../../core/operations/operation.ts';
import {
  type RecordFamily,
  type StoredRecord,
  familyFor,
} from '../../../core/operations/records/family.ts';
import {
  commitOnce,
  earlierClaim,
  keyedRequest,
  namedFirst,
  reportResult,
} from '../../../core/operations/records/idempotency.ts';
import { readPage } from '../../../core/operations/records/list.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import { readInTurns, turnsOf } from '../../../core/operations/turns.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import type { StaticInput } from '../../../core/values/json/static.ts';
import { type RuleParts, ruleFamily } from '../operations/rule-family.ts';
import { type Rule, ruleKinds } from '../rule.ts';
import {
  findCharactersMax,
  replacedCharactersMax,
  replacedPagesMax,
  searchedRecordsMax,
  withCharactersMax,
} from './replace-limits.ts';
import { type ReplaceIn, replacedParts, replacer } from './replacement.ts';

const name = 'svc1.userinterface.replace';
const text = { type: 'string' } as const;
const flag = { type: 'boolean', nullable: true } as const;
const count = (description: string) => ({ type: 'integer', description }) as const;
const filters = ruleFamily.list.filters;

const pageSchema = {
  type: 'object',
  required: ['id', 'seq', 'origin', 'path', 'kind', 'count', 'found'],
  properties: {
    ...{ id: text, seq: count('For pages.'), origin: text, path: text },
    kind: { ...text, enum: ruleKinds },
    count: count('How often it has the text.'),
    found: {
      type: 'array',
      description: 'The first places, each with what is around it in its line.',
      items: {
        type: 'object',
        required: ['field', 'before', 'found', 'replaced', 'after'],
        properties: { field: text, before: text, found: text, replaced: text, after: text },
      },
    },
    problem: { ...text, description: 'Why it cannot be changed in this way.' },
  },
} as const;

const reportSchema: JsonObject = {
  title: 'ReplaceReport',
  type: 'object',
  required: ['done', 'examined', 'rows', 'next'],
  properties: {
    done: { const: false },
    examined: count('Page rules that were searched for this answer.'),
    rows: { type: 'array', items: pageSchema, description: 'Those that have the text.' },
    next: { type: ['string', 'null'], description: 'The after of the next page.' },
  },
};

const doneSchema: JsonObject = {
  title: 'ReplaceDone',
  type: 'object',
  required: ['done', 'pages', 'txn', 'seq'],
  properties: {
    done: { const: true },
    pages: count('Page rules that it has changed in the draft.'),
    txn: { ...text, description: 'The transaction.' },
    seq: count('Of its last change in the log.'),
  },
};

const input = {
  type: 'object',
  required: ['find', 'with'],
  properties: {
    find: { ...text, minLength: 1, maxLength: findCharactersMax, description: 'What to look for.' },
    with: { ...text, maxLength: withCharactersMax, description: 'What takes its place.' },
    regex: {
      ...flag,
      description:
        'Whether find is a regular expression, matched in linear time; with may have its groups, ' +
        'such as $1, and $& for all of the match.',
    },
    ignore_case: { ...flag, description: 'Whether upper and lower case are the same.' },
    whole_words: { ...flag, description: 'Whether it is found as a whole word only.' },
    parts: {
      type: 'array',
      nullable: true,
      minItems: 1,
      uniqueItems: true,
      items: { ...text, enum: replacedParts },
      description:
        'Where to look: content, title (of pages of HTML and of engines), data (the other texts ' +
        'of enginedata), targets (of breadcrumbs and fetched content), headers; all by default.',
    },
    origin: { ...text, nullable: true, description: 'Only page rules of this origin.' },
    path: { ...text, nullable: true, description: 'Only those whose path begins with this.' },
    kind: { ...text, nullable: true, enum: [...ruleKinds, null] as unknown as typeof ruleKinds },
    after: { ...text, nullable: true, description: 'The next of the page before.' },
    limit: { type: 'integer', minimum: 1, maximum: listRowsDefault, nullable: true },
    pages: {
      type: 'object',
      nullable: true,
      required: [],
      minProperties: 1,
      maxProperties: replacedPagesMax,
      additionalProperties: { type: 'integer' },
      description:
        'The page rules to change by their ids, each with the seq of the report: without it, the ' +
        'call only reports.',
    },
  },
} as const;

type Input = StaticInput<typeof input>;

/**
 * userinterface.replace: finds a text in page rules and shows what would take its place. With
 * `pages`, it replaces it there in a draft, in one transaction. Refuses with `precondition_failed`,
 * naming the pages, if one of them has changed since the report, and with `invalid` for a pattern
 * without linear time, for a page that would not be valid, and outside of a draft.
 */
export const replaceInRules = defineOperation({
  name,
  scope: 'draft',
  effect: 'writes',
  inDrafts: true,
  summary:
    'Finds a text in many page rules and, with pages, replaces it there in a draft; without, it ' +
    'only reports.',
  input,
  envelope: { vk: vkMember },
  output: { oneOf: [reportSchema, doneSchema] },
  failures: ['conflict', 'precondition_failed'],
  run: (parts: RuleParts) => async (v, call) => {
    // The report shows pages.
    authorise({ name, scope: 'read' }, call.caller);
    const replaceIn = replacer(v);
    if (v.pages === undefined) {
      const data = await readInTurns(parts, call, (then, turns) =>
        report(then, replaceIn, { v, call, turns }),
      );
      return { kind: 'data', data };
    }
    if (call.draft === undefined) {
      const message =
        'This replaces in a draft only, so that nothing is live before it was compared: name one.';
      throw new Failure('invalid', message, { field: 'draft' });
    }
    return replaceInPages(parts, replaceIn, { v, call });
  },
});

/** An operation of its own on the input, or in the transaction that it leads to. */
interface Asked {
  readonly v: Input;
  readonly call: Call;
}

function familyOf(
  parts: RuleParts,
  reads: Reads,
  { v, call }: Asked,
): RecordFamily<RuleParts, Rule> {
  return familyFor(ruleFamily, { operation: 'edit', v: { ...v }, call }, reads, parts);
}

/** The page rules that have the text, in pages of a list. */
async function report(
  parts: RuleParts,
  replaceIn: ReplaceIn,
  { turns, ...asked }: Asked & { readonly turns: WorkTurns },
): Promise<JsonObject> {
  const { v } = asked;
  const { after = '', limit = listRowsDefault } = v;
  const family = familyOf(parts, parts.store, asked);
  const given = Object.entries(v).filter(([one]) => Object.hasOwn(filters, one));
  const parsed = family.list.parse?.(Object.fromEntries(given)) ?? {};
  let examined = 0;
  const page = await readPage(
    (id) => family.after(parts.store, id),
    {
      ...{ after, limit, endsAtShown: family.list.endsAtShown === true },
      examinedMax: searchedRecordsMax,
      rowOf(stored) {
        if (!family.list.matches(stored.record, parsed)) return undefined;
        examined += 1;
        const { fields, count, found } = replaceIn(stored.record);
        if (count === 0) return undefined;
        const { id, origin, path, kind } = stored.record;
        const problem = writeOf(parts, family, { stored, fields }).problem;
        const row = { ...{ id, seq: stored.seq, origin, path, kind, count }, found: [...found] };
        return (problem === undefined ? row : { ...row, problem }) as unknown as JsonObject;
      },
    },
    turns,
  );
  return { done: false, examined, ...page };
}

/** The change of one page rule, or why it cannot be made. */
function writeOf(
  parts: RuleParts,
  family: RecordFamily<RuleParts, Rule>,
  {
    stored: { record },
    fields,
  }: { readonly stored: StoredRecord<Rule>; readonly fields: JsonObject },
): { readonly data: JsonObject; readonly problem?: string } {
  const waiting = Object.keys(fields).find((one) => record._unknowns_?.[one] !== undefined);
  if (waiting !== undefined) {
    return { data: {}, problem: `Values of its ${waiting} wait in _unknowns_: mend them first.` };
  }
  try {
    const data = family.place({ current: record, sent: fields }, parts);
    const invalid = isJsonObject(data._unknowns_) ? Object.keys(data._unknowns_) : [];
    if (invalid.length === 0) return { data };
    return { data, problem: `Its ${invalid.join(' and ')} would not be valid.` };
  } catch (error) {
    return { data: {}, problem: failureFrom(error).message };
  }
}

/** A page rule that changes, as it was when the replacement was made. */
interface PlannedPage {
  readonly id: string;
  readonly seq: number;
  readonly fields: JsonObject;
}

async function replaceInPages(
  parts: RuleParts,
  replaceIn: ReplaceIn,
  asked: Asked,
): Promise<OperationResult<JsonObject>> {
  const { v, call } = asked;
  const request = keyedRequest('userinterface.replace', { ...v }, call);
  const claim = request && earlierClaim(parts.store, request);
  if (claim !== undefined) {
    return reportResult({ report: doneThen(parts.store, claim.seq), replayed: true }, request);
  }
  const planned = await plan(parts, replaceIn, asked);
  const decide = (reads: Reads, vk: Pick<LoggedDraft, 'vk'>): Decision<JsonObject> => {
    const family = familyOf(parts, reads, asked);
    requireUnchanged(reads, family, v.pages ?? {});
    const drafts = planned.map(({ id, fields }, at): LoggedDraft => {
      const stored = family.find(reads, id);
      if (stored === undefined) throw new TypeError(`${id} was found a moment ago`);
      const { data, problem } = writeOf(parts, family, { stored, fields });
      if (problem !== undefined) throw notPossible(stored.record, problem);
      return { family: 'userinterface', id, action: 'edit', data, ...(at === 0 && vk) };
    });
    return {
      drafts,
      answer: (rows) => {
        const [txn = '', seq = 0] = [rows[0]?.txn, rows.at(-1)?.seq];
        return { done: true, pages: rows.length, txn, seq };
      },
    };
  };
  const author = { by: authorOf(call), via: call.via, request };
  const written = await commitOnce(parts.store, author, { again: doneThen, decide });
  return reportResult(written, request);
}

/** The answer to an earlier request with the same vk, which wrote a seq. */
function doneThen(reads: Reads, claimed: number): JsonObject {
  const txn = reads.change(claimed)?.txn ?? '';
  const { first, last } = reads.txnSeqs(txn) ?? { first: claimed, last: claimed };
  return { done: true, pages: last - first + 1, txn, seq: last };
}

/** Replaces in the pages that a caller names. */
async function plan(
  parts: RuleParts,
  replaceIn: ReplaceIn,
  asked: Asked,
): Promise<readonly PlannedPage[]> {
  const { store } = parts;
  const pages = asked.v.pages ?? {};
  const family = familyOf(parts, store, asked);
  requireUnchanged(store, family, pages);
  const planned: PlannedPage[] = [];
  const turns = turnsOf(asked.call);
  let characters = 0;
  for (const [id, seq] of Object.entries(pages)) {
    const stored = family.find(store, id);
    // Another request may change it meanwhile: the transaction refuses that.
    const { fields, count } = stored === undefined ? nothingFound : replaceIn(stored.record);
    if (stored !== undefined && count === 0)
      throw notPossible(stored.record, 'It has no such text.');
    characters += JSON.stringify(fields).length;
    if (characters > replacedCharactersMax) throw tooLarge();
    planned.push({ id, seq, fields });
    if (turns.isOver()) await turns.next();
  }
  return planned;
}

const nothingFound = { fields: {}, count: 0 };

function tooLarge(): Failure {
  const message =
    `The changed fields have more than ${replacedCharactersMax} characters. Replace in fewer ` +
    'pages at a time.';
  return new Failure('too_large', message, { field: 'pages' });
}

function notPossible({ path, id }: Rule, problem: string): Failure {
  const message = `Nothing was replaced. ${path} (${id}): ${problem}`;
  return new Failure('invalid', message, { field: 'pages' });
}

/** Throws `precondition_failed`, naming them, if pages are not as the report showed them. */
function requireUnchanged(
  reads: Reads,
  family: RecordFamily<RuleParts, Rule>,
  pages: Readonly<Record<string, number>>,
): void {
  const changed = Object.entries(pages).flatMap(([id, seq]) => {
    const stored = family.find(reads, id);
    if (stored?.seq === seq) return [];
    return [stored === undefined ? id : `${stored.record.path} (${id})`];
  });
  if (changed.length === 0) return;
  throw new Failure(
    'precondition_failed',
    `Nothing was replaced: ${namedFirst(changed)} changed since the report. Look at a new one.`,
    { field: 'pages' },
  );
}
