import assert from 'node:assert/strict';
import fc from 'fast-check';
import { everyId } from './ledger.ts';
import { perform } from './perform.ts';
import { origins, paths } from './reading.ts';
import { steps } from './steps.ts';
import type { OpenSystem, System } from './systems.ts';
import { command } from './walk.ts';
import { wishes } from './winner.ts';
import { newWorld, type Request, type World } from './world.ts';

/** The length and the seed of generated sequences. */
export interface Drawing {
  readonly runs: number;
  readonly stepsMax: number;
  /** The seed, which a failure prints, to repeat the same sequences. */
  readonly seed?: number | undefined;
  /** Whether callers have languages: a websocket keeps those of its upgrade. */
  readonly languages: boolean;
}

/**
 * Generates sequences, and compares a new system with the model after each step and at the end.
 * Rejects with the shortest sequence with a difference, its requests and answers, and the seed.
 */
export async function assertAgreement(
  open: OpenSystem,
  { runs, stepsMax, seed, languages }: Drawing,
): Promise<void> {
  const commands = steps.map((step) =>
    step
      .map((one) => (one.do === 'get' && !languages ? { ...one, languages: undefined } : one))
      .map(command),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.commands(commands, { maxCommands: stepsMax, size: 'max' }),
      async (sequence) => {
        await withSystem(open, async (system) => {
          const world = newWorld(system.start);
          try {
            await fc.asyncModelRun(() => ({ model: world, real: system }), sequence);
            await holdWhole(world, system, languages);
          } catch (error) {
            throw new Error(toldBriefly(world, error), { cause: error });
          }
        });
      },
    ),
    { numRuns: runs, ...(seed !== undefined && { seed }) },
  );
}

async function withSystem(open: OpenSystem, use: (system: System) => Promise<void>): Promise<void> {
  const cleanings: (() => unknown)[] = [];
  try {
    await use(await open({ after: (clean) => cleanings.unshift(clean) }));
  } finally {
    for (const clean of cleanings) await clean();
  }
}

/** Compares all visible data, now and at every seq, and verifies the store. */
async function holdWhole(world: World, system: System, languages: boolean): Promise<void> {
  const ids = everyId(world.rows);
  const ask = async (...requests: readonly Omit<Request, 'author'>[]): Promise<void> => {
    for (const one of requests) await perform(world, system, { ...one, author: 1 });
  };
  for (const id of ids) {
    await ask({ a: 'read', v: { id } }, { a: 'read', v: { id }, qk: 'history' });
    for (let seq = 0; seq <= world.newest; seq += 1)
      await ask({ a: 'read', v: { id, as_of: seq } });
  }
  for (let seq = 0; seq <= world.newest; seq += 1) await ask({ a: 'list', v: { as_of: seq } });
  await ask({ a: 'list', v: {} });
  for (const origin of origins.keys()) {
    if (origin === '*') continue;
    for (const path of paths.keys()) {
      await ask({ a: 'get', v: { origin, path } });
      if (!languages) continue;
      for (const wish of wishes.keys()) {
        await ask({ a: 'get', v: { origin, path }, languages: wish });
      }
    }
  }
  assert.deepEqual(await system.differences(), [], 'the store finds its data as its log has it');
}

/** All calls, with short names for ids and transactions, and then the difference. */
function toldBriefly({ transcript, rows, authors }: World, error: unknown): string {
  const names = new Map<string, string>([
    ...authors.map((id, at): [string, string] => [id, `<key ${at}>`]),
    ...rows.map(({ txn, seq }): [string, string] => [txn, `<txn of ${seq}>`]),
    ...everyId(rows).map((id, at): [string, string] => [id, `<record ${at + 1}>`]),
  ]);
  let text = [...transcript.slice(-40), error instanceof Error ? error.message : ''].join('\n');
  for (const [long, short] of names) if (long !== '') text = text.replaceAll(long, short);
  return text;
}
