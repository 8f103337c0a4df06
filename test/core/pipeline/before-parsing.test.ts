import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSite } from '../../harness.ts';

const insert = 'svc1.userinterface.insert';
const list = 'svc1.userinterface.list';
const get = 'svc1.userinterface.get';

/** Sends the text of an envelope; resolves to the response. */
type Send = (envelope: { readonly a: string; readonly text: string }) => Promise<Answer>;

const ways: Readonly<Record<string, (site: TestSite, apikey?: string) => Promise<Send>>> = {
  HTTP: (site, apikey) =>
    Promise.resolve(async ({ a, text }) => {
      const reply = await fetch(`${site.url}/svc1/${a.slice('svc1.'.length).replace('.', '/')}`, {
        method: 'POST',
        headers: apikey === undefined ? {} : { apikey },
        body: text,
      });
      return (await reply.json()) as Answer;
    }),
  websocket: async (site, apikey) => {
    const { websocket } = await site.socket(apikey);
    return async ({ text }) => {
      websocket.send(text);
      const [data] = (await once(websocket, 'message')) as [Buffer];
      return JSON.parse(data.toString()) as Answer;
    };
  },
};

/** Neither is valid JSON: a parser would report that. */
const unfinished = (a: string, rest: string) => ({ a, text: `{"a":"${a}","id":1,"v":${rest}` });
const deep = '['.repeat(100_000);

for (const [way, open] of Object.entries(ways)) {
  suite(`an operation over ${way}`, () => {
    test('is authorised before the server parses its JSON', async (t) => {
      const site = await startSite(t, { ini: '[auth]\nanonymous =\n' });
      const send = await open(site);
      for (const a of [insert, get]) {
        const { error, id } = await send(unfinished(a, '}'));
        assert.equal(error?.code, 'unauthenticated', a);
        if (way === 'websocket') assert.equal(id, 1);
      }
      const { data } = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
      const reading = await open(site, data.key as string);
      assert.equal((await reading(unfinished(insert, '}'))).error?.code, 'forbidden');
      assert.equal((await reading(unfinished(list, '}'))).error?.code, 'invalid');
    });

    test('is refused unparsed if it nests too deeply or has too many values', async (t) => {
      const site = await startSite(t);
      const send = await open(site, site.adminKey);
      for (const rest of [deep, `{"x":${deep}`, `{"x":[${'[],'.repeat(300_000)}`]) {
        const { error } = await send(unfinished(insert, rest));
        assert.equal(error?.code, 'too_large', rest.slice(0, 20));
      }
      const question = await send(unfinished(list, `{"x":[${'1,'.repeat(10_001)}`));
      assert.equal(question.error?.code, 'too_large');
      assert.match(site.logged(), /input_structure/);
    });

    test('is accepted at the maximum depth', async (t) => {
      const site = await startSite(t);
      const send = await open(site, site.adminKey);
      const nested = (levels: number) => `{"x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
      const at = (levels: number) => send({ a: get, text: `{"a":"${get}","v":${nested(levels)}}` });
      assert.equal((await at(64)).error?.code, 'invalid');
      const { error } = await at(65);
      assert.deepEqual([error?.code, error?.field], ['too_large', 'v']);
    });

    test('that only reads, or that needs no key, takes at most 256 KiB', async (t) => {
      const site = await startSite(t);
      const send = await open(site, site.adminKey);
      const v = { path: '/a', content: 'x'.repeat(1 << 18), apikey: 'x' };
      for (const a of [get, 'svc1.session.authenticate']) {
        assert.equal(
          (await send({ a, text: JSON.stringify({ a, v }) })).error?.code,
          'too_large',
          a,
        );
      }
      const text = JSON.stringify({ a: insert, v });
      assert.equal((await send({ a: insert, text })).error, undefined);
      assert.match(site.logged(), /content_size/);
    });
  });
}

test('the id of a message has at most 4 KiB', async (t) => {
  const site = await startSite(t);
  const { websocket } = await site.socket();
  for (const [length, code] of [
    [4_094, 'not_found'],
    [4_095, 'too_large'],
  ] as const) {
    websocket.send(JSON.stringify({ a: 'svc1.x.y', id: 'x'.repeat(length) }));
    const [data] = (await once(websocket, 'message')) as [Buffer];
    assert.equal((JSON.parse(data.toString()) as Answer).error?.code, code);
  }
});

suite('the members of a form or query', () => {
  test('are counted before the server parses them', async (t) => {
    const site = await startSite(t);
    const type = { 'content-type': 'application/x-www-form-urlencoded' };
    const post = async (body: string, headers: Readonly<Record<string, string>> = {}) => {
      const url = `${site.url}/svc1/userinterface/${headers.apikey === undefined ? 'get' : 'insert'}`;
      const reply = await fetch(url, { method: 'POST', headers: { ...type, ...headers }, body });
      return ((await reply.json()) as Answer).error?.code;
    };
    const page = '_v.path=/a&_v.content=x';
    const padded = (pairs: number) => `${page}${'&a'.repeat(pairs - 2)}`;
    assert.equal(await post(padded(4_096), { apikey: site.adminKey }), undefined);
    assert.equal(await post(padded(4_097), { apikey: site.adminKey }), 'too_large');
    assert.equal(await post('a&'.repeat(131_000)), 'too_large');
    assert.match(site.logged(), /input_structure/);
  });

  test('of the query of a requested page take at most 8 KiB', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/a', content: 'x' }] });
    for (const name of ['get', 'get_render', 'get_content', 'explain']) {
      const ask = (query: string) =>
        site.call(`svc1.userinterface.${name}`, { origin: site.url, path: '/a', query });
      assert.equal((await ask('a&'.repeat(4_096))).error, undefined, name);
      const { error } = await ask('a&'.repeat(4_097));
      assert.deepEqual([error?.code, error?.field], ['too_large', 'query'], name);
    }
    const { error } = await site.call('svc1.userinterface.get_resolve', {
      k: 'x',
      query: 'a&'.repeat(100_000),
    });
    assert.equal(error?.code, 'too_large');
  });
});

test('the headers for get_content are limited to the size of a request head', async (t) => {
  const site = await startSite(t, { rules: [{ path: '/a', content: 'x' }] });
  const get = (cookie: string) =>
    site.call('svc1.userinterface.get_content', {
      origin: site.url,
      path: '/a',
      headers: { cookie },
    });
  assert.equal((await get('a='.repeat(16_000))).status, 200);
  const { error } = await get('a='.repeat(17_000));
  assert.deepEqual([error?.code, error?.field], ['too_large', 'headers']);
});
