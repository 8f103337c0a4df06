import assert from 'node:assert/strict';
import { sameJson, type JsonObject } from '../../../../src/core/values/json/json.ts';
import { answerTo } from './answers.ts';
import { everyId, type Entry, type Row } from './ledger.ts';
import type { System } from './systems.ts';
import { asText } from './values.ts';
import type { Answer, Request, World } from './world.ts';

const uuidv7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The members of a row that the server chooses. */
type Stamps = Omit<Row, keyof Entry>;

const unstamped: Stamps = { txn: '', dtu_txn: '', dtu_stored: '' };

/**
 * Sends all requests to the system at once, and compares each answer with that of the model, in
 * their order. If several of them write, none may refer to transactions or times, which the model
 * learns later. Resolves to the answers.
 */
export async function perform(
  world: World,
  system: System,
  ...requests: readonly Request[]
): Promise<readonly Answer[]> {
  const answers = await Promise.all(requests.map((request) => system.ask(request)));
  const written: (readonly Entry[])[] = [];
  for (const [at, request] of requests.entries()) {
    const actual = answers[at] ?? {};
    const isWrite = ['insert', 'edit', 'invalidate'].includes(request.a);
    if (isWrite) world.transcript.push(lineOf(request, actual));
    const { data = {}, vk = '' } = actual;
    const { answer, entries } = answerTo(world, request, {
      id: asText(data.id),
      txn: asText(data.txn),
      digest: asText(data.digest),
      vk,
    });
    assertSame(asJson(actual), asJson(answer), () =>
      isWrite ? '' : `${lineOf(request, actual)}\n`,
    );
    requireNewIds(world, entries);
    world.rows.push(...entries.map((entry): Row => ({ ...entry, ...unstamped })));
    world.newest += entries.length;
    written.push(entries);
    if (isWrite) world.asked.push(request);
  }
  for (const entries of written) await learnStamps(world, system, entries);
  return answers;
}

/** An answer with sorted unknowns, and without its problems. */
function asJson(answer: Answer): JsonObject {
  const { data } = answer;
  if (!Array.isArray(data?.unknowns)) return { ...answer };
  const { problems: _problems, ...told } = data;
  const unknowns = (data.unknowns as readonly string[]).toSorted();
  return { ...answer, data: { ...told, unknowns } };
}

function assertSame(actual: JsonObject, expected: JsonObject, lineOf: () => string): void {
  if (sameJson(actual, expected)) return;
  const message = `${lineOf()}The answer is not the one of the model: + answer, - model`;
  assert.deepEqual(actual, expected, message);
  assert.fail(`${message}: ${JSON.stringify(actual)}, ${JSON.stringify(expected)}`);
}

/** Ids are UUIDs that sort in the order of inserts. */
function requireNewIds(world: World, entries: readonly Entry[]): void {
  for (const { action, id } of entries) {
    if (action !== 'insert') continue;
    assert.match(id, uuidv7);
    assert.ok(id > (everyId(world.rows).at(-1) ?? ''), 'ids sort by their inserts');
  }
}

/**
 * Reads the members that the server has chosen for the rows of one write: all rows share a new
 * transaction and its times, and times never go back.
 */
async function learnStamps(world: World, system: System, entries: readonly Entry[]): Promise<void> {
  let stamps: Stamps | undefined;
  for (const { id, seq } of entries) {
    const v = { id, before: seq + 1, limit: 1 };
    const { data } = await system.ask({ a: 'read', v, qk: 'history', author: 0 });
    const [row] = (data?.rows ?? []) as unknown as readonly Row[];
    assert.equal(row?.seq, seq, 'the newest row of its record');
    const { txn, dtu_txn, dtu_stored } = row;
    stamps ??= requireLater(world.rows, seq, { txn, dtu_txn, dtu_stored });
    assert.deepEqual({ txn, dtu_txn, dtu_stored }, stamps, 'rows of one transaction');
    const at = world.rows.findIndex((own) => own.seq === seq);
    const own = world.rows[at];
    if (own !== undefined) world.rows[at] = { ...own, ...stamps };
  }
}

function requireLater(rows: readonly Row[], seq: number, stamps: Stamps): Stamps {
  const before = rows.findLast((row) => row.seq < seq);
  assert.match(stamps.txn, uuidv7);
  assert.ok(!rows.some(({ txn }) => txn === stamps.txn), 'a transaction of its own');
  assert.ok(stamps.dtu_txn <= stamps.dtu_stored, 'decided before it was stored');
  assert.ok((before?.dtu_stored ?? '') <= stamps.dtu_txn, 'times never go back');
  return stamps;
}

function lineOf({ a, v, author, vk, qk, languages }: Request, { data, error }: Answer): string {
  const more = [vk && `vk ${vk}`, qk && `qk ${qk}`, languages && `in ${languages}`];
  const words = [`key ${author}: ${a}`, JSON.stringify(v), ...more.filter(Boolean)];
  const brief = data !== undefined && JSON.stringify(data).length > 600 ? '…' : data;
  return `${words.join(' ')}\n    ${JSON.stringify(error ?? brief)}`;
}
