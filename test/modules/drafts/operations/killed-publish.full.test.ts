import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import { setTimeout as delay } from 'node:timers/promises';
import {
  publishDue,
  waitingDrafts,
} from '../../../../src/modules/drafts/operations/scheduled-publisher.ts';
import { draftStore } from '../../../../src/modules/drafts/log/draft-store.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { temporaryFolder } from '../../../folder.ts';
import { commit, edited, inserted, openIn } from '../../../core/log/scratch.ts';
import { scheduleParts } from './schedule-parts.ts';
import { upkeep } from '../../../../src/modules/upkeep/upkeep.ts';
import { storedDrafts } from '../../../../src/modules/drafts/log/family.ts';
import { storedRules } from '../../../../src/modules/rules/log/family.ts';

const rules = 600;
/** Kills of each way, from the begin of the publication to some time after its end. */
const killsEach = 50;
const publisher = join(import.meta.dirname, 'publisher.ts');

const key = { name: 'k', scopes: ['admin'], hash: 'x', created: '2026-11-01T00:00:00.000Z' };

/** A folder with live rules, and a draft that changes each of them and adds as many. */
async function writeFolder(folder: string): Promise<void> {
  const store = await openIn(folder);
  const ids = Array.from({ length: rules }, (_, at) => `r${at}`);
  await commit(store, ...ids.map((id) => inserted(id, { path: `/${id}`, content: 'live' })));
  await commit(store, { family: 'key', id: 'key', action: 'insert', data: key });
  await commit(store, { family: 'draft', id: 'draft', action: 'insert', data: { name: 'd' } });
  const draft = store.of(storedDrafts).draft('draft');
  assert.ok(draft);
  const changes = ids.flatMap((id) => [
    edited(id, { content: 'drafted' }),
    inserted(`n${id}`, { path: `/n${id}`, content: 'drafted' }),
  ]);
  await commit(draftStore(store, draft), ...changes);
  await store.close();
}

/** Publishes in a process that is killed some time after it has begun; returns that it was done. */
async function publishAndKill(folder: string, afterMs: number, way: string): Promise<boolean> {
  const child = spawn(process.execPath, [publisher, folder, way], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  const said: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    said.push(line);
    if (line === 'begins') void delay(afterMs).then(() => child.kill('SIGKILL'));
  }
  await closed;
  return said.includes('published');
}

/** The state of the draft in a folder, all or nothing of which is live. */
async function checkedState(store: Store): Promise<string> {
  const live = [...store.of(storedRules).recordsAfter('')];
  const drafted = live.filter(({ stored }) => stored?.rule.content === 'drafted').length;
  const state = store.of(storedDrafts).draft('draft')?.state ?? '';
  assert.deepEqual(
    [live.length, drafted],
    state === 'published' ? [2 * rules, 2 * rules] : [rules, 0],
  );
  for await (const { differences } of store.part(upkeep).verify())
    assert.deepEqual(differences, []);
  return state;
}

function publications(store: Store): number {
  let count = 0;
  for (let seq = 1; seq <= store.seq(); seq += 1) {
    const { family, data } = store.change(seq) ?? {};
    if (family === 'event' && data?.type === 'draft.published') count += 1;
  }
  return count;
}

for (const way of ['now', 'scheduled']) {
  const title = `a process that is killed while it publishes (${way}) has published all, or nothing`;
  test(title, { timeout: 600_000 }, async (t) => {
    const whole = await temporaryFolder(t);
    await writeFolder(whole);
    const states = new Map<string, number>();
    for (let afterMs = 0; afterMs < 600; afterMs += 600 / killsEach) {
      const folder = await temporaryFolder(t);
      await cp(whole, folder, { recursive: true });
      const isDone = await publishAndKill(folder, afterMs, way);
      const store = await openIn(folder);
      const state = await checkedState(store);
      if (isDone) assert.equal(state, 'published');
      if (way === 'scheduled') {
        // The next start does what is left, and nothing twice.
        const parts = scheduleParts({ store, newId: uuidv7, now: Date.now });
        await publishDue(parts, waitingDrafts(store));
        assert.equal(await checkedState(store), 'published');
        assert.equal(publications(store), 1);
      }
      await store.close();
      states.set(state, (states.get(state) ?? 0) + 1);
    }
    t.diagnostic(JSON.stringify(Object.fromEntries(states)));
    assert.ok((states.get('open') ?? 0) > 0, 'no process was killed before the end');
  });
}
