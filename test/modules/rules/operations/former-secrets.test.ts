import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { startSite, type TestSite } from '../../../harness.ts';
import { subscribe } from '../../status/subscriber.ts';

const [former, second, current] = ['Bearer former', 'Bearer second', 'Bearer current'];
const enginedataWith = (authorization: string) => ({
  source: 'http://localhost:9/*',
  headers: { authorization, accept: 'text/html' },
});

/** A site with a rule whose credentials were changed twice, and a key for each of two scopes. */
async function rotatedSite(t: TestContext) {
  const site = await startSite(t);
  const { key: read } = (await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] })).data;
  const rule = { path: '/s/*', kind: 'content.fetch', enginedata: enginedataWith(former) };
  const { id, seq } = (await site.call('svc1.userinterface.insert', rule)).data as {
    readonly id: string;
    readonly seq: number;
  };
  // An invalid value waits, and may hold a credential, too.
  const wrong = { id, enginedata: { ...enginedataWith(second), source: 7 } };
  await site.call('svc1.userinterface.edit', wrong);
  await site.call('svc1.userinterface.edit', { id, enginedata: enginedataWith(current) });
  return { site, id, seq, read: read as string };
}

const texts = (answer: unknown): string => JSON.stringify(answer);

suite('a header value that a rule no longer has', () => {
  test('is masked for the scope read in all views of the past', async (t) => {
    const { site, id, seq, read } = await rotatedSite(t);
    const call = (name: string, v: object, more = {}): ReturnType<TestSite['call']> =>
      site.call(`svc1.userinterface.${name}`, v, { apikey: read, ...more });
    const answers = [
      await call('read', { id }, { qk: 'history' }),
      await call('read', { id, as_of: seq }),
      await call('read', { id, as_of: seq + 1 }),
      await call('list', { as_of: seq }),
    ];
    for (const answer of answers) {
      assert.equal(answer.status, 200);
      assert.match(texts(answer), /"authorization":"\*\*\*"/);
      assert.match(texts(answer), /"accept":"text\/html"/, 'what it still has is shown');
      assert.doesNotMatch(texts(answer), /former|second/);
    }
    assert.match(texts(answers[0]), /Bearer current/);
    assert.match(texts(await call('read', { id })), /Bearer current/);
    const found = async (text: string) => (await call('list', { as_of: seq, text })).data.rows;
    assert.equal((await found('text/html')).length, 1);
    assert.deepEqual(await found('Bearer former'), [], 'nor can it be searched for');
  });

  test('is masked, too, if it was written as a text or a list', async (t) => {
    const { site, id, read } = await rotatedSite(t);
    for (const headers of [former, [former], [{ authorization: former }]]) {
      const wrong = { id, enginedata: { ...enginedataWith(current), headers } };
      assert.deepEqual((await site.call('svc1.userinterface.edit', wrong)).data.unknowns, [
        'enginedata',
      ]);
    }
    const now = await site.call('svc1.userinterface.read', { id }, { apikey: read });
    assert.match(texts(now), /Bearer former/, 'what it has is shown');
    await site.call('svc1.userinterface.edit', { id, enginedata: enginedataWith(current) });
    const history = { apikey: read, qk: 'history' };
    const answer = await site.call('svc1.userinterface.read', { id }, history);
    assert.match(texts(answer), /"headers":"\*\*\*"/);
    assert.doesNotMatch(texts(answer), /former/);
  });

  test('is masked, too, if its member had a name in upper case or was in a text', async (t) => {
    const { site, id, read } = await rotatedSite(t);
    const { source } = enginedataWith(current);
    const credentials = { authorization: former };
    const mistakes = [
      { enginedata: { source, Headers: credentials } },
      { enginedata: `${JSON.stringify({ source, headers: credentials })}}` },
      { HEADERS: former },
    ];
    for (const mistake of mistakes) {
      const { seq } = (await site.call('svc1.userinterface.edit', { id, ...mistake })).data as {
        readonly seq: number;
      };
      const now = await site.call('svc1.userinterface.read', { id }, { apikey: read });
      assert.match(texts(now), /Bearer former/, 'what it has is shown');
      const correct = { id, enginedata: enginedataWith(current), _unknowns_: null };
      await site.call('svc1.userinterface.edit', correct);
      for (const [v, more] of [
        [{ id }, { qk: 'history' }],
        [{ id, as_of: seq }, {}],
      ] as const) {
        const answer = await site.call('svc1.userinterface.read', v, { apikey: read, ...more });
        assert.equal(answer.status, 200);
        assert.match(texts(answer), /\*\*\*/);
        assert.doesNotMatch(texts(answer), /former/);
      }
    }
  });

  test('is masked, too, if it was the password of a URL', async (t) => {
    const { site, id, read } = await rotatedSite(t);
    const url = (user: string) => `https://${user}@source.example/*`;
    const sources = [url('ann:former'), [url('ann:for@mer')], { a: url('former') }];
    for (const source of sources) {
      const wrong = { ...enginedataWith(current), source };
      const { data } = await site.call('svc1.userinterface.edit', { id, enginedata: wrong });
      assert.doesNotMatch(texts(data.problems), /former|for@mer/);
      const now = await site.call('svc1.userinterface.read', { id }, { apikey: read });
      assert.match(texts(now), /former|for@mer/, 'what it has is shown');
    }
    const page = { path: '/p', kind: 'content', content: 'ftp://guest@shown.example' };
    const { id: pageId } = (await site.call('svc1.userinterface.insert', page)).data;
    await site.call('svc1.userinterface.edit', { id: pageId, content: '-' });
    const correct = { id, enginedata: enginedataWith(current), _unknowns_: null };
    const { seq } = (await site.call('svc1.userinterface.edit', correct)).data as {
      readonly seq: number;
    };
    const call = (v: object, more = {}) =>
      site.call('svc1.userinterface.read', { id, ...v }, { apikey: read, ...more });
    const subscriber = await subscribe(await site.socket(read), { from_seq: seq - 6 });
    await subscriber.until(({ length }) => length >= 6);
    const views = [await call({}, { qk: 'history' }), await call({ as_of: seq - 3 })];
    for (const view of [...views, subscriber.packets]) {
      assert.match(texts(view), /https:\/\/\*\*\*@source\.example/);
      assert.doesNotMatch(texts(view), /former|for@mer/);
    }
    const past = await call({ id: pageId }, { qk: 'history' });
    assert.match(texts(past), /guest@shown/, 'a page may show what it likes');
  });

  test('is masked in packets of a subscription', async (t) => {
    const { site, seq, read } = await rotatedSite(t);
    const subscriber = await subscribe(await site.socket(read), { from_seq: seq - 1 });
    await subscriber.until(({ length }) => length === 3);
    const { packets } = subscriber;
    assert.doesNotMatch(texts(packets), /former|second/);
    assert.match(texts(packets.at(-1)), /Bearer current/);
  });

  test('is shown to the scope design, which could restore it', async (t) => {
    const { site, id, seq } = await rotatedSite(t);
    const history = await site.call('svc1.userinterface.read', { id }, { qk: 'history' });
    assert.match(texts(history), /Bearer second.*Bearer former/);
    assert.match(
      texts(await site.call('svc1.userinterface.read', { id, as_of: seq })),
      /Bearer former/,
    );
  });

  test('is masked for a deleted rule, too', async (t) => {
    const { site, id, read } = await rotatedSite(t);
    const dry = await site.call('svc1.userinterface.invalidate', { id });
    const confirm = { id, confirm: dry.data.digest };
    assert.equal((await site.call('svc1.userinterface.invalidate', confirm)).status, 200);
    const more = { apikey: read, qk: 'history' };
    const history = await site.call('svc1.userinterface.read', { id }, more);
    assert.doesNotMatch(texts(history), /Bearer/);
    assert.match(texts(history), /"authorization":"\*\*\*"/);
  });
});
