import { mergeFields, type Change } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import type { JsonObject } from '../../model/json.ts';
import type { Rule, StoredRule } from '../../model/rule.ts';
import type { Decision, Reads, Store } from '../../store/store.ts';
import { rulesThen } from '../records/moment.ts';
import { authorOf, type Call, type Handler, type OperationResult } from '../operation.ts';
import { requireNoMistakes } from '../problems.ts';
import { unreadEnginedata } from './enginedata.ts';
import type { SiteAccess } from './gets.ts';
import { showPast, shownRule } from './former-secrets.ts';
import { sentNames } from '../records/placement.ts';
import { placeFields } from './placement.ts';
import { recordEtag, recordView, serverFields, type ViewConfig } from './record.ts';
import { ruleProblems, type RuleChecks } from './rule-problems.ts';
import { shadowProblems } from './shadows.ts';
import { editDescription, insertDescription, readDescription } from './rules-description.ts';
import {
  asksForHistory,
  editInput,
  historyView,
  idempotency,
  readInput,
  requireSeq,
  type ReadInput,
} from '../records/versions.ts';

/** What the operations on page rules stand on. */
export interface RuleOperations extends Pick<RuleChecks, 'engines' | 'allowPrivate'> {
  readonly store: Store;
  readonly newId: () => string;
  readonly view: ViewConfig;
  readonly site: Pick<SiteAccess, 'explain'>;
}

const anyFields = { type: 'object', required: [], additionalProperties: true } as const;

/**
 * userinterface.insert: adds a page rule. Refuses with `invalid` (no usable path or kind),
 * `too_large`, or `conflict` (the vk was used for another request).
 */
export function insertRule(parts: RuleOperations): Handler<JsonObject> {
  return {
    ...insertDescription,
    input: anyFields,
    run: async (v, call) => {
      const write = idempotency('insert', v, call);
      const vk = call.vk ?? `fields:${write.requestHash}`;
      const result = await parts.store.commit(authorOf(call), (reads): Decision<Written> => {
        const shown = (stored: StoredRule, replayed: boolean): Written => ({ stored, replayed });
        const first = earlierRule(write, reads, vk);
        // A vk made of the fields stands for the record, not for the request: it ends with the
        // record.
        if (first !== undefined && (call.vk !== undefined || reads.rule(first.rule.id))) {
          return { drafts: [], answer: () => shown(first, true) };
        }
        const { data } = placeFields({
          current: undefined,
          sent: v,
          shown: {},
          engines: parts.engines,
          isText: call.isText === true,
        });
        refuseMistakes(parts, call, { current: undefined, data, sent: v });
        const id = parts.newId();
        return {
          drafts: [
            {
              family: 'userinterface',
              id,
              action: 'insert',
              data,
              vk: write.claim(vk),
            },
          ],
          answer: ([change]) => shown(afterChange(undefined, change), false),
        };
      });
      return written(parts, call, { ...result, sent: v, vk });
    },
  };
}

/**
 * userinterface.edit: changes the fields sent, null removing one. Refuses with `not_found`,
 * `precondition_failed` (the record is not at if_seq or If-Match any more), `invalid`, `too_large`,
 * or `conflict` (the vk again).
 */
export function editRule(parts: RuleOperations): Handler<EditInput> {
  return {
    ...editDescription,
    input: editInput,
    run: async (v, call) => {
      // An answer of insert or edit, sent back whole, has lists of its own beside the fields.
      const { id, if_seq: ifSeq, ...others } = v as EditInput & JsonObject;
      const { unknowns: _names, problems: _problems, ...sent } = others;
      const write = idempotency('edit', { ...(v as EditInput & JsonObject) }, call);
      const result = await parts.store.commit(authorOf(call), (reads): Decision<Written> => {
        const shown = (stored: StoredRule, replayed: boolean): Written => ({ stored, replayed });
        const first = call.vk === undefined ? undefined : earlierRule(write, reads, call.vk);
        if (first !== undefined) return { drafts: [], answer: () => shown(first, true) };

        const current = existingRule(reads, id);
        requireSeq(current.seq, ifSeq, call.fields['if-match']);
        const { data } = placeFields({
          current: current.rule,
          sent,
          shown: { ...serverFields(current.rule, parts.view, call.origin), seq: current.seq },
          engines: parts.engines,
          isText: call.isText === true,
        });
        refuseMistakes(parts, call, { current: current.rule, data, sent });
        if (Object.keys(data).length === 0 && call.vk === undefined) {
          return { drafts: [], answer: () => shown(current, false) };
        }
        return {
          drafts: [
            {
              family: 'userinterface',
              id,
              action: 'edit',
              data,
              ...(call.vk !== undefined && { vk: write.claim(call.vk) }),
            },
          ],
          answer: ([change]) => shown(afterChange(current, change), false),
        };
      });
      return written(parts, call, { ...result, sent, vk: call.vk });
    },
  };
}

