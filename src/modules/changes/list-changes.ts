import type { WorkTurns } from '../../core/fair/turns.ts';
import { type Change, type Family, actions } from '../../core/log/change.ts';
import type { Reads, Store } from '../../core/log/store.ts';
import { listRowsDefault } from '../../core/operations/limits.ts';
import { type Call, defineOperation } from '../../core/operations/operation.ts';
import { authorName, byNameSchema, namedAuthor } from '../../core/operations/keys/author-name.ts';
import { seqFromMoment, seqOfMoment } from '../../core/operations/records/moment.ts';
import { readScopes } from '../../core/operations/records/revert.ts';
import { toolUseSchema } from '../../core/operations/records/schema.ts';
import { readInTurns } from '../../core/operations/turns.ts';
import type { Bounds } from '../../core/values/bounds.ts';
import type { StaticOutput } from '../../core/values/json/static.ts';
import { type Caller, hasScope } from '../../core/values/key.ts';
import { isRuleSeen, shownRows } from '../rules/bounds/rules.ts';
import { storedHooks } from '../webhooks/log/family.ts';
import { storedRules } from '../rules/log/family.ts';

/** Rows of a page of change.list. */
const changesRowsMax = 200;

/** Rows of the log that one page of change.list examines. */
const changesExaminedMax = 20_000;

/** The families in the list of changes, for callers who may read them. */
const familyNames = ['userinterface', 'webhook', 'key'] as const satisfies readonly Family[];
type ListedFamily = (typeof familyNames)[number];

type ListedChange = Change & { readonly family: ListedFamily };

interface ChangeFilters {
  by?: string;
  txn?: string;
  family?: ListedFamily;
  action?: Change['action'];
  from?: string;
  until?: string;
}

const text = { type: 'string', nullable: true } as const;

const changeList = {
  title: 'ChangeList',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: {
      type: 'array',
      items: {
        type: 'object',
        required: ['seq', 'txn', 'by', 'action', 'family', 'id', 'dtu_stored', 'fields', 'applies'],
        properties: {
          seq: { type: 'integer', description: 'Position in the log.' },
          txn: { type: 'string', description: 'Id of the transaction.' },
          by: { type: 'string', description: 'Id of the key, or name of the command.' },
          by_name: byNameSchema,
          via: toolUseSchema,
          action: { type: 'string', enum: actions },
          family: { type: 'string', enum: familyNames },
          id: { type: 'string', description: 'Id of the record.' },
          title: { type: 'string', description: 'The path of the rule, or the name.' },
          dtu_stored: { type: 'string', format: 'date-time' },
          fields: { type: 'array', items: { type: 'string' }, description: 'What it wrote.' },
          applies: { type: 'boolean', description: 'False for a row that was invalidated.' },
        },
      },
    },
    next: { type: ['integer', 'null'], description: 'The before of the next page.' },
  },
} as const;

type ChangeList = StaticOutput<typeof changeList>;
type ChangeRow = ChangeList['rows'][number];

/**
 * change.list: the rows of the log, newest first, without the values that they wrote: who changed
 * which record, when, and in which transaction. A page may have fewer rows than `limit` and still
 * have a next one, because the work for one page is limited.
 */
export const listChanges = defineOperation({
  name: 'svc1.change.list',
  scope: 'read',
  effect: 'reads',
  summary: 'The changes of page rules, and of hooks and keys for their scopes, newest first.',
  output: changeList,
  input: {
    type: 'object',
    properties: {
      before: { type: 'integer', minimum: 1, nullable: true, description: 'Rows before this seq.' },
      limit: { type: 'integer', minimum: 1, maximum: changesRowsMax, nullable: true },
      by: { ...text, description: 'Id of the key, or name of the command.' },
      txn: { ...text, description: 'Id of the transaction.' },
      from: { ...text, description: 'From this date-time or seq on.' },
      until: { ...text, description: 'Up to this date-time or seq.' },
      family: { ...text, enum: [...familyNames, null] },
      action: { ...text, enum: [...actions, null] },
    },
  },
  run:
    ({ store }: { readonly store: Store }) =>
    async ({ before, limit = listRowsDefault, ...filters }, call) => {
      const visible = familyNames.filter((name) => hasScope(call.caller, readScopes[name]));
      const matches = (change: Change): change is ListedChange =>
        visible.some((name) => name === change.family) &&
        (filters.family === undefined || change.family === filters.family) &&
        (filters.by === undefined || change.by === filters.by) &&
        (filters.action === undefined || change.action === filters.action) &&
        !('session' in change.data);
      const data = await readInTurns({ store }, call, (then, turns) =>
        readPage(then.store, { before, limit, matches, filters }, { ...call, turns }),
      );
      return { kind: 'data', data };
    },
});

