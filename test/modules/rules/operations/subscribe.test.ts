import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';
import { startWriter } from '../../../core/log/scratch.ts';
import { insertPage, subscribe, type ChangePacket } from '../../status/subscriber.ts';

const rule = 'svc1.userinterface';
const origin = 'http://shop.example';

suite('a subscriber', () => {
  test('gets the current seq, then every change as the scope read sees it', async (t) => {
    const site = await startSite(t, { rules: [{ path: '/before', kind: 'content' }] });
    const socket = await site.socket(site.adminKey);
    const subscriber = await subscribe(socket);
    assert.equal(subscriber.seq, (await site.call('svc1.server.status', {})).data.seq);

    const page = { origin, path: '/a', kind: 'content', content: 'one', engine: 'html' };
    const { id } = await insertPage(socket, page);
    const first = (await site.call(`${rule}.read`, { id })).data;
    await socket.call(`${rule}.edit`, { id, content: 'two', engine: null });
    const second = (await site.call(`${rule}.read`, { id })).data;
    const { data: dry } = await site.call(`${rule}.invalidate`, { id });
    await site.call(`${rule}.invalidate`, { id, confirm: dry.digest });
    await subscriber.until(({ length }) => length === 3);

    const rows = (await site.call(`${rule}.read`, { id }, { qk: 'history' })).data.rows;
    const txns = rows.map(({ txn }: { txn: string }) => txn).toReversed();
    const { seq } = subscriber;
    assert.deepEqual(subscriber.packets, [
      { seq: seq + 1, txn: txns[0], action: 'insert', id, data: { id, ...page }, record: first },
      {
        seq: seq + 2,
        txn: txns[1],
        action: 'edit',
        id,
        data: { id, content: 'two', engine: null },
        record: second,
      },
      { seq: seq + 3, txn: txns[2], action: 'invalidate', id, data: rows[0].data, record: null },
    ]);
    assert.ok(first.enginereference.startsWith(site.url));
  });

  test('gets the changes after from_seq first, then new ones', async (t) => {
    const paths = ['/1', '/2', '/3'];
    const site = await startSite(t, { rules: paths.map((path) => ({ path, kind: 'content' })) });
    const socket = await site.socket(site.adminKey);
    const [all, some] = [
      await subscribe(socket, { from_seq: 0 }),
      await subscribe(socket, { from_seq: 2 }),
    ];
    const { seq } = await insertPage(socket, { path: '/4' });
    for (const one of [all, some]) await one.until((packets) => packets.at(-1)?.seq === seq);
    assert.deepEqual(
      all.packets.map(({ record }) => record.path),
      [...paths, '/4'],
    );
    assert.deepEqual(some.seqs(), all.seqs().slice(2));
  });

  const mistakes: readonly (readonly [field: string, v: object])[] = [
    ['from_seq', { from_seq: 1_000 }],
    ['from_seq', { from_seq: -1 }],
    ['from_seq', { from_seq: 'yesterday' }],
    ['origin', { origin: 'shop.example' }],
    ['origin', { origin: `${origin}/a` }],
    ['path', { path: '' }],
    ['path', { path: '/a/../b' }],
    ['path', { path: '/a/*b' }],
    ['path', { path: `/${'x'.repeat(5_000)}` }],
    ['id', { id: '' }],
    ['as_of', { as_of: '1' }],
  ];
  test('cannot use an impossible filter or a seq in the future', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    for (const [field, v] of mistakes) {
      await assert.rejects(subscribe(socket, v), { code: 'invalid', field }, JSON.stringify(v));
    }
    const late = { from_seq: 1_000_000 };
    await assert.rejects(subscribe(socket, late), { message: /newest seq, \d+/ });
  });

  test('must use a websocket: over HTTP the answer gives its address', async (t) => {
    const site = await startSite(t);
    const { status, error } = await site.call(`${rule}.subscribe`, {});
    assert.deepEqual([status, error?.code], [400, 'invalid']);
    assert.match(error?.message ?? '', /websocket/);
    const url = `${site.url}/svc1/userinterface/subscribe`;
    assert.equal((await fetch(url, { headers: { apikey: site.adminKey } })).status, 400);
    const options = await fetch(url, { method: 'OPTIONS' });
    assert.deepEqual([options.status, options.headers.get('allow')], [204, 'OPTIONS']);
  });

  test('finds the id of its request in every packet; the id has a limit', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    const messages: { id?: unknown; r: string }[] = [];
    const seen = new Promise<void>((resolve) => {
      socket.websocket.on('message', (text: Buffer) => {
        messages.push(JSON.parse(text.toString()) as { id?: unknown; r: string });
        if (messages.filter(({ r }) => r === `${rule}.change`).length === 3) resolve();
      });
    });
    const ids = [{ a: [1] }, null, undefined];
    for (const id of [...ids, 'x'.repeat(300)]) {
      socket.websocket.send(JSON.stringify({ a: `${rule}.subscribe`, id }));
    }
    await insertPage(socket, { path: '/a' });
    await seen;
    const sent = messages.filter(({ r }) => r === `${rule}.change`);
    assert.deepEqual(
      sent.map(({ id }) => id),
      ids,
    );
    const refused = messages.find((message) => 'error' in message);
    assert.deepEqual((refused as { error?: { code: string } }).error?.code, 'too_large');
  });
});

