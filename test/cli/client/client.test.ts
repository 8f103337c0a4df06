import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { createClient, isExactNumber, WaymarkError } from '../../../src/cli/client/client.ts';
import { verifyWebhook, WebhookError } from '../../../src/cli/client/webhook.ts';
import { startSite } from '../../harness.ts';

suite('the client for TypeScript', () => {
  for (const transport of ['fetch', 'websocket'] as const) {
    test(`calls operations by ${transport}`, async (t) => {
      const site = await startSite(t, { server: 'base = /way' });
      const url = `${site.url}/way`;
      const client = createClient({ url, apikey: site.adminKey, transport });
      t.after(() => {
        client.close();
      });
      const rule = { path: '/a', kind: 'content', content: 'one' } as const;
      const inserted = await client.call('userinterface.insert', rule, { vk: 'first' });
      assert.equal(inserted.vk, 'first');
      assert.equal(inserted.data.path, '/a');
      const again = await client.call('userinterface.insert', rule, { vk: 'first' });
      assert.equal(again.replayed, true);
      const { data } = await client.call('userinterface.read', { id: inserted.data.id });
      assert.equal('content' in data && data.content, 'one');
      await assert.rejects(
        client.call('userinterface.insert', { ...rule, httpresponse: 1 }, { strict: true }),
        (error) => error instanceof WaymarkError && error.code === 'invalid',
      );
      const stranger = createClient({ url, apikey: 'wmk_wrong', transport });
      await assert.rejects(stranger.call('key.list', {}), /key/i);
    });
  }

  test('keeps the digits of numbers that no double holds', async (t) => {
    const site = await startSite(t);
    for (const transport of ['fetch', 'websocket'] as const) {
      const client = createClient({ url: site.url, apikey: site.adminKey, transport });
      t.after(() => {
        client.close();
      });
      const count = JSON.rawJSON('9007199254740993');
      const event = { type: 'a.b', data: { count, transport } };
      const { data } = await client.call('event.insert', event);
      const read = await client.call('event.read', { id: data.id });
      const { count: got } = read.data.data as { readonly count: unknown };
      assert.ok(isExactNumber(got));
      assert.equal(JSON.stringify(got), '9007199254740993');
    }
  });

  test('continues a subscription where a lost connection has ended it', async (t) => {
    const site = await startSite(t);
    const sockets: WebSocket[] = [];
    class Recorded extends WebSocket {
      constructor(url: string | URL) {
        super(url);
        sockets.push(this);
      }
    }
    const client = createClient({ url: site.url, apikey: site.adminKey, WebSocket: Recorded });
    const insert = async (path: string): Promise<void> => {
      await client.call('userinterface.insert', { path, kind: 'content', content: path });
    };
    const stopping = new AbortController();
    const seen: (string | undefined)[] = [];
    const after = await client.call('server.status', {});
    const fromSeq = after.data.seq;
    await insert('/1');
    const delays: number[] = [];
    const options = {
      signal: stopping.signal,
      fromSeq,
      onReconnect: (delayMs: number) => delays.push(delayMs),
    };
    for await (const { record } of client.subscribe('userinterface.subscribe', {}, options)) {
      seen.push(record === null ? undefined : record.path);
      if (seen.length === 1) {
        sockets.at(-1)?.close();
        await insert('/2');
        await insert('/3');
      }
      if (seen.length === 3) stopping.abort();
    }
    assert.deepEqual(seen, ['/1', '/2', '/3']);
    assert.equal(delays.length, 1);
  });

  test('ends a subscription that the server refuses', async (t) => {
    const site = await startSite(t);
    const client = createClient({ url: site.url });
    const changes = client.subscribe('userinterface.subscribe', {});
    await assert.rejects(changes.next(), (error) => error instanceof WaymarkError);
  });

  test('verifies deliveries as Standard Webhooks signs them', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const other = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;
    const nowMs = 1_800_000_000_000;
    const body = '{"id":"e1","type":"sale.completed","data":{"id":"S-1"}}';
    const signature = new Webhook(secret).sign('m1', new Date(nowMs), body);
    const headers = {
      'webhook-id': 'm1',
      'webhook-timestamp': String(nowMs / 1000),
      'webhook-signature': `v1,AAAA ${signature}`,
    };
    const event = await verifyWebhook(body, headers, [other, secret], nowMs);
    assert.equal(event.type, 'sale.completed');
    await verifyWebhook(Buffer.from(body), new Headers(headers), secret, nowMs);
    const refused = [
      () => verifyWebhook(`${body} `, headers, secret, nowMs),
      () => verifyWebhook(body, headers, other, nowMs),
      () => verifyWebhook(body, headers, secret, nowMs + 301_000),
      () => verifyWebhook(body, { ...headers, 'webhook-id': 'm2' }, secret, nowMs),
      () => verifyWebhook(body, {}, secret, nowMs),
    ];
    for (const one of refused) await assert.rejects(one, WebhookError);
  });
});
