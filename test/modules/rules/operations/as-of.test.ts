import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';
import { transports } from '../../status/transports.ts';

const rule = 'svc1.userinterface';
const origin = 'http://shop.example';

for (const [transport, open] of Object.entries(transports)) {
  suite(`the site as it was, over ${transport}`, () => {
    test('read and every get answer for a seq and for a time', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const page = { origin, path: '/a', kind: 'content', content: 'one' };
      const { data: first } = await call(`${rule}.insert`, page);
      const { data: crumb } = await call(`${rule}.insert`, {
        path: 'summer',
        kind: 'resolve',
        enginedata: { target: '/june' },
      });
      // The rule moved to a wildcard, and another rule has its former place now.
      await call(`${rule}.edit`, { id: first.id, path: '/b/*', content: 'two' });
      await call(`${rule}.edit`, { id: crumb.id, enginedata: { target: '/july' } });
      const { data: other } = await call(`${rule}.insert`, { ...page, content: 'three' });

      const content = async (path: string, asOf?: number | string) => {
        const v = { origin, path, ...(asOf !== undefined && { as_of: asOf }) };
        const got = await call(`${rule}.get`, v);
        const rendered = await call(`${rule}.get_render`, v);
        assert.equal(rendered.data?.id, got.data?.id);
        return got.data?.content ?? got.error?.code;
      };
      assert.deepEqual([await content('/a'), await content('/b/1')], ['three', 'two']);
      const { seq } = first;
      assert.deepEqual(
        [await content('/a', seq), await content('/b/1', seq)],
        ['one', 'not_found'],
      );
      assert.equal(await content('/a', seq - 1), 'not_found');
      const { data: history } = await call(`${rule}.read`, { id: first.id }, { qk: 'history' });
      const [moved] = history.rows;
      assert.equal(await content('/b/1', moved.dtu_stored), 'two');

      const read = await call(`${rule}.read`, { id: first.id, as_of: seq });
      assert.deepEqual([read.data.content, read.data.seq], ['one', seq]);
      const unborn = await call(`${rule}.read`, { id: other.id, as_of: other.seq - 1 });
      assert.equal(unborn.error?.code, 'not_found');
      const target = async (asOf?: number) =>
        (await call(`${rule}.get_resolve`, { k: 'summer', origin, ...(asOf && { as_of: asOf }) }))
          .data.target;
      assert.deepEqual([await target(), await target(crumb.seq)], ['/july', '/june']);
    });

    test('an impossible moment is refused, and so is as_of for operations of the present', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      for (const [name, v] of [
        ['read', { id: 'x', as_of: 'yesterday' }],
        ['read', { id: 'x', as_of: 99_999 }],
        ['get', { origin, path: '/', as_of: '2026-02-31T00:00:00Z' }],
        ['get_resolve', { k: 'a', as_of: '-1' }],
        ['link.htm', { k: 'a', as_of: 1 }],
      ] as const) {
        const { error } = await call(`${rule}.${name}`, v);
        assert.deepEqual([error?.code, error?.field], ['invalid', 'as_of'], JSON.stringify(v));
      }
    });
  });
}

test('get_content shows a page of the past, over HTTP as its own response', async (t) => {
  const site = await startSite(t, { rules: [{ path: '/a', kind: 'content', content: 'one' }] });
  const { data } = await site.call(`${rule}.get`, { origin: site.url, path: '/a' });
  await site.call(`${rule}.edit`, { id: data.id, content: 'two', httpresponse: 203 });
  const fetched = async (asOf: string) => {
    const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/a${asOf}`;
    const headers = { apikey: site.adminKey };
    const reply = await fetch(`${site.url}/svc1/userinterface/get_content?${place}`, { headers });
    return [reply.status, await reply.text()];
  };
  assert.deepEqual(await fetched(''), [203, 'two']);
  assert.deepEqual(await fetched(`&_v.as_of=${data.seq}`), [200, 'one']);
});

test('the past needs the scope read, and is never fetched from another server', async (t) => {
  const ini = '[fetch]\nallow_private = 127.0.0.0/8\n';
  const source = 'http://127.0.0.1:9/';
  const rules = [
    { path: '/a', kind: 'content', content: 'one' },
    { path: '/far', kind: 'content.fetch', enginedata: { source } },
  ];
  const site = await startSite(t, { ini, rules });
  const as = async (apikey: string | undefined, path: string) => {
    const v = { origin: site.url, path, as_of: 2 };
    return (await site.call(`${rule}.get_content`, v, { apikey })).error?.code;
  };
  const { data: key } = await site.call('svc1.key.insert', { name: 'x', scopes: ['render'] });
  assert.equal(await as(undefined, '/a'), 'unauthenticated');
  assert.equal(await as(key.key, '/a'), 'forbidden');
  assert.equal(await as(site.adminKey, '/far'), 'unprocessable');
});