suite('a filter', () => {
  const home = { origin, path: '/home' };
  const cases: readonly (readonly [
    title: string,
    filter: object,
    wanted: (change: string) => boolean,
  ])[] = [
    ['of nothing', {}, () => true],
    ['of null', { origin: null, path: null, id: null, from_seq: null }, () => true],
    ['by origin', { origin }, (change) => !change.startsWith('any')],
    [
      'by an origin in other words',
      { origin: `${origin.toUpperCase()}:80/` },
      (change) => !change.startsWith('any'),
    ],
    ['by the origin *', { origin: '*' }, (change) => change.startsWith('any')],
    ['by path', { path: '/home' }, (change) => /^home (insert|leave|back)$/.test(change)],
    ['by a prefix', { path: '/shop/*' }, (change) => /^home (leave|on|back)|^any/.test(change)],
    [
      'by a prefix inside of a segment',
      { path: '/sh*' },
      (change) => /^home (leave|on|back)|^any/.test(change),
    ],
    ['by an escaped path', { path: '/caf%C3%A9*' }, (change) => change === 'crumb away'],
    ['by the key of a breadcrumb', { path: 'summer' }, (change) => change.startsWith('crumb')],
    ['by a prefix of keys', { path: 'sum*' }, (change) => change.startsWith('crumb')],
    ['by all paths', { path: '*' }, () => true],
    [
      'by origin and path',
      { origin, path: '/shop/*' },
      (change) => /^home (leave|on|back)$/.test(change),
    ],
    ['by origin and path that nothing has both of', { origin, path: '/shop/all' }, () => false],
    ['by an id that is none', { id: 'nobody' }, () => false],
  ];

  test('selects changes whose record matches before or after', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    const subscribers = await Promise.all(cases.map(([, filter]) => subscribe(socket, filter)));
    const names = new Map<number, string>();
    const noted = async (name: string, operation: string, v: object): Promise<string> => {
      const { data } = await socket.call(`${rule}.${operation}`, v);
      names.set(data.seq, name);
      return data.id;
    };
    const id = await noted('home insert', 'insert', { ...home, kind: 'content' });
    const any = await noted('any insert', 'insert', { path: '/shop/all', kind: 'content' });
    await noted('home leave', 'edit', { id, path: '/shop/a' });
    await noted('home on', 'edit', { id, path: '/shop/b', lang: 'en' });
    await noted('home back', 'edit', { id, path: '/home' });
    const crumb = { path: 'summer', kind: 'resolve', origin, enginedata: { target: '/' } };
    const crumbId = await noted('crumb insert', 'insert', crumb);
    await noted('crumb away', 'edit', { id: crumbId, path: '/café' });
    const last = await noted('any edit', 'edit', { id: any, rve: 1 });

    const byId = await subscribe(socket, { from_seq: 0, id: last });
    await byId.until(({ length }) => length === 2);
    const changes = [...names.values()];
    for (const [at, [title, , wanted]] of cases.entries()) {
      const got = subscribers[at]?.seqs().map((seq) => names.get(seq));
      assert.deepEqual(got, changes.filter(wanted), title);
    }
    assert.deepEqual(
      byId.seqs().map((seq) => names.get(seq)),
      ['any insert', 'any edit'],
    );
  });
});

suite('many changes at once', () => {
  test('reach every subscriber without gap or repeat, from all processes', async (t) => {
    const site = await startSite(t);
    const [one, two] = [await site.socket(site.adminKey), await site.socket(site.adminKey)];
    const subscribers = [
      await subscribe(one),
      await subscribe(one, { path: '/mine/*' }),
      await subscribe(one, { path: '/child/*' }),
      await subscribe(two, { from_seq: 0 }),
    ];
    const arrived = arrivals(one.websocket);
    const writer = startWriter(t, [join(site.folder, 'data'), '150']);
    const writes: Promise<unknown>[] = [];
    for await (const line of writer.lines) {
      if (/^\d/.test(line)) writes.push(insertPage(two, { path: `/mine/${writes.length}` }));
    }
    // A subscriber that starts at the beginning while the others are in the middle.
    const late = await subscribe(one, { from_seq: 0, path: '/mine/*' });
    await Promise.all([...writes, writer.closed]);
    const { seq: last } = await insertPage(two, { path: '/mine/last' });
    for (const each of [...subscribers.filter((_, at) => at !== 2), late]) {
      await each.until((packets) => packets.at(-1)?.seq === last);
    }

    const [all, mine, theirs, before] = subscribers.map(({ seqs }) => seqs());
    const { seq: first } = subscribers[0] ?? assert.fail();
    const everything = Array.from({ length: last - first }, (_, at) => first + 1 + at);
    assert.deepEqual(all, everything);
    assert.deepEqual(before, everything);
    assert.equal(mine?.length, 151);
    assert.deepEqual(late.seqs(), mine);
    assert.equal(theirs?.length, 300);
    const pathOf = new Map(subscribers[0]?.packets.map(({ seq, record }) => [seq, record.path]));
    assert.ok(theirs.every((seq) => pathOf.get(seq).startsWith('/child/')));
    const small = everything.filter((seq) => pathOf.get(seq) === '/small');
    assert.deepEqual([...mine, ...theirs, ...small].toSorted(ascending), everything);

    const started = arrived.findIndex(({ seq }, at) => seq < (arrived[at - 1]?.seq ?? 0));
    for (const part of [arrived.slice(0, started), arrived.slice(started)]) {
      const seqs = part.map(({ seq }) => seq);
      assert.deepEqual(seqs, seqs.toSorted(ascending), 'in the order of seq over one socket');
    }
  });
});

function ascending(one: number, other: number): number {
  return one - other;
}

/** All packets of a websocket in their order. */
function arrivals(websocket: {
  on(event: 'message', listener: (text: Buffer) => void): unknown;
}): readonly ChangePacket[] {
  const packets: ChangePacket[] = [];
  websocket.on('message', (text) => {
    const { r, data } = JSON.parse(text.toString()) as { r: string; data: ChangePacket };
    if (r === `${rule}.change`) packets.push(data);
  });
  return packets;
}
