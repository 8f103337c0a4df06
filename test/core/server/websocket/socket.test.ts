import assert from 'node:assert/strict';
import { once } from 'node:events';
import { suite, test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { startSite, type Answer, type TestSite, type TestSocket } from '../../../harness.ts';
import { closing, startHeldSource } from './socket-rig.ts';

const rule = 'svc1.userinterface';
const status = 'svc1.server.status';

/** A site with pages from a source that delays its answers. */
async function startWithSource(t: TestContext) {
  const source = await startHeldSource(t);
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [
      { path: '/far/*', kind: 'content.fetch', enginedata: { source: `${source.url}/*` } },
      { path: '/near', kind: 'content', content: 'near' },
    ],
  });
  const ask = (socket: TestSocket, path: string) =>
    socket.call(`${rule}.get_content`, { origin: site.url, path });
  return { site, source, ask };
}

/** Sends a text; resolves to the next answer. */
async function answerTo({ websocket }: TestSocket, text: string): Promise<Answer> {
  websocket.send(text);
  const [data] = (await once(websocket, 'message')) as [Buffer];
  return JSON.parse(data.toString()) as Answer;
}

suite('an envelope over a websocket', () => {
  test('gets its id back, of any type, and none if it had none', async (t) => {
    const socket = await (await startSite(t)).socket();
    const ids = [1, 0, -1.5, 'a', '', null, false, [1, { a: [] }], { n: 1 }, '😀"\\'];
    for (const id of ids) {
      const answer = await answerTo(socket, JSON.stringify({ a: 'svc1.x.y', id }));
      assert.deepEqual(answer.id, id);
      assert.equal(answer.r, 'svc1.x.y');
    }
    const without = await answerTo(socket, JSON.stringify({ a: 'svc1.x.y' }));
    assert.ok(!('id' in without));
  });

  const mistakes: readonly (readonly [
    title: string,
    text: string,
    code: string,
    field?: string,
  ])[] = [
    ['nothing', '', 'invalid'],
    ['no JSON', '{"a":', 'invalid'],
    ['two values', '{}{}', 'invalid'],
    ['a list', '[{"a":"svc1.server.status"}]', 'invalid'],
    ['a text', '"svc1.server.status"', 'invalid'],
    ['a number', '7', 'invalid'],
    ['null', 'null', 'invalid'],
    ['no operation', '{"v":{}}', 'invalid', 'a'],
    ['an empty operation', '{"a":""}', 'invalid', 'a'],
    ['an operation that is not a string', '{"a":7}', 'invalid', 'a'],
    ['an unknown operation', '{"a":"svc1.userinterface.fly"}', 'not_found'],
    ['a name of Object', '{"a":"constructor"}', 'not_found'],
    ['input that is a list', '{"a":"svc1.server.status","v":[]}', 'invalid', 'v'],
    ['input that is a string', '{"a":"svc1.server.status","v":"x"}', 'invalid', 'v'],
    ['a vk that is not a string', '{"a":"svc1.server.status","vk":7}', 'invalid', 'vk'],
    ['an empty vk', '{"a":"svc1.server.status","vk":""}', 'invalid', 'vk'],
    ['a qk that is not a string', '{"a":"svc1.server.status","qk":{}}', 'invalid', 'qk'],
    ['too deep an input', `{"a":"${status}","v":${deep(70)}}`, 'too_large', 'v'],
    ['too deep an id', `{"a":"${status}","id":${deep(70)}}`, 'too_large', 'id'],
    // Too deep for JSON.stringify.
    ['an id of a million levels', `{"a":"x","id":${deep(5_000_000)}}`, 'too_large', 'id'],
  ];
  test('that is not valid is refused, and the next one is answered', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    for (const [title, text, code, field] of mistakes) {
      const { error } = await answerTo(socket, text);
      assert.deepEqual([error?.code, error?.field], [code, field], title);
      assert.ok((error?.message.length ?? 0) > 10 && error?.id, title);
    }
    assert.equal((await socket.call(status, {})).data.version, '0.2.0');
  });

  test('is answered as soon as possible, independent of earlier ones', async (t) => {
    const { site, source, ask } = await startWithSource(t);
    const socket = await site.socket();
    const far = ask(socket, '/far/1');
    await source.reached(1);
    assert.equal((await ask(socket, '/near')).data.content, 'near');
    source.release();
    assert.equal((await far).data.content, '/1');
  });

  test('that writes is carried out in order of arrival', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    const page = { path: '/a', kind: 'content', content: '0' };
    const { data } = await socket.call(`${rule}.insert`, page);
    const edits = Array.from({ length: 200 }, (_, at) =>
      socket.call(`${rule}.edit`, { id: data.id, content: String(at + 1) }),
    );
    const seqs = (await Promise.all(edits)).map((edited) => edited.data.seq as number);
    assert.deepEqual(
      seqs,
      seqs.toSorted((one, other) => one - other),
    );
    assert.equal((await socket.call(`${rule}.read`, { id: data.id })).data.content, '200');
  });
});

