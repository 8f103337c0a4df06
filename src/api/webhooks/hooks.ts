import { mergeFields, type Change } from '../../model/change.ts';
import { Failure } from '../../model/failure.ts';
import {
  isDelivered,
  secretRecordId,
  waitingFields,
  type Hook,
  type Node,
  type StoredHook,
} from '../../model/hook.ts';
import type { JsonObject } from '../../model/json.ts';
import { hooksMax } from './limits.ts';
import type { Log } from '../../observability/log.ts';
import { foldHook } from '../../store/log/fold.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../store/store.ts';
import { fieldsFromText } from './field-reading.ts';
import { hookProblems, placeHookFields, placeProblems } from './hook-placement.ts';
import { requireNoMistakes } from '../problems.ts';
import {
  hookEditDescription,
  hookInsertDescription,
  hookReadDescription,
  hookSwitchDescription,
} from './hooks-description.ts';
import { seqOfMoment } from '../records/moment.ts';
import { sentNames } from '../records/placement.ts';
import { authorOf, type Call, type Handler, type OperationResult } from '../operation.ts';
import {
  asksForHistory,
  editInput,
  historyView,
  idempotency,
  readInput,
  requireSeq,
  type ReadInput,
} from '../records/versions.ts';

/** What the operations on hooks stand on. */
export interface HookOperations {
  readonly store: Store;
  readonly newId: () => string;
  /** Makes the secret of a hook: `whsec_` and base64. */
  readonly newSecret: () => string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly node: Node;
  readonly log: Log;
}

const anyFields = { type: 'object', required: [], additionalProperties: true } as const;

/**
 * webhook.insert: registers a hook, and shows its secret this one time. Refuses with `invalid` (no
 * usable url or event), `too_large`, or `conflict` (the vk was used for another request).
 */
export function insertHook(parts: HookOperations): Handler<JsonObject> {
  return {
    ...hookInsertDescription,
    input: anyFields,
    run: (input, call) => {
      const v = call.isText === true ? fieldsFromText(input) : input;
      const write = idempotency('webhook.insert', input, call);
      const vk = call.vk ?? `fields:${write.requestHash}`;
      return parts.store.commit(authorOf(call), (reads): Decision<OperationResult> => {
        const first = write.earlier(reads, vk);
        // As for page rules: a vk made of the fields ends with the record.
        if (first !== undefined && (call.vk !== undefined || reads.hook(first.id) !== undefined)) {
          const stored = reads.hookAt(first.id, first.seq);
          if (stored === undefined) throw new TypeError(`${first.id} was never inserted`);
          const replayed = { stored, sent: v, vk, replayed: true };
          return { drafts: [], answer: () => written(parts, replayed) };
        }
        const data = placeHookFields(undefined, v, {});
        refuseMistakes(parts, call, { sent: v, after: data });
        requireRoomForOne(parts.store);
        const [id, secret] = [parts.newId(), parts.newSecret()];
        const claim = write.claim(vk);
        const drafts: readonly LoggedDraft[] = [
          { family: 'webhook', id, action: 'insert', data, vk: claim },
          secretDraft(id, { secret }),
        ];
        return {
          drafts,
          answer: ([change]) =>
            written(parts, {
              stored: afterChange(undefined, change),
              ...{ sent: v, vk, shown: { secret } },
            }),
        };
      });
    },
  };
}

/**
 * webhook.edit: changes the fields sent, null putting back what stands there by itself. Refuses
 * with `not_found`, `precondition_failed`, `invalid`, `too_large`, or `conflict`.
 */
export function editHook(parts: HookOperations): Handler<EditInput> {
  return {
    ...hookEditDescription,
    input: editInput,
    run: (v, call) => {
      // An answer of insert or edit, sent back whole, has more than the fields.
      const {
        unknowns: _names,
        problems: _told,
        waits: _waits,
        ...sent
      } = v as EditInput & JsonObject;
      const { id, if_seq: ifSeq, ...given } = sent as unknown as EditInput & JsonObject;
      const fields = call.isText === true ? fieldsFromText(given) : given;
      const write = idempotency('webhook.edit', { ...(v as EditInput & JsonObject) }, call);
      return changeHook(parts, call, { id, ifSeq, sent: fields, write }, (current) =>
        placeHookFields(current.hook, fields, { seq: current.seq }),
      );
    },
  };
}

/**
 * webhook.pause and webhook.resume: stop deliveries, their events being kept, and take them up
 * again. Refuses with `not_found` or `conflict`.
 */
export function switchHook(
  parts: HookOperations,
  { active }: { readonly active: boolean },
): Handler<EditInput> {
  const name = active ? 'resume' : 'pause';
  return {
    ...hookSwitchDescription(active),
    input: {
      type: 'object',
      required: ['id'],
      properties: { id: { type: 'string' }, if_seq: { type: 'integer', nullable: true } },
    },
    run: ({ id, if_seq: ifSeq }, call) => {
      const write = idempotency(`webhook.${name}`, { id }, call);
      return changeHook(parts, call, { id, ifSeq, sent: {}, write }, ({ hook }) => {
        if (active) requireNothingWaiting(hook);
        return placeHookFields(hook, { active }, {});
      });
    },
  };
}

/**
 * webhook.read: the whole record but its secret, or with `qk=history` its rows, newest first.
 * Refuses with `not_found`.
 */
export function readHook({ store }: Pick<HookOperations, 'store'>): Handler<ReadInput> {
  return {
    ...hookReadDescription,
    input: readInput,
    run: (v, call) => {
      const { id, as_of: asOf } = v;
      if (asksForHistory(call.qk, v)) {
        const history = historyView(store, 'webhook', v);
        if (history === undefined) throw noSuchHook(id);
        return { kind: 'data', data: history };
      }
      const stored =
        asOf === undefined ? store.hook(id) : store.hookAt(id, seqOfMoment(store, 'as_of', asOf));
      if (stored === undefined) throw noSuchHook(id);
      return { kind: 'data', data: hookView(stored), etag: `"${stored.seq}"` };
    },
  };
}

