import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { temporaryFolder } from '../../folder.ts';
import { commit, inserted, openIn } from '../../core/log/scratch.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';
import { storedRules } from '../../../src/modules/rules/log/family.ts';

const rules = 300;
/** Kills, from the begin of a batch to some time after its end. */
const kills = 20;
const batcher = join(import.meta.dirname, 'batcher.ts');

/** Runs a batch in a process that is killed some time after it has begun; returns its last word. */
async function batchAndKill(folder: string, afterMs: number): Promise<string> {
  const child = spawn(process.execPath, [batcher, folder, String(2 * rules)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  let word = '';
  for await (const line of createInterface({ input: child.stdout })) {
    word = line;
    if (line === 'begins')
      void delay(afterMs, undefined, { ref: false }).then(() => child.kill('SIGKILL'));
  }
  await closed;
  return word;
}

test('a batch whose process is killed is written as a whole, or not at all', async (t) => {
  const folder = await temporaryFolder(t);
  const original = join(folder, 'original');
  const store = await openIn(original);
  const ids = Array.from({ length: rules }, (_, at) => `r${at}`);
  await commit(store, ...ids.map((id) => inserted(id, { path: `/${id}`, content: 'live' })));
  await store.close();

  const started = performance.now();
  assert.equal(await batchAndKill(await copyOf('whole'), 600_000), 'done');
  const wholeMs = performance.now() - started;

  const states = new Set<string>();
  for (let kill = 0; kill < kills; kill += 1) {
    const killed = await copyOf(`${kill}`);
    const word = await batchAndKill(killed, (kill / kills) * wholeMs);
    const after = await openIn(killed);
    const live = [...after.of(storedRules).recordsAfter('')];
    const batched = live.filter(({ stored }) => stored?.rule.content === 'batched').length;
    const isDone = live.length === 2 * rules;
    assert.deepEqual([live.length, batched], isDone ? [2 * rules, 2 * rules] : [rules, 0]);
    if (word === 'done') assert.ok(isDone);
    for await (const { differences } of after.part(upkeep).verify())
      assert.deepEqual(differences, []);
    states.add(isDone ? 'done' : 'undone');
    await after.close();
  }
  assert.deepEqual([...states].toSorted(), ['done', 'undone']);

  async function copyOf(name: string): Promise<string> {
    const copy = join(folder, name);
    await cp(original, copy, { recursive: true });
    return copy;
  }
});
