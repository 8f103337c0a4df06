import fc from 'fast-check';
import type { Json, JsonObject } from '../../../../src/core/values/json/json.ts';
import { everyId, replay } from './ledger.ts';
import { perform } from './perform.ts';
import type { Moment, Pick, Selector, Step, Vk, Write } from './steps.ts';
import type { System } from './systems.ts';
import { shown } from './views.ts';
import type { Request, World } from './world.ts';

/** Runs a step in the system and in the model. Throws if they differ. */
export async function take(step: Step, world: World, system: System): Promise<void> {
  const ask = (...requests: readonly Request[]) => perform(world, system, ...requests);
  switch (step.do) {
    case 'insert':
    case 'edit':
    case 'send back':
    case 'again':
      await ask(...writing(world, step, step.author));
      return;
    case 'at once':
      await ask(
        ...step.writes
          .flatMap((write) => writing(world, write, step.author))
          .filter(({ a }) => a !== 'invalidate')
          .map((request) => ({ ...request, author: step.author })),
      );
      return;
    case 'invalidate':
    case 'undo':
      await revert(step, world, system);
      return;
    case 'add a key':
      await system.addKey();
      world.newest += 1;
      return;
    case 'read':
      await ask(reading(world, step));
      return;
    case 'history':
      await readPages(step, world, system);
      return;
    case 'list':
      await listPages(step, world, system);
      return;
    case 'get': {
      const { origin, path, languages } = step;
      const v = { origin, path, ...asOf(world, step.asOf) };
      await ask({ a: 'get', v, author: 0, ...(languages !== undefined && { languages }) });
    }
  }
}

function picked<T>(list: readonly T[], at: Pick): T | undefined {
  return list.toReversed()[at % Math.max(1, list.length)];
}

/** Mostly an existing record, sometimes a deleted one, rarely an unknown id. */
function recordId({ rows }: World, at: Pick): string {
  if (at === 11) return 'anonymous';
  const ids = everyId(rows);
  const living = ids.filter((id) => replay(rows, id) !== undefined);
  return picked(at < 9 && living.length > 0 ? living : ids, at) ?? 'anonymous';
}

/** The requests of a write; none if it refers to something that does not exist. */
function writing(world: World, write: Write, author: number): readonly Request[] {
  switch (write.do) {
    case 'insert':
      return [{ a: 'insert', v: write.v, author, ...vkOf(world, write.vk) }];
    case 'edit': {
      const id = recordId(world, write.record);
      const seq = replay(world.rows, id)?.seq ?? 1;
      const ifSeq = { right: { if_seq: seq }, wrong: { if_seq: seq - 1 }, null: { if_seq: null } };
      const more = write.ifSeq === 'none' ? {} : ifSeq[write.ifSeq];
      return [{ a: 'edit', v: { ...write.v, id, ...more }, author, ...vkOf(world, write.vk) }];
    }
    case 'send back': {
      const row = picked(world.rows, write.row);
      const then = world.rows.filter(({ seq }) => seq <= (row?.seq ?? 0));
      const state = row === undefined ? undefined : replay(then, row.id);
      if (state === undefined) return [];
      const read = { ...shown(world, state), ...(write.whole && { unknowns: ['lang'] }) };
      return [{ a: 'edit', v: { ...read, ...write.v, id: state.id }, author }];
    }
    case 'again': {
      const request = picked(world.asked, write.asked);
      return request === undefined ? [] : [{ ...request, author }];
    }
  }
}

function vkOf(world: World, vk: Vk): { readonly vk?: string } {
  if (vk === 'none') return {};
  if ('text' in vk) return { vk: vk.text };
  const earlier = picked(
    [...world.claims.values()].map((claim) => claim.vk),
    vk.earlier,
  );
  return earlier === undefined ? {} : { vk: earlier };
}