/** Which rows of the log a bound key sees: those of page rules that were, and are, inside. */
function seenRows(reads: Reads, bounds: Bounds | undefined): (change: Change) => boolean {
  if (bounds === undefined) return () => true;
  const shown = new Map<string, (seq: number) => boolean>();
  return ({ family, id, seq }) => {
    if (family !== 'userinterface') return false;
    const known = shown.get(id);
    if (known !== undefined) return known(seq);
    const isSeen = isRuleSeen(reads, id, bounds) ? shownRows(reads, id, bounds) : () => false;
    shown.set(id, isSeen);
    return isSeen(seq);
  };
}

async function readPage(
  store: Store,
  {
    before,
    limit,
    matches,
    filters: { txn, from, until },
  }: {
    readonly before: number | undefined;
    readonly limit: number;
    readonly matches: (change: Change) => change is ListedChange;
    readonly filters: ChangeFilters;
  },
  { caller, turns }: Pick<Call, 'caller'> & { readonly turns: WorkTurns },
): Promise<ChangeList> {
  const range = txn === undefined ? { first: 1, last: store.seq() } : store.txnSeqs(txn);
  if (range === undefined) return { rows: [], next: null };
  const isSeen = seenRows(store, caller.bounds);
  const rows: ChangeRow[] = [];
  const last = until === undefined ? range.last : seqOfMoment(store, 'until', until);
  const first =
    from === undefined ? range.first : Math.max(range.first, seqFromMoment(store, 'from', from));
  let seq = Math.min(range.last, last, (before ?? Infinity) - 1);
  for (let examined = 1; seq >= first; seq -= 1, examined += 1) {
    const change = store.change(seq);
    if (change !== undefined && matches(change) && isSeen(change)) {
      rows.push(rowView(store, change, caller));
    }
    if (rows.length === limit || examined === changesExaminedMax) {
      return { rows, next: seq > first ? seq : null };
    }
    if (turns.isOver()) await turns.next();
  }
  return { rows, next: null };
}

function rowView(reads: Reads, change: ListedChange, caller: Caller): ChangeRow {
  const { seq, txn, by, via, action, family, id, dtu_stored, data } = change;
  const title = titleOf(reads, change);
  return {
    ...{ seq, txn, by, ...namedAuthor(reads, by, caller) },
    ...(via !== undefined && { via }),
    ...{ action, family, id },
    ...(title !== undefined && { title }),
    dtu_stored,
    fields: action === 'invalidate' ? [] : Object.keys(data).filter((field) => field !== 'hash'),
    applies: reads.inForce(seq),
  };
}

/** A readable name of the record: the path of a rule, right before or after the change. */
function titleOf(reads: Reads, { family, id, seq, data }: Change): string | undefined {
  if (typeof data.path === 'string') return data.path;
  if (family === 'userinterface') {
    return (
      reads.of(storedRules).rule(id) ??
      reads.of(storedRules).ruleAt(id, seq) ??
      reads.of(storedRules).ruleAt(id, seq - 1)
    )?.rule.path;
  }
  if (typeof data.name === 'string') return data.name;
  return family === 'webhook' ? reads.of(storedHooks).hook(id)?.hook.name : authorName(reads, id);
}
