import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { apiSocketPacketsMax, openApiSocket } from '../../../src/modules/peers/api-socket.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { startSite } from '../../harness.ts';

const signal = new AbortController().signal;

suite('the websocket of another Waymark server', () => {
  test('answers calls, and sends all packets to a slow reader', async (t) => {
    const site = await startSite(t);
    const url = `${site.url}/svc1/ws`;
    const socket = await openApiSocket({ url, apikey: site.adminKey, signal });
    t.after(() => {
      socket.close();
    });
    await assert.rejects(socket.call('svc1.userinterface.read', { id: 'none' }), {
      code: 'not_found',
    });
    const name = 'svc1.userinterface.subscribe';
    const { id, data } = await socket.subscribe(name, { from_seq: 0 });
    const first = Number(data.seq);
    const pages = apiSocketPacketsMax + 200;
    for (let page = 0; page < pages; page += 50) {
      const paths = Array.from({ length: 50 }, (_, at) => `/${page + at}`);
      await Promise.all(
        paths.map((path) => site.call('svc1.userinterface.insert', { path, kind: 'content' })),
      );
    }
    const seqs: number[] = [];
    while (seqs.length < pages) {
      for (const packet of await socket.next(60_000)) {
        assert.equal(packet.id, id);
        seqs.push(Number(packet.data.seq));
      }
    }
    assert.deepEqual(
      seqs,
      seqs.map((_, at) => first + 1 + at),
    );
    assert.deepEqual(await socket.next(1), []);
  });

  test('ends with its server, and says so to every caller', async (t) => {
    const site = await startSite(t);
    const url = `${site.url}/svc1/ws`;
    const socket = await openApiSocket({ url, apikey: site.adminKey, signal });
    const ended = assert.rejects(socket.next(60_000), { code: 'unavailable' });
    await site.waymark.stop(0);
    await ended;
    await assert.rejects(socket.call('svc1.server.status', {}), { code: 'unavailable' });
  });

  for (const [status, code] of [
    [401, 'unauthenticated'],
    [404, 'bad_gateway'],
    [503, 'unavailable'],
  ] as const) {
    test(`is ${code} if the server answers ${status}`, async (t) => {
      const { origin } = await httpSource(t, (_request, response) => {
        response.writeHead(status).end();
      });
      const url = `${origin}/svc1/ws`;
      await assert.rejects(openApiSocket({ url, apikey: undefined, signal }), { code });
    });
  }
});