/** A dry run, and its confirmation. */
async function revert(
  { do: what, rows, confirm, vk, author }: Extract<Step, { readonly confirm: string }>,
  world: World,
  system: System,
): Promise<void> {
  const selection = what === 'undo' ? undoing(world, rows) : selecting(world, rows);
  if (selection === undefined) return;
  const request: Request = { a: 'invalidate', v: selection, author };
  const stale = [...world.digests.values()].at(-1);
  const [dry] = await perform(world, system, { ...request, ...vkOf(world, vk) });
  if (confirm === 'no') return;
  const digests = { right: dry?.data?.digest, stale, wrong: 'no digest' };
  const v = { ...selection, confirm: digests[confirm] ?? 'none yet' };
  await perform(world, system, { ...request, v, ...vkOf(world, vk) });
}

/** The transaction of an invalidate. */
function undoing(world: World, { txn }: Selector): JsonObject | undefined {
  const row = picked(
    world.rows.filter(({ action }) => action === 'invalidate'),
    txn,
  );
  return row && { txn: row.txn };
}

function selecting(world: World, { by, record, txn, writer, from, until }: Selector): JsonObject {
  const all: JsonObject = {
    id: recordId(world, record),
    txn: picked(world.rows, txn)?.txn ?? 'none',
    by: world.authors[writer] ?? 'anonymous',
    from: momentOf(world, from),
    until: momentOf(world, until),
  };
  return Object.fromEntries(by.map((name) => [name, all[name] ?? null]));
}

function momentOf(world: World, { row: at, as }: Moment): string {
  const row = picked(world.rows, at);
  if (as === 'none') return at % 2 === 0 ? 'yesterday' : String(world.newest + 1);
  if (row === undefined) return '0';
  const ms = Date.parse(row.dtu_stored);
  const written = (time: number): string => new Date(time).toISOString();
  const moments = {
    seq: String(row.seq),
    'seq before': String(row.seq - 1),
    time: row.dtu_stored,
    'just before': written(ms - 1),
    'just after': written(ms + 1),
    'other zone': written(ms + 7_200_000).replace('Z', '+02:00'),
  };
  return moments[as];
}

function asOf(world: World, moment: Moment | null | undefined): { readonly as_of?: Json } {
  if (moment === undefined) return {};
  return { as_of: moment === null ? null : momentOf(world, moment) };
}

function reading(
  world: World,
  { record, asOf: moment }: Extract<Step, { readonly do: 'read' }>,
): Request {
  return { a: 'read', v: { id: recordId(world, record), ...asOf(world, moment) }, author: 0 };
}

/** Reads a history from its newest row, or from a moment, to its end, page by page. */
async function readPages(
  { record, limit, before, qk }: Extract<Step, { readonly do: 'history' }>,
  world: World,
  system: System,
): Promise<void> {
  const id = recordId(world, record);
  let start: Json = before === undefined ? null : (picked(world.rows, before.row)?.seq ?? 1);
  for (;;) {
    const v = { id, limit, before: start };
    const [answer] = await perform(world, system, { a: 'read', v, qk, author: 0 });
    const rows = (answer?.data?.rows ?? []) as readonly { readonly seq: number }[];
    const last = rows.at(-1);
    if (last === undefined) return;
    start = last.seq;
  }
}

/** Reads a list to its end, page by page. */
async function listPages(
  { filters, asOf: moment }: Extract<Step, { readonly do: 'list' }>,
  world: World,
  system: System,
): Promise<void> {
  const given = { ...filters, ...asOf(world, moment) };
  let next: Json = null;
  do {
    const v: JsonObject = next === null ? given : { ...given, after: next };
    const [answer] = await perform(world, system, { a: 'list', v, author: 0 });
    next = answer?.data?.next ?? null;
  } while (next !== null);
}

/** A step as a command of fast-check, which prints it as it was generated. */
export function command(step: Step): fc.AsyncCommand<World, System> {
  return {
    check: () => true,
    run: (world, system) => take(step, world, system),
    toString: () => JSON.stringify(step),
  };
}
