import assert from 'node:assert/strict';
import { type TestContext, suite, test } from 'node:test';
import { type Answer, type TestSite, openSocket, startSite } from '../../../harness.ts';
import { signIn } from '../../../modules/keys/sign-in.ts';
import { insertPage, subscribe } from '../../../modules/status/subscriber.ts';
import { closing } from '../../server/websocket/socket-rig.ts';

const dayMs = 86_400_000;

/** A site whose clock a test sets, with a key that ends in a day. */
async function siteWithEnd(t: TestContext, scopes = ['read']) {
  const site = await startSite(t);
  const nowMs = Date.now();
  t.mock.timers.enable({ apis: ['Date'], now: nowMs });
  const until = new Date(nowMs + dayMs).toISOString();
  const { data } = await site.call('svc1.key.insert', { name: 'guest', scopes, until });
  const setTime = (ms: number): void => {
    t.mock.timers.setTime(nowMs + ms);
  };
  const { key, id } = data as { readonly key: string; readonly id: string };
  return { site, key, id, until, setTime, nowMs };
}

const status = (site: TestSite, apikey: string, headers = {}) =>
  site.call('svc1.server.status', {}, { apikey, headers });

suite('a key with an end', () => {
  test('is refused from that instant on, with the time, and works again with a later end', async (t) => {
    const { site, key, id, until, setTime, nowMs } = await siteWithEnd(t);
    setTime(dayMs - 1);
    assert.equal((await status(site, key)).error, undefined);
    setTime(dayMs);
    // More often than a wrong key: who sends it does not guess.
    for (let time = 0; time < 25; time += 1) {
      const { error } = await status(site, key);
      assert.equal(error?.code, 'unauthenticated');
      assert.ok(error.message.startsWith(`The API key ended at ${until}.`), error.message);
    }
    const refused = await fetch(`${site.url}/svc1/mcp`, {
      method: 'POST',
      headers: { apikey: key, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
    });
    assert.match(await refused.text(), new RegExp(`ended at ${until}`));
    await assert.rejects(site.socket(key), /401/);
    const socket = await site.socket();
    const { error } = await socket.call('svc1.session.authenticate', { apikey: key });
    assert.match(error?.message ?? '', /ended at/);
    assert.equal(
      (await socket.call('svc1.session.insert', { apikey: key })).error?.code,
      'invalid',
    );

    const later = new Date(nowMs + 2 * dayMs).toISOString();
    await site.call('svc1.key.edit', { id, until: later });
    assert.equal((await status(site, key)).error, undefined);
    // A clock that is set back opens what it has ended.
    setTime(2 * dayMs);
    assert.equal((await status(site, key)).error?.code, 'unauthenticated');
    setTime(0);
    assert.equal((await status(site, key)).error, undefined);
  });

  test('ends the sessions that were made with it, which last no longer than the key', async (t) => {
    const { site, key, id, until, setTime, nowMs } = await siteWithEnd(t);
    const soon = new Date(nowMs + 3_600_000).toISOString();
    const long = await signIn(site, key);
    await site.call('svc1.key.edit', { id, until: soon });
    const short = await signIn(site, key);
    assert.match(short.setCookie, /Max-Age=3600;/);
    const read = await site.call('svc1.session.read', {}, short.as);
    assert.deepEqual([read.data.expires, read.data.until], [soon, soon]);
    setTime(3_600_000);
    for (const { as } of [long, short]) {
      assert.equal((await status(site, as.apikey, as.headers)).error?.code, 'unauthenticated');
    }
    const { data } = await site.call('svc1.session.list', {});
    assert.deepEqual(data.rows, []);
    // The session ends at its own time, also if the key lasts longer again.
    await site.call('svc1.key.edit', { id, until });
    assert.equal((await status(site, long.as.apikey, long.as.headers)).error, undefined);
    assert.match(
      (await status(site, short.as.apikey, short.as.headers)).error?.message ?? '',
      /Sign/,
    );
  });
});

test('a preview link ends with the key that has made it, and its pages lose their scripts', async (t) => {
  const { site, key, id, until, setTime, nowMs } = await siteWithEnd(t, ['design', 'read']);
  const sent = { draft: 'spring', apikey: key };
  await site.call('svc1.draft.insert', { name: 'spring' });
  const page = { path: '/a', content: 'drafted' };
  assert.equal((await site.call('svc1.userinterface.insert', page, sent)).error, undefined);
  const made = await site.call('svc1.draft.preview', { draft: 'spring' }, { apikey: key });
  assert.equal(made.data.expires, until);
  const others = await site.call('svc1.draft.preview', { draft: 'spring' });
  await site.call('svc1.key.edit', { id, until: new Date(nowMs + 1_000).toISOString() });
  const open = async ({ data }: Answer) => {
    const first = await fetch(data.url as string, { redirect: 'manual' });
    const cookie = first.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    return fetch(`${site.url}/a`, { headers: { cookie, 'sec-fetch-dest': 'document' } });
  };
  const [own, other] = [await open(made), await open(others)];
  assert.deepEqual([own.status, other.status], [200, 200]);
  assert.equal(other.headers.get('content-security-policy'), null);
  setTime(1_000);
  assert.equal((await open(made)).status, 404);
  assert.match((await open(others)).headers.get('content-security-policy') ?? '', /sandbox/);
});

test('the status counts keys that end soon, and that have ended', async (t) => {
  const { site, setTime } = await siteWithEnd(t);
  const ends = async () => {
    const { data } = await site.call('svc1.key.list', {});
    const states = data.rows.map(({ state }: { state: string }) => state);
    return [states.at(-1), (await site.call('svc1.server.status', {})).data.keys];
  };
  assert.deepEqual(await ends(), ['valid', { ending: 0, ended: 0 }]);
  setTime(dayMs - 3_600_000);
  assert.deepEqual(await ends(), ['ending', { ending: 1, ended: 0 }]);
  setTime(dayMs);
  assert.deepEqual(await ends(), ['ended', { ending: 0, ended: 1 }]);
});

suite('an open connection of a key with an end', () => {
  test('is closed at that instant, whether something happens on it or not', async (t) => {
    const { site, key, until, setTime } = await siteWithEnd(t);
    const [idle, following, later] = [
      await site.socket(key),
      await site.socket(key),
      await site.socket(),
    ];
    assert.ok((await later.call('svc1.session.authenticate', { apikey: key })).data);
    const subscribers = [await subscribe(following), await subscribe(following, { path: '/x' })];
    const other = await site.socket(site.adminKey);
    const ends = [idle, following, later].map(({ websocket }) => closing(websocket));
    setTime(dayMs);
    for (const [code, reason] of await Promise.all(ends)) {
      assert.equal(code, 1008);
      assert.ok(reason.startsWith(`The API key ended at ${until}.`), reason);
    }
    await insertPage(site, { path: '/x', content: 'x' });
    for (const { packets, errors } of subscribers) {
      assert.deepEqual(packets, []);
      assert.deepEqual(
        errors.map((error) => error?.code),
        ['unauthenticated'],
      );
    }
    assert.equal((await other.call('svc1.server.status', {})).error, undefined);
  });

  test('is closed by an end that comes only later, and stays with one that is put off', async (t) => {
    const { site, key, id, setTime, nowMs } = await siteWithEnd(t);
    const made = await site.call('svc1.key.insert', { name: 'endless', scopes: ['read'] });
    const [first, second] = [await site.socket(key), await site.socket(made.data.key)];
    await site.call('svc1.key.edit', { id, until: 'never' });
    const until = new Date(nowMs + 60_000).toISOString();
    await site.call('svc1.key.edit', { id: made.data.id, until });
    const end = closing(second.websocket);
    setTime(2 * dayMs);
    assert.equal((await end)[0], 1008);
    assert.equal((await first.call('svc1.server.status', {})).error, undefined);
  });

  test('of one of its sessions, too', async (t) => {
    const { site, key, setTime } = await siteWithEnd(t);
    const { token, cookie } = await signIn(site, key);
    const socket = await openSocket(t, `${site.url.replace('http', 'ws')}/svc1/ws`, undefined, {
      cookie,
    });
    await socket.call('svc1.session.authenticate', { apikey: token });
    const end = closing(socket.websocket);
    // A session lasts twelve hours.
    setTime(dayMs / 2);
    assert.deepEqual(await end, [1008, 'The session has ended. Sign in again.']);
  });

  test('that streams lines is cut', async (t) => {
    const { site, key, setTime } = await siteWithEnd(t, ['admin']);
    const reply = await fetch(`${site.url}/svc1/log/access`, { headers: { apikey: key } });
    assert.equal(reply.status, 200);
    setTime(dayMs);
    await assert.rejects(reply.text());
  });
});
