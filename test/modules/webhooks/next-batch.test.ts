import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { transports } from '../status/transports.ts';
import type { Answer } from '../../harness.ts';
import { startRig } from './rig.ts';

/** No receiver gets these batches within the test. */
const daily = { mode: 'batch', every: '1d' };

for (const [transport, open] of Object.entries(transports)) {
  suite(`the next batch of a hook over ${transport}`, () => {
    test('leaves an interval after its oldest event', async (t) => {
      const rig = await startRig(t, { frequency: daily });
      const call = await open(rig.site);
      const { id } = rig;
      const nextBatch = async (): Promise<readonly (string | undefined)[]> => {
        const answers = [
          (await call('svc1.webhook.read', { id })).data,
          (await call('svc1.webhook.list', {})).data.rows[0],
          (await call('svc1.webhook.health', { id })).data.rows[0],
        ];
        return answers.map((answer: Answer['data']) => answer.next_batch);
      };
      assert.deepEqual(await nextBatch(), [undefined, undefined, undefined], 'without an event');
      await rig.insertEvent();
      let stored: string | undefined;
      while (stored === undefined) {
        stored = (await call('svc1.webhook.health', { id })).data.rows[0].oldest;
      }
      const expected = new Date(Date.parse(stored) + 86_400_000).toISOString();
      assert.deepEqual(await nextBatch(), [expected, expected, expected]);
      await rig.insertEvent();
      assert.deepEqual(await nextBatch(), [expected, expected, expected], 'with a later event');

      await call('svc1.webhook.pause', { id });
      assert.deepEqual(await nextBatch(), [undefined, undefined, undefined], 'of a paused hook');
      const resumed = (await call('svc1.webhook.resume', { id })).data;
      assert.equal(resumed.next_batch, expected);
      const back = await call('svc1.webhook.edit', { ...resumed, name: 'back' });
      assert.deepEqual([back.data.unknowns, back.data.next_batch], [[], expected]);
      const { data: past } = await call('svc1.webhook.read', { id, as_of: String(resumed.seq) });
      assert.equal(past.next_batch, undefined, 'of a past version');
      await call('svc1.webhook.edit', { id, frequency: null });
      assert.deepEqual(await nextBatch(), [undefined, undefined, undefined], 'without batches');
    });

    test('leaves at the next time of the day', async (t) => {
      const frequency = { mode: 'batch', at: ['02:00', '14:30'], zone: 'Asia/Kolkata' };
      const rig = await startRig(t, { frequency });
      const call = await open(rig.site);
      const before = Date.now();
      const { data } = await call('svc1.webhook.read', { id: rig.id });
      const at = Date.parse(data.next_batch);
      assert.ok(at > before && at <= before + 86_400_000, data.next_batch);
      // 02:00 and 14:30 in Kolkata, which is 5 h 30 min ahead.
      assert.match(data.next_batch, /T(?:20:30|09:00):00\.000Z$/);
    });

    test('leaves after the batch that waits for its next attempt, if the hook has an order', async (t) => {
      const rig = await startRig(t, {
        ...{ order: true, retry: ['2h'], frequency: { ...daily, max_events: 1 } },
      });
      const call = await open(rig.site);
      rig.receiver.answer = () => 500;
      await rig.insertEvent();
      const [failed] = await rig.attempts(1);
      const { data } = await call('svc1.webhook.read', { id: rig.id });
      assert.ok(data.next_batch);
      const { data: list } = await call('svc1.webhook.deliveries', { id: rig.id });
      assert.equal(failed?.outcome, 'failed');
      assert.equal(data.next_batch, list.rows[0].next_attempt);
    });
  });
}

test('the ETag of a hook follows its next batch', async (t) => {
  const rig = await startRig(t, { frequency: daily });
  const etagOf = async (): Promise<string | null> => {
    const url = `${rig.site.url}/svc1/webhook/read?_v.id=${rig.id}`;
    return (await fetch(url, { headers: { apikey: rig.site.adminKey } })).headers.get('etag');
  };
  const before = await etagOf();
  assert.ok(before);
  await rig.insertEvent();
  let after = before;
  while (after === before) after = (await etagOf()) ?? '';
  assert.ok(after.startsWith(before.slice(0, -1)), 'the version is the same');
});
