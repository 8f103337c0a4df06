import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { EventSource } from 'undici';
import { startSite } from '../../harness.ts';
import { httpSource } from '../../core/outbound/sources.ts';

suite('an application behind [proxy.<name>]', () => {
  test('sends events, and gets the last id after a break', async (t) => {
    const lastIds: (string | undefined)[] = [];
    const { origin } = await httpSource(t, ({ headers }, response) => {
      lastIds.push(headers['last-event-id'] as string | undefined);
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
      // The client comes again at once, and the second answer stays open.
      if (lastIds.length === 1) response.end('retry: 0\nid: 7\nevent: news\ndata: one\n\n');
      else response.write('id: 8\nevent: news\ndata: two\ndata: lines\n\n');
    });
    const site = await startSite(t, { ini: `[proxy.app]\npath = /app/\nsource = ${origin}\n` });
    const events = new EventSource(`${site.url}/app/events`);
    t.after(() => {
      events.close();
    });
    const got: string[] = [];
    await new Promise((resolve) => {
      events.addEventListener('news', (event) => {
        const { data, lastEventId } = event as MessageEvent;
        got.push(`${lastEventId} ${String(data)}`);
        if (got.length === 2) resolve(got);
      });
    });
    assert.deepEqual(got, ['7 one', '8 two\nlines']);
    assert.deepEqual(lastIds, [undefined, '7']);
  });

  test('gets an empty query as the client sent it, also behind the cache', async (t) => {
    const asked: string[] = [];
    const { origin } = await httpSource(t, ({ url = '' }: IncomingMessage, response) => {
      asked.push(url);
      response.writeHead(200, { 'cache-control': 'max-age=60' }).end(url);
    });
    const site = await startSite(t, { ini: `[proxy.app]\npath = /app/\nsource = ${origin}\n` });
    const paths = ['/app/a?', '/app/a', '/app/a?b'];
    for (const path of [...paths, ...paths, ...paths]) {
      // Unlike fetch, this sends an empty query.
      const { port } = new URL(site.url);
      const [answer] = (await once(get({ port, path, agent: false }), 'response')) as [
        IncomingMessage,
      ];
      assert.equal(await text(answer), path);
    }
    assert.deepEqual(asked, paths);
  });

  test('answers long polls once it has news, while other requests go on', async (t) => {
    const waiting: ServerResponse[] = [];
    const arrived = Promise.withResolvers<undefined>();
    const polls = 20;
    const { origin } = await httpSource(t, ({ url = '' }: IncomingMessage, response) => {
      if (!url.startsWith('/poll')) {
        for (const one of waiting.splice(0)) one.end('news');
        response.end('told');
        return;
      }
      waiting.push(response);
      if (waiting.length === polls) arrived.resolve(undefined);
    });
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\ncache = no\n` });
    const answers = Array.from({ length: polls }, async () => {
      return (await fetch(`${site.url}/poll`)).text();
    });
    await arrived.promise;
    assert.equal(await (await fetch(`${site.url}/tell`, { method: 'POST' })).text(), 'told');
    assert.deepEqual(new Set(await Promise.all(answers)), new Set(['news']));
  });

  test('learns that a client has left a long poll', async (t) => {
    const asked = Promise.withResolvers<ServerResponse>();
    const { origin } = await httpSource(t, (_, response) => {
      asked.resolve(response);
    });
    const site = await startSite(t, { ini: `[proxy.app]\nsource = ${origin}\n` });
    const controller = new AbortController();
    const poll = fetch(`${site.url}/poll`, { signal: controller.signal });
    const closed = once(await asked.promise, 'close');
    controller.abort();
    await assert.rejects(poll);
    await closed;
  });
});
