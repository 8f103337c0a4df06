import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';
import { startReceiver } from '../receiver.ts';

const ini = '[webhook]\nallow_private = 127.0.0.0/8\nretry = 1h\n';
const sale = { type: 'sale.completed', data: { id: 'S-1' } };

suite('webhook.delivery and webhook.health', async () => {
  const site = await startSite({ after }, { ini });
  const receiver = await startReceiver({ after });

  async function insertHook(more: object = {}): Promise<string> {
    const fields = { event: ['sale.completed'], url: receiver.url, active: true, ...more };
    return (await site.call('svc1.webhook.insert', fields)).data.id;
  }

  /** Resolves to the attempts at a hook's messages once one of them is recorded. */
  async function attempted(id: string): Promise<{ id: string; next_attempt?: string }[]> {
    for (;;) {
      const { rows } = (await site.call('svc1.webhook.deliveries', { id })).data;
      if (rows.length > 0) return rows;
    }
  }

  async function remove(id: string): Promise<void> {
    const { digest } = (await site.call('svc1.webhook.invalidate', { id })).data;
    await site.call('svc1.webhook.invalidate', { id, confirm: digest });
  }

  test('a delivery shows its request, the answer, and no secret', async () => {
    const headers = { 'X-Shop': 'seven', Authorization: 'Bearer of-the-partner' };
    const id = await insertHook({ headers });
    receiver.answer = () => (response) => {
      response.setHeader('Set-Cookie', 'session=of-the-receiver');
      response.setHeader('X-Request', 'r-1');
      response.writeHead(422).end('no such sale');
    };
    const from = receiver.got.length;
    const { id: event } = (await site.call('svc1.event.insert', sale, { vk: randomUUID() })).data;
    const sent = (await receiver.until(from + 1)).at(-1);
    const [row] = await attempted(id);
    const { data } = await site.call('svc1.webhook.delivery', { id, delivery: event });
    assert.equal(data.id, event);
    assert.equal(data.body, sent?.bytes.toString());
    assert.equal(data.truncated, false);
    assert.equal(data.next_attempt, row?.next_attempt);
    assert.ok(Date.parse(data.next_attempt) - Date.now() > 30 * 60_000);
    const [attempt] = data.attempts;
    assert.deepEqual([attempt.method, attempt.url], ['POST', receiver.url]);
    assert.deepEqual([attempt.status, attempt.answer], [422, 'no such sale']);
    const request = new Map(
      attempt.headers.map(({ name, value }: { name: string; value: string }) => [name, value]),
    );
    assert.equal(request.get('X-Shop'), 'seven');
    assert.equal(request.get('webhook-id'), sent?.headers['webhook-id']);
    for (const name of ['Authorization', 'webhook-signature', 'X-Service-HMAC'])
      assert.equal(request.get(name), '***', name);
    assert.match(JSON.stringify(attempt.answer_headers), /"X-Request","value":"r-1"/);
    assert.doesNotMatch(JSON.stringify(data), /of-the-partner|of-the-receiver/);
    await site.call('svc1.webhook.edit', { id, url: `${receiver.url}/new` });
    const later = await site.call('svc1.webhook.delivery', { id, delivery: '1' });
    assert.equal(later.data.attempts[0].url, receiver.url, 'the URL of the time of the attempt');
    const { rows } = (await site.call('svc1.webhook.health', { id })).data;
    assert.deepEqual([rows[0].state, rows[0].seq, rows[0].waiting], ['failing', 1, 1]);
    assert.equal(rows[0].last.status, 422);
    await remove(id);
  });

  test('a batch shows the events that it has', async () => {
    receiver.answer = () => 200;
    const frequency = { mode: 'batch', every: '1s', max_events: 2 };
    const id = await insertHook({ frequency });
    await site.call('svc1.event.insert', sale, { vk: randomUUID() });
    await site.call('svc1.event.insert', sale, { vk: randomUUID() });
    const [row] = await attempted(id);
    const { data } = await site.call('svc1.webhook.delivery', { id, delivery: row?.id ?? '' });
    assert.equal(JSON.parse(data.body).batch.length, 2);
    assert.deepEqual([data.seq, data.last_seq], [1, 2]);
    const none = await site.call('svc1.webhook.delivery', { id, delivery: '9' });
    assert.equal(none.error?.code, 'not_found');
    await remove(id);
  });

  test('a key of one hook reads its deliveries and nothing else', async () => {
    receiver.answer = () => 200;
    const [id, other] = [await insertHook({ name: 'partner' }), await insertHook()];
    await site.call('svc1.event.insert', sale, { vk: randomUUID() });
    await attempted(id);
    const made = { name: 'partner', scopes: [`verify:${id}`] };
    const { key: apikey } = (await site.call('svc1.key.insert', made)).data;
    const codeOf = async (name: string, v: object) =>
      (await site.call(`svc1.${name}`, v, { apikey })).error?.code;
    const own = await site.call('svc1.webhook.deliveries', { id }, { apikey });
    assert.equal(own.data.rows.length, 1);
    assert.equal(await codeOf('webhook.delivery', { id, delivery: '1' }), undefined);
    assert.equal(await codeOf('webhook.deliveries', { id: other }), 'forbidden');
    assert.equal(await codeOf('webhook.delivery', { id: other, delivery: '1' }), 'forbidden');
    for (const [name, v] of [
      ['webhook.read', { id }],
      ['webhook.list', {}],
      ['webhook.health', {}],
      ['webhook.replay', { id, delivery: '1' }],
      ['webhook.test', { id }],
      ['webhook.edit', { id, url: 'https://evil.example/' }],
      ['event.list', {}],
      ['userinterface.list', {}],
      ['change.list', {}],
      ['key.list', {}],
    ] as const)
      assert.equal(await codeOf(name, v), 'forbidden', name);
    const wrong = await site.call('svc1.key.insert', { name: 'x', scopes: ['verify:*'] });
    assert.equal(wrong.error?.code, 'invalid');
    await remove(id);
    await remove(other);
  });
});
