import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';

const data = { word: 'Hello' };
const branch = (condition: object, word: string) => ({
  if: condition,
  enginedata: { data: { word } },
});
const started = startSite(
  { after },
  {
    rules: [
      {
        path: '/greeting',
        kind: 'content',
        engine: 'template',
        enginedata: {
          when: [
            branch({ country: 'CH' }, 'Grüezi'),
            branch({ device: 'mobile' }, 'Hi'),
            branch({ user: '*' }, 'Welcome'),
            branch({ before: '2026-01-01' }, 'Long ago'),
          ],
          render: 'server',
          template: '<h1>{{ data.word }} {{ user.name }}</h1>',
          data,
        },
      },
      { path: '/two', kind: 'content', lang: 'en', content: '<h1>Hello</h1>' },
      { path: '/two', kind: 'content', lang: 'de', content: '<h1>Hallo</h1>' },
    ],
  },
);

async function shownOver(transport: string, v: object): Promise<string> {
  const site = await started;
  if (transport === 'websocket') {
    const socket = await site.socket(site.adminKey);
    const answer = await socket.call('svc1.userinterface.get_content', v);
    return answer.data.content as string;
  }
  const reply = await fetch(`${site.url}/svc1/userinterface/get_content`, {
    method: 'POST',
    headers: { apikey: site.adminKey, 'content-type': 'application/json' },
    body: JSON.stringify({ v }),
  });
  return reply.text();
}

suite('get_content for another visitor', () => {
  const cases: readonly (readonly [path: string, visitor: object, shown: string])[] = [
    ['/greeting', { country: 'CH' }, 'Grüezi '],
    ['/greeting', { country: 'DE', device: 'mobile' }, 'Hi '],
    ['/greeting', { user: 'Ada' }, 'Welcome Ada'],
    ['/greeting', { at: '2025-06-01T12:00:00Z' }, 'Long ago '],
    ['/greeting', { lang: 'de' }, 'Hello '],
    ['/two', { lang: 'de' }, 'Hallo'],
    ['/two', { lang: 'en' }, 'Hello'],
    ['/two', { country: 'CH', headers: { 'accept-language': 'de' } }, 'Hallo'],
  ];
  for (const transport of ['HTTP', 'websocket']) {
    for (const [path, visitor, shown] of cases) {
      test(`shows ${path} to ${JSON.stringify(visitor)} over ${transport}`, async () => {
        const { url } = await started;
        const body = await shownOver(transport, { origin: url, path, ...visitor });
        assert.ok(body.includes(`<h1>${shown}</h1>`), body);
      });
    }
  }

  test('needs the scope read, and an impossible visitor is refused', async () => {
    const site = await started;
    const { data: key } = await site.call('svc1.key.insert', { name: 'x', scopes: ['render'] });
    const place = { origin: site.url, path: '/greeting' };
    const refused = async (apikey: string | undefined, visitor: object) => {
      const v = { ...place, ...visitor };
      const { error } = await site.call('svc1.userinterface.get_content', v, { apikey });
      return [error?.code, error?.field];
    };
    const user = { user: 'Ada' };
    assert.deepEqual(await refused(undefined, user), ['unauthenticated', 'user']);
    assert.deepEqual(await refused(key.key as string, user), ['forbidden', 'user']);
    assert.deepEqual(await refused(site.adminKey, { country: 'XYZ' }), ['invalid', 'country']);
    assert.deepEqual(await refused(site.adminKey, { role: 'staff' }), ['invalid', 'role']);
  });

  test('is for no cache, nor is the past', async () => {
    const site = await started;
    const caching = async (more: string) => {
      const place = `_v.origin=${encodeURIComponent(site.url)}&_v.path=/two${more}`;
      const headers = { apikey: site.adminKey };
      const reply = await fetch(`${site.url}/svc1/userinterface/get_content?${place}`, { headers });
      assert.equal(reply.status, 200);
      return reply.headers.get('cache-control');
    };
    const own = await caching('');
    assert.notEqual(own, 'no-store');
    assert.equal(await caching('&_v.country=CH'), 'no-store');
    assert.equal(await caching('&_v.as_of=3'), 'no-store');
  });
});