function deep(levels: number): string {
  return `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;
}

test('at most 256 requests of a websocket run at a time, and each is answered', async (t) => {
  const { site, source, ask } = await startWithSource(t);
  const socket = await site.socket();
  const asked = Array.from({ length: 600 }, (_, at) => ask(socket, `/far/${at}`));
  await source.reached(256);
  // This connection does not delay another one, whose answer comes after all requests here have
  // begun.
  const other = await site.socket();
  assert.equal((await ask(other, '/near')).data.content, 'near');
  assert.equal(source.waiting.length, 256);
  source.release();
  for (const [at, answer] of (await Promise.all(asked)).entries()) {
    assert.equal(answer.data.content, `/${at}`);
  }
});

suite('frames without a valid envelope', () => {
  test('end the connection with a code for the reason', async (t) => {
    const site = await startSite(t);
    const cases: readonly (readonly [send: (websocket: WebSocket) => void, code: number])[] = [
      [
        (websocket) => {
          websocket.send(Buffer.from('{}'));
        },
        1003,
      ],
      [
        (websocket) => {
          websocket.send('x'.repeat((16 << 20) + 1));
        },
        1009,
      ],
    ];
    for (const [send, code] of cases) {
      const { websocket } = await site.socket(site.adminKey);
      const closed = closing(websocket);
      send(websocket);
      assert.equal((await closed)[0], code);
    }
    const socket = await site.socket(site.adminKey);
    const large = `{"a":"${rule}.insert","v":"${'x'.repeat((16 << 20) - 40)}"}`;
    assert.equal(large.length, 16 << 20);
    assert.equal((await answerTo(socket, large)).error?.field, 'v', 'of 16 MiB at most');
  });

  test('end the connection: later frames are not carried out', async (t) => {
    const site = await startSite(t);
    const { websocket } = await site.socket(site.adminKey);
    const closed = closing(websocket);
    websocket.send(Buffer.from('x'));
    for (let at = 0; at < 5; at += 1) {
      const v = { path: `/late/${at}`, kind: 'content', content: 'x' };
      websocket.send(JSON.stringify({ a: `${rule}.insert`, v }));
    }
    assert.deepEqual(await closed, [1003, 'Send envelopes in text frames.']);
    const { data } = await site.call(status, {});
    assert.equal(data.counts.rules, 0);
  });
});

suite('the caller of a websocket', () => {
  const page = { path: '/a', kind: 'content', content: 'x' };
  const authenticate = (socket: TestSocket, apikey: string) =>
    socket.call('svc1.session.authenticate', { apikey });

  test('has the key of the upgrade request; a wrong key is refused with 401', async (t) => {
    const site = await startSite(t);
    const refused = new WebSocket(`${site.url.replace('http', 'ws')}/svc1/ws`, {
      headers: { apikey: 'wmk_wrong' },
    });
    const [error] = (await once(refused, 'error')) as [Error];
    assert.match(error.message, /401/);
    const socket = await site.socket(site.adminKey);
    assert.equal((await socket.call(status, {})).error, undefined);
  });

  test('can authenticate by an envelope, which holds for all later ones', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket();
    const before = socket.call(status, {});
    const wrong = authenticate(socket, 'wmk_wrong');
    const still = socket.call(status, {});
    const right = authenticate(socket, site.adminKey);
    const after = [socket.call(status, {}), socket.call(`${rule}.insert`, page)];
    assert.equal((await before).error?.code, 'unauthenticated');
    assert.equal((await wrong).error?.code, 'unauthenticated');
    assert.equal((await still).error?.code, 'unauthenticated');
    assert.deepEqual((await right).data, { scopes: ['render', 'admin'] });
    for (const answer of await Promise.all(after)) assert.equal(answer.error, undefined);
    assert.ok(!site.logged().includes(site.adminKey));
  });

  test('may do only what the scopes of the key allow', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
    const table: readonly (readonly [TestSocket, string, object, string | undefined])[] = [
      [await site.socket(), `${rule}.insert`, page, 'unauthenticated'],
      [await site.socket(), status, {}, 'unauthenticated'],
      [await site.socket(), `${rule}.get`, { origin: site.url, path: '/a' }, 'not_found'],
      [await site.socket(data.key), status, {}, undefined],
      [await site.socket(data.key), `${rule}.insert`, page, 'forbidden'],
      [await site.socket(data.key), 'svc1.key.list', {}, 'forbidden'],
    ];
    for (const [socket, name, v, code] of table) {
      assert.equal((await socket.call(name, v)).error?.code, code, name);
    }
  });

  test('is anonymous once the key is revoked, until another key authenticates', async (t) => {
    const site = await startSite(t);
    const { data } = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
    const socket = await site.socket(data.key);
    assert.equal((await socket.call(status, {})).error, undefined);
    await site.call('svc1.key.revoke', { id: data.id });
    assert.equal((await socket.call(status, {})).error?.code, 'unauthenticated');
    assert.equal((await authenticate(socket, data.key)).error?.code, 'unauthenticated');
    assert.equal((await authenticate(socket, site.adminKey)).error, undefined);
    assert.equal((await socket.call(status, {})).error, undefined);
  });

  test('may send twenty wrong keys a minute, and a right one at any time', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket();
    for (let guess = 0; guess < 20; guess += 1) {
      assert.equal((await authenticate(socket, `wmk_${guess}`)).error?.code, 'unauthenticated');
    }
    assert.equal((await authenticate(socket, 'wmk_x')).error?.code, 'rate_limited');
    assert.equal((await authenticate(socket, site.adminKey)).error, undefined);
  });
});

suite('a failure inside the server', () => {
  test('is in the log under the id that the caller gets', async (t) => {
    const { site, ask } = await startBroken(t);
    const { error } = await ask();
    assert.equal(error?.code, 'bad_gateway');
    assert.ok(site.logged().includes(error.id));
  });
});

async function startBroken(
  t: TestContext,
): Promise<{ site: TestSite; ask: () => Promise<Answer> }> {
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    // No server listens on this port.
    rules: [{ path: '/far', kind: 'content.fetch', enginedata: { source: 'http://127.0.0.1:1/' } }],
  });
  const socket = await site.socket();
  return {
    site,
    ask: () => socket.call(`${rule}.get_content`, { origin: site.url, path: '/far' }),
  };
}
