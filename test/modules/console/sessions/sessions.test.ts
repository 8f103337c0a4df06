import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { sessionsPerMinuteMax } from '../../../../src/core/operations/keys/key-rates.ts';
import { sessionMs, sessionsPerKeyMax } from '../../../../src/modules/console/sessions/sessions.ts';
import { type TestSite, openSocket, startSite } from '../../../harness.ts';
import { signIn as signInAt } from '../../keys/sign-in.ts';

const started = startSite({ after });

const call: TestSite['call'] = async (...given) => (await started).call(...given);

const signIn = async (apikey: string) => signInAt(await started, apikey);

suite('sessions', () => {
  test('a session works by its token together with its cookie, and by neither alone', async () => {
    const { adminKey } = await started;
    const { token, cookie } = await signIn(adminKey);
    const both = await call('svc1.session.read', {}, { apikey: token, headers: { cookie } });
    assert.deepEqual(both.data.scopes, ['render', 'admin']);
    const cases: [string, { apikey?: string; headers?: Record<string, string> }][] = [
      ['token', { apikey: token }],
      ['token and another cookie', { apikey: token, headers: { cookie: `${cookie}x` } }],
      ['cookie', { headers: { cookie } }],
      ['both, joined', { apikey: `${cookie.split('=')[1] ?? ''} ${token}` }],
    ];
    for (const [what, { apikey, headers = {} }] of cases) {
      const { status } = await call('svc1.key.list', {}, { apikey, headers });
      assert.equal(status, 401, what);
    }
  });

  test('its cookie is for the service only, and no script reads it', async () => {
    const { adminKey } = await started;
    const { setCookie } = await signIn(adminKey);
    const age = sessionMs / 1000;
    assert.match(
      setCookie,
      new RegExp(
        `^waymark_session_[0-9a-f]{8}=[\\w-]{43}; Path=/svc1; Max-Age=${age}; HttpOnly; SameSite=Strict$`,
      ),
    );
  });

  test('a cookie that another page of the origin has set does not hide it', async () => {
    const { adminKey } = await started;
    const { token, cookie } = await signIn(adminKey);
    const name = cookie.split('=')[0] ?? '';
    const headers = { cookie: `${name}=planted; other=1; ${cookie}` };
    const { status } = await call('svc1.key.list', {}, { apikey: token, headers });
    assert.equal(status, 200);
  });

  test('sign-in takes no session, no unknown key, and no cookie from the client', async () => {
    const { adminKey } = await started;
    const { token, cookie } = await signIn(adminKey);
    const again = { apikey: undefined, headers: { cookie } };
    assert.equal((await call('svc1.session.insert', { apikey: token }, again)).status, 401);
    assert.equal((await call('svc1.session.insert', { apikey: 'wmk_no' }, again)).status, 401);
    const second = await signIn(adminKey);
    assert.notEqual(second.cookie, cookie);
    assert.notEqual(second.token, token);
  });

  test('it ends by session.end, and with its key', async () => {
    const { adminKey } = await started;
    const { data: key } = await call('svc1.key.insert', { name: 'desk', scopes: ['read'] });
    const { key: text, id: keyId } = key as { key: string; id: string };
    const [first, second, admins] = [
      await signIn(text),
      await signIn(text),
      await signIn(adminKey),
    ];
    const others = await call('svc1.session.end', { id: admins.id }, first.as);
    assert.equal(others.status, 403);
    assert.equal((await call('svc1.session.end', {}, first.as)).status, 200);
    assert.equal((await call('svc1.session.end', {}, first.as)).status, 401);
    assert.equal((await call('svc1.server.status', {}, second.as)).status, 200);
    await call('svc1.key.revoke', { id: keyId });
    assert.equal((await call('svc1.server.status', {}, second.as)).status, 401);
    const { data } = await call('svc1.session.list', {});
    const ids = (data.rows as { id: string }[]).map(({ id }) => id);
    assert.ok(ids.includes(admins.id) && !ids.includes(first.id) && !ids.includes(second.id));
    assert.equal((await call('svc1.session.end', { id: admins.id })).status, 200);
  });

  test('a change is written by the key of the session, and sessions are not listed as keys', async () => {
    const { adminKey } = await started;
    const { token, cookie } = await signIn(adminKey);
    const sent = { apikey: token, headers: { cookie } };
    const rule = { path: '/by-session', kind: 'content', content: 'x' };
    const { data: page } = await call('svc1.userinterface.insert', rule, sent);
    const { id } = page as { id: string };
    const { data: history } = await call('svc1.userinterface.read', { id }, { qk: 'history' });
    const { data: keys } = await call('svc1.key.list', {});
    const rows = keys.rows as { id: string; name: string; hash?: string; session?: object }[];
    assert.equal(history.rows[0].by, rows.find(({ name }) => name === 'admin')?.id);
    assert.ok(rows.every(({ session, hash }) => session === undefined && hash === undefined));
    assert.equal(rows.filter(({ name }) => name === 'admin').length, 1);
  });

  test(`a key has at most ${sessionsPerKeyMax} sessions: another one ends the oldest`, async () => {
    const { data: key } = await call('svc1.key.insert', { name: 'busy', scopes: ['read'] });
    const first = await signIn((key as { key: string }).key);
    for (let at = 0; at < sessionsPerKeyMax; at += 1) await signIn((key as { key: string }).key);
    assert.equal((await call('svc1.server.status', {}, first.as)).status, 401);
  });

  test('a key makes no endless number of sessions, nor more than its rate', async () => {
    const until429 = async (apikey: string, more: number): Promise<number> => {
      for (let made = 0; made <= more; made += 1) {
        const answer = await call('svc1.session.insert', { apikey }, { apikey: undefined });
        if (answer.status === 429) return made;
      }
      return Infinity;
    };
    const add = async (v: object): Promise<string> => {
      const { data } = await call('svc1.key.insert', { name: 'eager', scopes: ['render'], ...v });
      return data.key;
    };
    const made = await until429(await add({}), 2 * sessionsPerMinuteMax);
    assert.ok(made >= sessionsPerMinuteMax && made < Infinity, String(made));
    const [one, other] = [await add({ rate: 1 }), await add({})];
    assert.ok((await until429(one, sessionsPerMinuteMax)) < sessionsPerMinuteMax);
    assert.equal(await until429(other, 1), Infinity, 'each key for itself');
  });

  test('a websocket authenticates with the token and the cookie of its handshake', async (t) => {
    const { url, adminKey } = await started;
    const { token, cookie } = await signIn(adminKey);
    const address = `${url.replace('http', 'ws')}/svc1/ws`;
    const without = await openSocket(t, address, undefined);
    const refused = await without.call('svc1.session.authenticate', { apikey: token });
    assert.equal(refused.error?.code, 'unauthenticated');
    const socket = await openSocket(t, address, undefined, { cookie });
    await socket.call('svc1.session.authenticate', { apikey: token });
    assert.ok((await socket.call('svc1.server.status', {})).data);
    const overSocket = await socket.call('svc1.session.insert', { apikey: adminKey });
    assert.equal(overSocket.error?.code, 'invalid');
    await call('svc1.session.end', {}, { apikey: token, headers: { cookie } });
    const after = await socket.call('svc1.server.status', {});
    assert.equal(after.error?.code, 'unauthenticated');
  });
});
