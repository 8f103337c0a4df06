import assert from 'node:assert/strict';
import { test } from 'node:test';
import { httpSource } from '../../core/outbound/sources.ts';
import { startSite } from '../../harness.ts';

test('source.list counts requests, failures, durations and connections of each source', async (t) => {
  const good = await httpSource(t, (_request, response) => {
    response.end('fine');
  });
  const bad = await httpSource(t, (request, response) => {
    if (request.url === '/cut') request.socket.destroy();
    else response.writeHead(503).end();
  });
  const rule = (path: string, source: string) => ({
    ...{ path, kind: 'content.fetch', enginedata: { source: `${source}/*`, ttl: 0 } },
  });
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\ncache = 0\n',
    rules: [rule('/good/*', good.origin), rule('/bad/*', bad.origin)],
  });
  assert.deepEqual((await site.call('svc1.source.list', {})).data.rows, []);
  for (const path of ['good/a', 'good/b', 'bad/a', 'bad/cut']) {
    await (await fetch(`${site.url}/${path}`)).text();
  }
  const { rows } = (await site.call('svc1.source.list', {})).data;
  const of = (origin: string) =>
    (rows as readonly Record<string, unknown>[]).find((one) => one.origin === origin) ?? {};
  const fine = of(good.origin);
  assert.equal(fine.requests, 2);
  assert.equal(fine.failed, 0);
  assert.equal(fine.open_requests, 0);
  assert.ok(Number(fine.connections) >= 1);
  assert.ok(Number(fine.p50_ms) > 0 && Number(fine.p99_ms) >= Number(fine.p50_ms));
  assert.equal(fine.last_error, null);
  const broken = of(bad.origin);
  assert.deepEqual([broken.failed, broken.server_errors], [1, 1]);
  const { message, at } = broken.last_error as { message: string; at: string };
  assert.match(message, /source/i);
  assert.ok(Date.parse(at) > 0);
  // Too many for /metrics.
  const metrics = await fetch(`${site.url}/svc1/metrics`, { headers: { apikey: site.adminKey } });
  assert.doesNotMatch(await metrics.text(), /source_durations/);
});