/**
 * userinterface.read: the whole record, or with `qk=history` its rows, newest first. Refuses with
 * `not_found`.
 */
export function readRule({ store, view }: RuleOperations): Handler<ReadInput> {
  return {
    ...readDescription,
    input: readInput,
    run: (v, call) => {
      if (asksForHistory(call.qk, v)) {
        const history = historyView(store, 'userinterface', v, showPast(store, call));
        if (history === undefined) throw noSuchRule(v.id);
        return { kind: 'data', data: history };
      }
      const then = rulesThen(store, v.as_of);
      const found = existingRule(then ?? store, v.id);
      const stored = then === undefined ? found : shownRule(found, showPast(store, call));
      return {
        kind: 'data',
        data: recordView(stored, view, call.origin),
        etag: recordEtag(stored, view, call.origin),
      };
    },
  };
}

interface EditInput {
  id: string;
  if_seq?: number;
}

/** The state that an earlier request with the same vk left. */
function earlierRule(
  write: ReturnType<typeof idempotency>,
  reads: Reads,
  vk: string,
): StoredRule | undefined {
  const claim = write.earlier(reads, vk);
  return claim && reads.ruleAt(claim.id, claim.seq);
}

function afterChange(before: StoredRule | undefined, change: Change | undefined): StoredRule {
  if (change === undefined) throw new TypeError('a draft was not logged');
  const fields = mergeFields(before === undefined ? {} : asFields(before), change.data);
  return {
    rule: { ...fields, id: change.id } as unknown as StoredRule['rule'],
    seq: change.seq,
    insertedSeq: before?.insertedSeq ?? change.seq,
  };
}

function asFields({ rule }: StoredRule): JsonObject {
  return rule as unknown as JsonObject;
}

/** What a write has come to. */
interface Written {
  readonly stored: StoredRule;
  /** Whether an earlier request with the same vk did it. */
  readonly replayed: boolean;
}

/** Refuses a write with a mistake in it, where the caller wants that. */
function refuseMistakes(
  parts: RuleOperations,
  call: Call,
  write: {
    readonly current: Rule | undefined;
    readonly data: JsonObject;
    readonly sent: JsonObject;
  },
): void {
  if (call.isStrict !== true) return;
  const { current, data, sent } = write;
  const after = mergeFields(current === undefined ? {} : { ...current }, data);
  requireNoMistakes(call, ruleProblems(after as unknown as Rule, sentNames(sent), checksOf(parts)));
}

function checksOf({ engines, allowPrivate, view }: RuleOperations): RuleChecks {
  return { engines, allowPrivate, base: view.base };
}

function written(
  parts: RuleOperations,
  call: Call,
  {
    stored,
    sent,
    vk,
    replayed,
  }: Written & { readonly sent: JsonObject; readonly vk: string | undefined },
): OperationResult {
  const { view } = parts;
  const { rule } = stored;
  const kept = rule._unknowns_ ?? {};
  const names = sentNames(sent);
  const unknowns = names.filter((name) => Object.hasOwn(kept, name));
  const { enginedata, kind } = rule;
  if (enginedata !== undefined && names.includes('enginedata') && kept.enginedata === undefined) {
    unknowns.push(...unreadEnginedata(enginedata, kind));
  }
  const problems = [
    ...ruleProblems(rule, names, checksOf(parts)),
    ...(replayed ? [] : shadowProblems(parts, stored, call)),
  ];
  return {
    kind: 'data',
    data: { ...recordView(stored, view, call.origin), unknowns, problems },
    etag: recordEtag(stored, view, call.origin),
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  };
}

function existingRule(reads: Pick<Reads, 'rule'>, id: string): StoredRule {
  const stored = reads.rule(id);
  if (stored === undefined) throw noSuchRule(id);
  return stored;
}

function noSuchRule(id: string): Failure {
  return new Failure('not_found', `There is no page rule ${JSON.stringify(id.slice(0, 80))}.`, {
    field: 'id',
  });
}
