import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MemoryUse } from '../../../src/core/report/memory-use.ts';
import { startSite } from '../../harness.ts';

test('server.status and the metrics have the size of each cache in memory', async (t) => {
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/a.html': '<p>a file</p>' },
    rules: [{ path: '/page.html', kind: 'content', content: 'a page' }],
  });
  const memory = async (): Promise<MemoryUse> =>
    (await site.call('server.status', {})).data.memory as MemoryUse;
  const entriesOf = ({ caches }: MemoryUse, name: string): number | undefined =>
    caches.find((cache) => cache.name === name)?.entries;
  const before = await memory();
  assert.ok(before.resident_bytes > before.heap_bytes && before.heap_bytes > 0);
  assert.equal(entriesOf(before, 'files'), 0);
  assert.equal(entriesOf(before, 'rules'), 0);
  for (const path of ['/a.html', '/page.html']) await (await fetch(site.url + path)).text();
  const after = await memory();
  assert.equal(entriesOf(after, 'files'), 1);
  assert.equal(entriesOf(after, 'rules'), 1);
  for (const { name, bytes, bytes_max } of after.caches) {
    assert.ok(bytes >= 0 && bytes <= bytes_max && bytes_max > 0, name);
  }
  const metrics = await fetch(`${site.url}/svc1/metrics`, { headers: { apikey: site.adminKey } });
  assert.match(await metrics.text(), /^waymark_memory_cache_bytes\{cache="files"\} [1-9]\d*$/m);
});
