import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import { replay, type Entry, type State } from './ledger.ts';
import { place } from './placing.ts';
import { answerGet, answerList, answerRead } from './reading.ts';
import { confirmInvalidate, reportOf, selectionRefusal } from './reverting.ts';
import { shown } from './views.ts';
import {
  refusal,
  requestText,
  type Answer,
  type Claim,
  type Request,
  type World,
} from './world.ts';

/** Names in an answer that the server has chosen. */
export interface Named {
  /** Id of the inserted record, if any. */
  readonly id: string;
  readonly txn: string;
  readonly digest: string;
  readonly vk: string;
}

/** The result of a request: its answer, and the rows that it adds to the log. */
export interface Outcome {
  readonly answer: Answer;
  readonly entries: readonly Entry[];
}

/** The answer of the model to a request; updates the state of the model. */
export function answerTo(world: World, request: Request, named: Named): Outcome {
  switch (request.a) {
    case 'insert':
      return insert(world, request, named);
    case 'edit':
      return edit(world, request);
    case 'invalidate':
      return invalidate(world, request, named);
    case 'read':
      return { answer: answerRead(world, request), entries: [] };
    case 'list':
      return { answer: answerList(world, request), entries: [] };
    case 'get':
      return { answer: answerGet(world, request), entries: [] };
  }
}

function insert(world: World, request: Request, named: Named): Outcome {
  const text = requestText(request);
  const derived = world.derived.get(text);
  const vk = request.vk ?? derived ?? named.vk;
  const claim = claimOf(world, request, vk);
  if (claim !== undefined) {
    if (claim.request !== text) return refused('conflict', 'vk');
    // A derived vk ends with its record.
    const id = claim.answer.data?.id;
    const lives = typeof id === 'string' && replay(world.rows, id) !== undefined;
    if (request.vk !== undefined || lives) return again(claim.answer);
  }
  const placed = place(undefined, request.v, {});
  if ('unusable' in placed) return refused('invalid', placed.unusable);
  if (request.vk === undefined) world.derived.set(text, vk);
  const seq = world.newest + 1;
  const { id } = named;
  const state: State = { ...placed, id, seq, insertedSeq: seq };
  const answer: Answer = { data: written(world, state, placed.told), vk };
  putClaim(world, request, { vk, answer });
  return {
    answer,
    entries: [{ seq, by: authorOf(world, request), action: 'insert', id, data: placed.data }],
  };
}

function edit(world: World, request: Request): Outcome {
  const { vk } = request;
  const text = requestText(request);
  const claim = vk === undefined ? undefined : claimOf(world, request, vk);
  if (claim !== undefined) {
    return claim.request === text ? again(claim.answer) : refused('conflict', 'vk');
  }
  const { id, if_seq: ifSeq = null, unknowns: _told, problems: _problems, ...sent } = request.v;
  if (typeof id !== 'string') return refused('invalid', 'id');
  const current = replay(world.rows, id);
  if (current === undefined) return refused('not_found', 'id');
  if (ifSeq !== null && ifSeq !== current.seq) return refused('precondition_failed', 'if_seq');
  const placed = place(current, sent, shown(world, current));
  if ('unusable' in placed) return refused('invalid', placed.unusable);
  const isNothing = Object.keys(placed.data).length === 0 && vk === undefined;
  const seq = isNothing ? current.seq : world.newest + 1;
  const answer: Answer = {
    data: written(world, { ...current, ...placed, seq }, placed.told),
    ...(vk !== undefined && { vk }),
  };
  if (vk !== undefined) putClaim(world, request, { vk, answer });
  const entry: Entry = {
    seq,
    by: authorOf(world, request),
    action: 'edit',
    id,
    data: placed.data,
  };
  return { answer, entries: isNothing ? [] : [entry] };
}

function invalidate(world: World, request: Request, named: Named): Outcome {
  const refusedSelection = selectionRefusal(world, request.v);
  if (refusedSelection !== undefined) return { answer: refusedSelection, entries: [] };
  const { confirm } = request.v;
  if (confirm === undefined) {
    return { answer: { data: reportOf(world, request.v, named.digest) }, entries: [] };
  }
  const { vk } = request;
  const text = requestText(request);
  const claim = vk === undefined ? undefined : claimOf(world, request, vk);
  if (claim !== undefined) {
    return claim.request === text ? again(claim.answer) : refused('conflict', 'vk');
  }
  const done = confirmInvalidate(world, request.v, {
    by: authorOf(world, request),
    txn: named.txn,
  });
  if (done === undefined) return refused('precondition_failed', 'confirm');
  const answer: Answer = { data: done.report, ...(vk !== undefined && { vk }) };
  // An edit without a change and without a vk stores no claim.
  if (vk !== undefined && done.entries.length > 0) {
    putClaim(world, request, { vk, answer });
  }
  return { answer, entries: done.entries };
}

/** Each author has its own vks; derived ones are shared. */
function claimName(world: World, request: Request, vk: string): string {
  const isDerived = world.derived.get(requestText(request)) === vk;
  return isDerived ? vk : `${authorOf(world, request)} ${vk}`;
}

function claimOf(world: World, request: Request, vk: string): Claim | undefined {
  const own = world.claims.get(claimName(world, request, vk));
  const shared = world.claims.get(vk);
  return own ?? (shared?.by === authorOf(world, request) ? shared : undefined);
}

function putClaim(world: World, request: Request, claim: Pick<Claim, 'vk' | 'answer'>): void {
  world.claims.set(claimName(world, request, claim.vk), {
    ...claim,
    by: authorOf(world, request),
    request: requestText(request),
  });
}

function written(world: World, state: State, told: readonly string[]): JsonObject {
  return { ...shown(world, state), unknowns: told };
}

function again(answer: Answer): Outcome {
  return { answer: { ...answer, replayed: true }, entries: [] };
}

function refused(code: string, field: string): Outcome {
  return { answer: refusal(code, field), entries: [] };
}

function authorOf({ authors }: World, { author }: Request): string {
  return authors[author % authors.length] ?? '';
}
