import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { LoggedDraft } from '../../../src/core/log/store.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { largeBodiesInFlightBytesMax } from '../../../src/modules/webhooks/attempt-limiter.ts';
import { secretDraft } from '../../../src/modules/webhooks/operations/hook-family.ts';
import { createSecret } from '../../../src/modules/webhooks/sign.ts';
import { commit } from '../../core/log/scratch.ts';
import { temporaryFolder } from '../../folder.ts';
import { clocksAt, hookFields, start, startDeliverer } from './deliverer-rig.ts';

const eventBytes = 250_000;

/** The drafts of a hook for events of a type. */
function hookDrafts(type: string): readonly LoggedDraft[] {
  const id = uuidv7();
  const secret = createSecret((bytes) => Buffer.alloc(bytes, 7));
  const data = { ...hookFields, event: [type] } as unknown as JsonObject;
  return [{ family: 'webhook', id, action: 'insert', data }, secretDraft(id, { secret })];
}

function eventDraft(type: string, text: string): LoggedDraft {
  const data = { type, occurred_at: '2026-11-21T12:00:00.000Z', data: { text } };
  return { family: 'event', id: uuidv7(), action: 'insert', data };
}

test('long messages to receivers that hang take bounded memory, and delay no short one', async (t) => {
  const folder = await temporaryFolder(t);
  const rig = await startDeliverer(t, { folder, clocks: clocksAt(start) });
  rig.hangs = true;
  // They have one host, which leaves as much to others.
  const fit = Math.floor(largeBodiesInFlightBytesMax / 2 / eventBytes);
  const hooks = Array.from({ length: fit + 50 }, () => hookDrafts('large.one')).flat();
  await commit(rig.store, ...hooks, ...hookDrafts('small.one'));
  await commit(rig.store, eventDraft('large.one', 'x'.repeat(eventBytes)));
  await rig.until(fit - 5);
  await commit(rig.store, eventDraft('small.one', 'y'));
  const isShort = (body: string) => body.length < eventBytes;
  while (!rig.sent.some(isShort)) await rig.until(rig.sent.length + 1);
  await rig.settle();
  const underWay = rig.sent.reduce((sum, body) => sum + Buffer.byteLength(body), 0);
  assert.equal(rig.waiting, rig.sent.length);
  assert.ok(
    underWay <= largeBodiesInFlightBytesMax / 2 + eventBytes,
    `${underWay} bytes are in flight`,
  );
});