/**
 * A hook as its owner sees it: never its secret, which stands in a record of its own; and paused
 * where fields wait that decide what it gets.
 */
export function hookView({ hook, seq }: StoredHook): JsonObject {
  const waits = waitingFields(hook);
  const active = isDelivered(hook);
  return { ...asJson(hook), active, ...(waits.length > 0 && { waits }), seq };
}

/** Throws `conflict` for a hook that is paused since a field of it waits. */
export function requireNothingWaiting(hook: Hook): void {
  const [field] = waitingFields(hook);
  if (field === undefined) return;
  const message = `The hook is paused: its ${field} is not valid. Correct it with webhook.edit.`;
  throw new Failure('conflict', message, { field });
}

/** The current state of a hook. Throws `not_found`. */
export function existingHook(reads: Pick<Reads, 'hook'>, id: string): StoredHook {
  const stored = reads.hook(id);
  if (stored === undefined) throw noSuchHook(id);
  return stored;
}

/** The draft of a hook's first or next secret. */
export function secretDraft(
  hookId: string,
  data: { readonly secret: string; readonly until?: string },
): LoggedDraft {
  const action = data.until === undefined ? 'insert' : 'edit';
  return { family: 'secret', id: secretRecordId(hookId), action, data };
}

/** The state of a hook that a change leaves. */
function afterChange(before: StoredHook | undefined, change: Change | undefined): StoredHook {
  if (change === undefined) throw new TypeError('a draft was not logged');
  return foldHook(before, change);
}

/** Throws `conflict` where there are as many hooks as there may be. */
function requireRoomForOne(store: Pick<Store, 'counts'>): void {
  if (store.counts().hooks < hooksMax) return;
  throw new Failure('conflict', `There are ${hooksMax} hooks already, which is the limit.`);
}

/** Refuses a write with a mistake in it, where the caller wants that. */
function refuseMistakes(
  { node }: Pick<HookOperations, 'node'>,
  call: Call,
  { sent, after }: { readonly sent: JsonObject; readonly after: JsonObject },
): void {
  if (call.isStrict !== true) return;
  requireNoMistakes(call, hookProblems(after as unknown as Hook, sentNames(sent), node));
}

interface EditInput {
  id: string;
  if_seq?: number;
}

interface HookChange {
  readonly id: string;
  readonly ifSeq: number | undefined;
  /** What the answer tells about: the fields that the caller named. */
  readonly sent: JsonObject;
  readonly write: ReturnType<typeof idempotency>;
}

/** Resolves when nothing is sent any more otherwise than the hook now says. */
async function changeHook(
  parts: HookOperations,
  call: Call,
  { id, ifSeq, sent, write }: HookChange,
  change: (current: StoredHook) => JsonObject,
): Promise<OperationResult> {
  const { store } = parts;
  const outcome = await store.commit(authorOf(call), (reads): Decision<Written> => {
    const { vk } = call;
    const first = vk === undefined ? undefined : write.earlier(reads, vk);
    const then = first && reads.hookAt(first.id, first.seq);
    if (then !== undefined) {
      const replayed = { stored: then, sent, vk, replayed: true };
      return { drafts: [], answer: () => written(parts, replayed) };
    }
    const current = existingHook(reads, id);
    requireSeq(current.seq, ifSeq, call.fields['if-match']);
    const data = change(current);
    refuseMistakes(parts, call, { sent, after: mergeFields(asJson(current.hook), data) });
    if (Object.keys(data).length === 0 && vk === undefined) {
      return { drafts: [], answer: () => written(parts, { stored: current, sent, vk }) };
    }
    const claim = vk === undefined ? {} : { vk: write.claim(vk) };
    return {
      drafts: [{ family: 'webhook', id, action: 'edit', data, ...claim }],
      answer: ([logged]) => written(parts, { stored: afterChange(current, logged), sent, vk }),
    };
  });
  await store.deliveries.waitUntilApplied(outcome.data.seq);
  return outcome;
}

type Written = OperationResult & {
  readonly kind: 'data';
  readonly data: Readonly<Record<string, unknown>> & { readonly seq: number };
};

function written(
  { node, log }: Pick<HookOperations, 'node' | 'log'>,
  {
    stored,
    sent,
    vk,
    replayed = false,
    shown = {},
  }: {
    readonly stored: StoredHook;
    readonly sent: JsonObject;
    readonly vk: string | undefined;
    readonly replayed?: boolean;
    /** What the answer has besides the record. */
    readonly shown?: JsonObject;
  },
): Written {
  const { hook, seq } = stored;
  const names = sentNames(sent);
  const unknowns = names.filter((name) => Object.hasOwn(hook._unknowns_ ?? {}, name));
  const problems = hookProblems(hook, names, node);
  if (!replayed && names.includes('where')) {
    for (const { message } of placeProblems(hook, node)) log.warn({ hook: hook.id }, message);
  }
  return {
    kind: 'data',
    data: { ...hookView(stored), ...shown, unknowns, problems, seq },
    etag: `"${seq}"`,
    ...(vk !== undefined && { vk }),
    ...(replayed && { replayed }),
  };
}

/** The failure of an id that no hook has. */
export function noSuchHook(id: string): Failure {
  return new Failure('not_found', `There is no hook ${JSON.stringify(id.slice(0, 80))}.`, {
    field: 'id',
  });
}

function asJson(hook: Hook): JsonObject {
  return hook as unknown as JsonObject;
}
