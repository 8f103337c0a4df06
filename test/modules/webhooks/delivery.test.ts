import { randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { suite, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { startSite, type TestSite } from '../../harness.ts';
import { transports } from '../status/transports.ts';
import { startReceiver } from './receiver.ts';
import { local, sale, startRig, type Row } from './rig.ts';

/** Deletes a hook. */
async function deleteHook(site: TestSite, id: string): Promise<void> {
  const { data } = await site.call('svc1.webhook.invalidate', { id });
  await site.call('svc1.webhook.invalidate', { id, confirm: data.digest });
}

// Each test has its own site, and waits most of its time.
suite('a delivery', { concurrency: 4 }, () => {
  test('comes from [webhook] local_address, which server.status shows', async (t) => {
    const from = '127.0.0.9';
    const { site, receiver, insertEvent } = await startRig(
      t,
      {},
      `${local}local_address = ${from}\n`,
    );
    const peers: unknown[] = [];
    receiver.answer = () => (response, request) => {
      peers.push(request.socket.remoteAddress);
      response.end();
    };
    await insertEvent();
    await receiver.until(1);
    assert.deepEqual(peers, [from]);
    const { data } = await site.call('svc1.server.status', {});
    assert.equal(data.webhooks.local_address, from);
  });

  test('arrives at each subscribed hook, signed, with its own seq', async (t) => {
    const { site, receiver, insertEvent } = await startRig(t, { event: ['email.requested'] });
    const { url } = receiver;
    await insertEvent();
    const { data: hook } = await site.call('svc1.webhook.insert', {
      event: ['sale.completed'],
      url,
      headers: { 'X-Shop': 'harbour' },
    });
    const first = await insertEvent({ ...sale, counter: '7' });
    const second = await insertEvent();
    const got = await receiver.until(2);
    const bodies = got.map(({ body }) => body).toSorted((one, other) => one.seq - other.seq);
    assert.deepEqual(
      bodies.map(({ id, type, seq, counter, data }) => ({ id, type, seq, counter, data })),
      [
        { ...sale, id: first, seq: 1, counter: '7' },
        { ...sale, id: second, seq: 2, counter: null },
      ],
    );
    for (const { bytes, headers, body } of got) {
      assert.equal(headers['webhook-id'], body.id);
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(headers['x-shop'], 'harbour');
      new Webhook(hook.secret).verify(bytes, headers as Record<string, string>);
    }
  });

  test('that failed is retried with the same id and body', async (t) => {
    const { receiver, id, insertEvent, attempts } = await startRig(t);
    receiver.answer = () => (receiver.got.length < 3 ? 503 : 204);
    const event = await insertEvent();
    const [one, ...others] = await receiver.until(3);
    for (const again of others) {
      assert.deepEqual(again.bytes, one?.bytes);
      assert.equal(again.headers['webhook-id'], event);
    }
    assert.ok(id);
    const rows = await attempts(3);
    assert.deepEqual(
      rows.map(({ seq, attempt, status, outcome }) => [seq, attempt, status, outcome]),
      [
        [1, 1, 503, 'failed'],
        [1, 2, 503, 'failed'],
        [1, 3, 204, 'completed'],
      ],
    );
  });

  for (const [transport, open] of Object.entries(transports)) {
    test(`is retried on the schedule of its hook, set over ${transport}`, async (t) => {
      const { site, receiver, id, insertEvent, attempts } = await startRig(t);
      const call = await open(site);
      const retry = ['10m', '2h'];
      const edited = await call('svc1.webhook.edit', { id, retry });
      assert.deepEqual([edited.data.retry, edited.data.problems], [retry, []]);
      receiver.answer = () => 500;
      await insertEvent();
      await attempts(1);
      const { data } = await call('svc1.webhook.deliveries', { id });
      const { at, ms, next_attempt: next } = data.rows[0];
      const waitMs = Date.parse(next) - Date.parse(at) - ms;
      assert.ok(waitMs >= 479_000 && waitMs <= 721_000, `${waitMs} ms, 10 min by 20 %`);

      receiver.answer = () => (receiver.got.length < 3 ? 500 : 200);
      await call('svc1.webhook.edit', { id, retry: null });
      await call('svc1.webhook.replay', { id, delivery: '1' });
      // The schedule of the ini file retries after 1 ms.
      assert.equal((await attempts(3)).at(-1)?.outcome, 'completed');
    });
  }

  test('that gets 404 is completed', async (t) => {
    const { receiver, insertEvent, attempts } = await startRig(t);
    receiver.answer = () => 404;
    await insertEvent();
    const [row] = await attempts(1);
    assert.deepEqual([row?.status, row?.outcome], [404, 'completed_404']);
  });

  // "A hook is considered completed when the receiver answers with an HTTP status in 200-299, or
  // 404, or when the retry limit is exhausted" (6.4).
  test('that gets 410 pauses the hook, which keeps the message', async (t) => {
    const { site, receiver, id, insertEvent, attempts } = await startRig(t, {
      order: true,
      retry_limit: 1,
    });
    receiver.answer = () => 410;
    await Promise.all([
      insertEvent(),
      insertEvent({ ...sale, counter: '2' }),
      insertEvent({ ...sale, counter: '3' }),
    ]);
    const [row] = await attempts(1);
    assert.deepEqual([row?.status, row?.outcome], [410, 'failed']);
    for (;;) {
      const { data } = await site.call('svc1.webhook.read', { id });
      if (data.active === false) break;
    }
    const { data } = await site.call('svc1.webhook.read', { id }, { qk: 'history' });
    assert.deepEqual(data.rows[0].data, { id, active: false });
    assert.equal(receiver.got.length, 1);
    const { queued, waiting } = (await site.call('svc1.webhook.deliveries', { id })).data;
    assert.deepEqual([queued, waiting], [2, 1]);
    receiver.answer = () => 200;
    await site.call('svc1.webhook.resume', { id });
    const got = await receiver.until(4);
    assert.deepEqual(
      got.map(({ body }) => body.seq),
      [1, 1, 2, 3],
    );
    assert.deepEqual(got[1]?.bytes, got[0]?.bytes);
    const [, again] = await attempts(2);
    assert.deepEqual([again?.seq, again?.attempt, again?.outcome], [1, 2, 'completed']);
  });

  test('that gets 410 from the former URL does not pause the hook', async (t) => {
    const { site, receiver, id, insertEvent, attempts } = await startRig(t, { event: [sale.type] });
    const held = Promise.withResolvers<ServerResponse>();
    receiver.answer = ({ path }) => (path === '/hook' ? held.resolve : 200);
    await insertEvent();
    const response = await held.promise;
    const url = `${receiver.url}/other`;
    const edited = site.call('svc1.webhook.edit', { id, url });
    while ((await site.call('svc1.webhook.read', { id })).data.url !== url);
    response.writeHead(410).end();
    await Promise.all([edited, attempts(1)]);
    assert.equal((await site.call('svc1.webhook.read', { id })).data.active, true);
    await insertEvent();
    assert.equal((await receiver.until(2))[1]?.path, '/hook/other');
  });

  test('is given up after its last attempt, which is an event for other hooks', async (t) => {
    const { site, receiver, id, insertEvent, attempts } = await startRig(t, { retry_limit: 2 });
    const other = await startReceiver(t);
    await site.call('svc1.webhook.insert', { event: ['error.detected'], url: other.url });
    receiver.answer = () => (response) => response.writeHead(500).end('broken');
    await insertEvent();
    const rows = await attempts(2);
    assert.deepEqual(
      rows.map(({ outcome, answer }) => [outcome, answer]),
      [
        ['failed', 'broken'],
        ['exhausted', 'broken'],
      ],
    );
    const [error] = await other.until(1);
    assert.equal(error?.body.data.id, id);
    assert.match(error.body.data.message, /given up after 2 attempts: status 500/);
    const { rows: listed } = (
      await site.call('svc1.webhook.deliveries', { id, outcome: 'exhausted' })
    ).data;
    assert.deepEqual(
      listed.map(({ seq }: Row) => seq),
      [1],
    );
    assert.equal(receiver.got.length, 2, 'the hook does not get the event about itself');
  });

  test('to a refused address says so', async (t) => {
    const { receiver, insertEvent, attempts } = await startRig(
      t,
      { retry_limit: 1 },
      '[webhook]\n',
    );
    await insertEvent();
    const [row] = await attempts(1);
    assert.deepEqual([row?.outcome, row?.status], ['exhausted', undefined]);
    assert.match(
      row?.error ?? '',
      /address is not allowed\. .* allow_private, such as 127\.0\.0\.0\/8: in \[webhook\]/,
    );
    assert.equal(receiver.got.length, 0);
  });

  test('of an ordered hook waits until the previous one has ended', async (t) => {
    const { receiver, insertEvent } = await startRig(t, { order: true });
    const failing = new Set([1, 3]);
    receiver.answer = ({ body }) => (failing.delete(body.seq) ? 500 : 200);
    for (let n = 0; n < 4; n += 1) await insertEvent();
    const seqs = (await receiver.until(6)).map(({ body }) => body.seq);
    assert.deepEqual(seqs, [1, 1, 2, 3, 3, 4]);
  });

  test('of a paused hook is kept until it is resumed', async (t) => {
    const { site, receiver, id, insertEvent } = await startRig(t);
    await site.call('svc1.webhook.pause', { id });
    await insertEvent();
    const other = { event: ['sale.completed'], url: `${receiver.url}/other` };
    await site.call('svc1.webhook.insert', other);
    await insertEvent();
    const [first] = await receiver.until(1);
    assert.equal(first?.path, '/hook/other');
    await site.call('svc1.webhook.resume', { id });
    const got = await receiver.until(3);
    const resumed = got.filter(({ path }) => path === '/hook').map(({ body }) => body.seq);
    assert.deepEqual(resumed.toSorted(), [1, 2]);
  });

  for (const [what, end] of [
    ['deleted', deleteHook],
    ['paused', (site: TestSite, id: string) => site.call('svc1.webhook.pause', { id })],
    [
      'sent elsewhere',
      (site: TestSite, id: string) =>
        site.call('svc1.webhook.edit', { id, url: 'http://127.0.0.1:1/' }),
    ],
  ] as const) {
    test(`does not begin once the answer says that the hook is ${what}`, async (t) => {
      const { site, receiver, id, insertEvent } = await startRig(t);
      const open: ServerResponse[] = [];
      receiver.answer = () => (response) => open.push(response);
      for (let n = 0; n < 8; n += 1) await insertEvent();
      await receiver.until(1);
      await end(site, id);
      const count = receiver.got.length;
      assert.ok(
        open.every(({ socket }) => socket?.destroyed !== false),
        'none is in flight',
      );
      const other = await startReceiver(t);
      await site.call('svc1.webhook.insert', { event: ['sale.completed'], url: other.url });
      await insertEvent();
      await other.until(1);
      assert.equal(receiver.got.length, count);
    });
  }

  test('is signed with both secrets for a day after a rotation', async (t) => {
    const site = await startSite(t, { ini: local });
    const receiver = await startReceiver(t);
    const hook = { event: '*', url: receiver.url };
    const { id, secret } = (await site.call('svc1.webhook.insert', hook)).data;
    const { secret: next } = (await site.call('svc1.webhook.rotate', { id })).data;
    await site.call('svc1.event.insert', sale, { vk: randomUUID() });
    const got = await receiver.until(1);
    for (const { bytes, headers } of got) {
      for (const one of [secret, next]) {
        new Webhook(one).verify(bytes, headers as Record<string, string>);
      }
    }
  });

  test('of a test event takes the way of all others', async (t) => {
    const { site, receiver, id, attempts } = await startRig(t, { event: ['email.requested'] });
    const { id: event } = (await site.call('svc1.webhook.test', { id })).data;
    const [got] = await receiver.until(1);
    assert.deepEqual([got?.body.id, got?.body.type, got?.body.seq], [event, 'webhook.test', 1]);
    assert.equal((await attempts(1))[0]?.outcome, 'completed');
  });
});

test('is counted in the metrics', async (t) => {
  const { site, receiver, id, insertEvent, attempts } = await startRig(
    t,
    {},
    local.replace('1ms', '1h'),
  );
  receiver.answer = ({ body }) => (body.seq === 1 ? 500 : 200);
  await insertEvent();
  await insertEvent();
  await attempts(2);
  const headers = { apikey: site.adminKey };
  const metrics = async () => (await fetch(`${site.url}/svc1/metrics`, { headers })).text();
  const expected = [
    new RegExp(`^waymark_webhook_pending\\{hook="${id}"\\} 1$`, 'm'),
    new RegExp(`^waymark_webhook_oldest_seconds\\{hook="${id}"\\} \\d+(?:\\.\\d+)?$`, 'm'),
    /^waymark_webhook_attempts_total\{outcome="completed"\} 1$/m,
    /^waymark_webhook_attempts_total\{outcome="failed"\} 1$/m,
    /^waymark_webhook_latency_seconds_count 1$/m,
  ];
  let text = await metrics();
  // An attempt is counted after it is recorded.
  while (!text.includes('waymark_webhook_attempt_duration_seconds_count 2')) text = await metrics();
  for (const line of expected) assert.match(text, line);
});

suite('deliveries of many events', () => {
  test('continue while one receiver does not respond', async (t) => {
    const { site, receiver, insertEvent } = await startRig(t);
    const silent = await startReceiver(t);
    silent.answer = () => () => undefined;
    await site.call('svc1.webhook.insert', { event: '*', url: silent.url });
    for (let n = 0; n < 40; n += 1) await insertEvent();
    assert.equal(new Set((await receiver.until(40)).map(({ body }) => body.seq)).size, 40);
    assert.ok(silent.got.length < 40);
  });

  test('of a bulk edit have an event for each change', async (t) => {
    const { site, receiver } = await startRig(t, { event: ['record.changed'] });
    const socket = await site.socket(site.adminKey);
    const paths = Array.from({ length: 300 }, (_, n) => `/page/${n}`);
    await Promise.all(
      paths.map((path) => socket.call('svc1.userinterface.insert', { path, content: 'x' })),
    );
    const got = await receiver.until(300);
    const seqs = got.map(({ body }) => Number(body.seq)).toSorted((one, other) => one - other);
    assert.deepEqual(
      seqs,
      Array.from({ length: 300 }, (_, n) => n + 1),
    );
    assert.ok(got.every(({ body }) => body.data.table === 'userinterface'));
  });
});
