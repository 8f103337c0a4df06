import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { cleaningAfterAll } from '../../../folder.ts';
import {
  openSocket,
  postOperation,
  startSite,
  type Answer,
  type TestSite,
} from '../../../harness.ts';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import {
  all,
  callers,
  fill,
  keyWith,
  marks,
  pages,
  tables,
  testWay,
  type CallerCase,
} from './access-rig.ts';

testWay('websocket');

test('a table that a caller may not use answers as one that does not exist', async (t) => {
  const site = await startSite(t);
  await fill(site);
  const answers = async (table: string): Promise<readonly unknown[]> => {
    const codes = [];
    for (const verb of ['list', 'get', 'schema', 'insert', 'read', 'edit', 'invalidate']) {
      const { error } = await site.call(
        `record.${verb}`,
        { table, id: 'x' },
        { apikey: undefined },
      );
      codes.push([error?.code, error?.message.replaceAll(table, '')]);
    }
    return codes;
  };
  assert.deepEqual(await answers('closed'), await answers('nothing'));
});

test('a feed has the changes of rows that its caller may read, and no others', async (t) => {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1/32',
    ini: '[auth]\nuser_header = X-User\n',
  });
  const rows = await fill(site);
  const url = `${site.url.replace('http', 'ws')}/svc1/ws`;
  const headers = { 'X-User': 'ada', 'X-Forwarded-For': '203.0.113.7' };
  const socket = await openSocket(t, url, undefined, headers);
  const texts: string[] = [];
  const last = new Promise<void>((resolve) => {
    socket.websocket.on('message', (bytes: Buffer) => {
      const text = bytes.toString();
      if (!text.includes('svc1.record.change')) return;
      texts.push(text);
      if (text.includes('the last one')) resolve();
    });
  });
  const answer = await socket.call('svc1.record.subscribe', { table: 'own', from_seq: 0 });
  assert.equal(answer.error, undefined, JSON.stringify(answer.error));
  const [ofNobody, ofAda] = rows.own?.ids ?? [];
  await site.call('record.edit', { table: 'own', id: ofNobody, note: marks.nobody });
  await site.call('record.edit', { table: 'own', id: ofAda, who: 'bob', note: 'given away' });
  await site.call('record.edit', { table: 'own', id: ofAda, who: 'ada', note: 'the last one' });
  await last;
  const packets = texts.map((text) => (JSON.parse(text) as Answer).data);
  assert.deepEqual(
    packets.map(({ id, action, record }) => [id, action, record?.note ?? null]),
    [
      [ofAda, 'insert', marks.ada],
      [ofAda, 'edit', marks.ada],
      [ofAda, 'invalidate', null],
      [ofAda, 'edit', 'the last one'],
    ],
  );
  assert.ok(!texts.join('').includes(marks.pin));
  assert.ok(!texts.join('').includes(marks.nobody));
  assert.ok(!texts.join('').includes('given away'));
});

test('a user writes rows of its own, and those only', async (t) => {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1/32',
    ini: '[auth]\nuser_header = X-User\n',
  });
  await fill(site);
  const as =
    (user: string, more: object = {}) =>
    async (name: string, v: object): Promise<Answer> => {
      const headers = { 'X-User': user, 'X-Forwarded-For': '203.0.113.7', ...more };
      const { url } = site;
      return postOperation(
        url,
        `svc1.${name}`,
        { table: 'own', ...v },
        { headers, apikey: undefined },
      );
    };
  const [ada, bob] = [as('ada'), as('bob')];
  const { data: mine } = await ada('record.insert', { code: 'a1', note: 'mine' });
  assert.equal(mine.who, 'ada');
  const forged = await bob('record.insert', { code: 'b1', who: 'ada' });
  assert.deepEqual([forged.error?.code, forged.error?.field], ['forbidden', 'who']);
  const nested = await bob('record.insert', { code: 'b1', _unknowns_: { who: 'ada' } });
  assert.equal(nested.error?.code, 'forbidden');
  for (const [verb, v] of [
    ['read', { id: mine.id }],
    ['get', { id: mine.id }],
    ['edit', { id: mine.id, note: 'x' }],
    ['invalidate', { id: mine.id }],
  ] as const) {
    const { error } = await bob(`record.${verb}`, v);
    assert.equal(error?.code, 'not_found', verb);
  }
  // By key, the row of another user and a row that never existed get the same answer.
  for (const verb of ['read', 'get', 'edit']) {
    const [hidden, missing] = [
      await bob(`record.${verb}`, { code: 'a1' }),
      await bob(`record.${verb}`, { code: 'z9' }),
    ];
    assert.equal(hidden.error?.message, missing.error?.message, verb);
    assert.equal(missing.error?.message, 'There is no row with this key.');
  }
  const given = await ada('record.edit', { id: mine.id, who: 'bob' });
  assert.deepEqual([given.error?.code, given.error?.field], ['forbidden', 'who']);
  // A key is unique in the whole table; the conflict does not name the owner of the row.
  const taken = await bob('record.insert', { code: 'a1' });
  assert.equal(taken.error?.code, 'conflict');
  assert.ok(!taken.error.message.includes(mine.id));
  // Equal rows of two users are two rows.
  const [one, other] = [await ada('record.insert', {}), await bob('record.insert', {})];
  assert.deepEqual([one.error?.field, other.error?.field], ['code', 'code']);
  const { data: dry } = await ada('record.invalidate', { id: mine.id });
  const done = await ada('record.invalidate', { id: mine.id, confirm: dry.digest });
  assert.equal(done.data.done, true, JSON.stringify(done));

  for (const more of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ]) {
    const { error } = await as('ada', more)('record.insert', { code: 'forged' });
    assert.equal(error?.code, 'forbidden', JSON.stringify(more));
  }
  const own = as('ada', { origin: site.url, 'sec-fetch-site': 'same-origin' });
  assert.equal((await own('record.insert', { code: 'a2' })).error, undefined);
});

test('an anonymous form is stored once, discarded with a filled honeypot, and limited', async (t) => {
  const site = await startSite(t);
  await fill(site);
  const send = (v: object, vk?: string): Promise<Answer> => {
    const more = { apikey: undefined, ...(vk !== undefined && { vk }) };
    return site.call('record.insert', { table: 'letters', ...v }, more);
  };
  const letters = async (): Promise<number> =>
    (await site.call('record.list', { table: 'letters', count: true })).data.count;
  const before = await letters();
  const { data } = await send({ code: 'l1', note: 'hello', pin: '1234', website: '' }, 'form-1');
  const shown = { id: data.id, table: 'letters', code: 'l1', note: 'hello', seq: data.seq };
  assert.deepEqual(data, { ...shown, unknowns: [], problems: [] });
  const again = await send({ code: 'l1', note: 'hello', pin: '1234', website: '' }, 'form-1');
  assert.deepEqual([again.replayed, again.data.id], [true, data.id]);
  assert.equal(await letters(), before + 1);
  const caught = await send({ code: 'l2', note: 'buy', website: 'https://spam.example' });
  assert.equal(caught.error, undefined);
  assert.deepEqual(Object.keys(caught.data), Object.keys(data));
  assert.equal(await letters(), before + 1);
  const metrics = await fetch(`${site.url}/svc1/metrics`, { headers: { apikey: site.adminKey } });
  assert.match(await metrics.text(), /^waymark_discarded_forms_total 1$/m);

  let refused: Answer | undefined;
  for (let sent = 0; sent < 60 && refused === undefined; sent += 1) {
    const answer = await send({ code: `many-${sent}` });
    if (answer.error !== undefined) refused = answer;
  }
  assert.equal(refused?.error?.code, 'rate_limited');
  await site.untilLogged(/anonymous_writes/);
});

test('a caller that may edit a row but not read it gets back only the values that it has sent', async (t) => {
  const site = await startSite(t);
  await site.call('table.insert', {
    name: 'stock',
    key: 'sku',
    schema: { properties: { sku: { type: 'string' }, price: { type: 'number' } } },
    edit: ['anonymous'],
  });
  await site.call('record.insert', { table: 'stock', sku: 'A', price: 30 });
  const shown = async (v: object): Promise<unknown> => {
    const more = { apikey: undefined };
    const { data } = await site.call('record.edit', { table: 'stock', sku: 'A', ...v }, more);
    return [data.price, data._unknowns_];
  };
  assert.deepEqual(await shown({ price: 'free' }), [undefined, { price: 'free' }]);
  assert.deepEqual(await shown({ _unknowns_: { price: null } }), [undefined, undefined]);
  assert.deepEqual(await shown({ _unknowns_: { price: 'x' } }), [undefined, { price: 'x' }]);
  assert.deepEqual(await shown({ price: 31 }), [31, undefined]);
});

test('a page of another site writes without a user if anonymous callers may write', async (t) => {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1/32',
    ini: '[auth]\nuser_header = X-User\n',
  });
  const schema = { properties: { who: { type: 'string' }, note: { type: 'string' } } };
  const access = { owner: 'who', insert: ['anonymous'], read: ['user'] };
  await site.call('table.insert', { name: 'notes', schema, ...access });
  const user = { 'X-User': 'ada', 'X-Forwarded-For': '203.0.113.7' };
  let sent = 0;
  const send = async (more: object): Promise<unknown> => {
    const v = { table: 'notes', note: `x${(sent += 1)}` };
    const options = { headers: { ...user, ...more }, apikey: undefined };
    return (await postOperation(site.url, 'svc1.record.insert', v, options)).data.who;
  };
  assert.equal(await send({ origin: site.url, 'sec-fetch-site': 'same-origin' }), 'ada');
  assert.equal(await send({ 'sec-fetch-site': 'cross-site' }), undefined);
  assert.equal(await send({ origin: 'https://evil.example' }), undefined);
  const { data } = await site.call('record.list', { table: 'notes' });
  const owners = (data.rows as { who?: string }[]).map(({ who }) => who);
  assert.deepEqual(owners, ['ada', undefined, undefined]);
});

const shared = startSite(cleaningAfterAll(), {
  server: 'trust_proxy = 127.0.0.1/32',
  ini: '[auth]\nuser_header = X-User\n',
  rules: pages,
}).then(async (site) => ({ site, rows: await fill(site) }));

for (const [name, { scopes, user, sees }] of Object.entries(callers)) {
  test(`a page that the server renders shows rows of its visitor only: ${name}`, async () => {
    const { site, rows } = await shared;
    const key = scopes && (await keyWith(site, scopes));
    const visitor = (one: string) => ({ 'X-User': one, 'X-Forwarded-For': '203.0.113.7' });
    for (const [table, { path }] of Object.entries(rows)) {
      // A page that another visitor has had before is not the page of this one.
      await (await fetch(site.url + path, { headers: visitor('ada') })).text();
      const headers = { ...(key && { apikey: key }), ...(user !== undefined && visitor(user)) };
      const text = await (await fetch(site.url + path, { headers })).text();
      assert.ok(!text.includes(marks.pin), text);
      const shown = all.filter((mark) => text.includes(mark));
      for (const mark of shown) assert.ok(sees[table]?.includes(mark), `${path}: ${text}`);
      if (table === 'open') assert.deepEqual(shown, all);
      if (table === 'own' && user === 'ada') assert.deepEqual(shown, [marks.ada]);
    }
  });
}

test('a feed has rows that its caller may read, before and after', async (t) => {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1/32',
    ini: '[auth]\nuser_header = X-User\n',
  });
  const rows = await fill(site);
  const feeds = await Promise.all(
    Object.entries(callers).map(async ([name, caller]) => ({
      ...caller,
      name,
      ...(await followAll(t, site, caller)),
    })),
  );
  for (const [table, { ids }] of Object.entries(rows)) {
    const [ofNobody, ofAda] = ids;
    await site.call('record.edit', { table, id: ofNobody, note: `again ${marks.nobody}` });
    await site.call('record.edit', { table, id: ofAda, who: 'eve', note: 'given away' });
  }
  // Packets have the order of the log, so those of all other changes come before this one.
  const [first] = rows.open?.ids ?? [];
  await site.call('record.edit', { table: 'open', id: first, note: 'the last one' });
  for (const { name, sees, last, texts } of feeds) {
    await last;
    const shown = new Set<string>();
    for (const text of texts) {
      assert.ok(!text.includes(marks.pin), `${name}: ${text}`);
      for (const mark of all.filter((one) => text.includes(one))) {
        const table = Object.keys(tables).find((one) => text.includes(`"table":"${one}"`)) ?? '';
        assert.ok(sees[table]?.includes(mark), `${name}: ${text}`);
        shown.add(`${table} ${mark}`);
      }
    }
    const expected = Object.entries(sees).flatMap(([table, allowed]) =>
      allowed.map((mark) => `${table} ${mark}`),
    );
    assert.deepEqual([...shown].toSorted(), expected.toSorted(), name);
  }
});

/** Subscribes a caller to all tables; `last` resolves with the packet of the last change. */
async function followAll(t: TestContext, site: TestSite, { scopes, user }: CallerCase) {
  const key = scopes && (await keyWith(site, scopes));
  const headers = user === undefined ? {} : { 'X-User': user, 'X-Forwarded-For': '203.0.113.7' };
  const url = `${site.url.replace('http', 'ws')}/svc1/ws`;
  const socket = await openSocket(t, url, key, headers);
  const texts: string[] = [];
  const last = new Promise<void>((resolve) => {
    socket.websocket.on('message', (bytes: Buffer) => {
      texts.push(bytes.toString());
      if (texts.at(-1)?.includes('the last one')) resolve();
    });
  });
  for (const table of Object.keys(tables)) {
    await socket.call('svc1.record.subscribe', { table, from_seq: 0 });
  }
  return { last, texts };
}

test('the place of a row in a search reveals nothing about the rows of other users', async (t) => {
  const site = await startSite(t, {
    server: 'trust_proxy = 127.0.0.1/32',
    ini: '[auth]\nuser_header = X-User\n',
  });
  const text = { type: 'string' };
  const schema = { type: 'object', properties: { note: text, who: text } };
  const own = { owner: 'who', read: ['user'], insert: ['user'], edit: ['user'] };
  await site.call('svc1.table.insert', { name: 'diary', schema, search: ['note'], ...own });
  const as = (user: string, name: string, v: object) =>
    postOperation(
      site.url,
      `svc1.record.${name}`,
      { table: 'diary', ...v },
      { headers: { 'X-User': user, 'X-Forwarded-For': '203.0.113.7' }, apikey: undefined },
    );
  for (const note of ['lamp', 'lamp and another lamp', 'shade'])
    await as('ada', 'insert', { note });
  const search = () => as('ada', 'list', { text: 'lamp', limit: 1 });
  const before = await search();
  assert.equal(before.data.rows.length, 1, JSON.stringify(before));
  const notes = ['lamp', 'lamp', 'lamp, a long note about something else, and about others'];
  for (const note of notes) await as('bob', 'insert', { note });
  assert.deepEqual(await search(), before);
  const { data } = await as('ada', 'list', { text: 'lamp', limit: 1, after: before.data.next });
  assert.deepEqual(
    [before.data.rows[0].note, data.rows[0].note],
    ['lamp and another lamp', 'lamp'],
  );
});

test('an event of a table that only some scopes read has no values', async (t) => {
  const site = await startSite(t);
  const schema = { type: 'object', properties: { code: { type: 'string' }, pay: {} } };
  const events = { 'pay.changed': { field: 'pay' } };
  for (const [name, read] of [
    ['staff', ['admin']],
    ['prices', ['record.read:prices', 'admin']],
  ] as const) {
    await site.call('svc1.table.insert', { name, schema, key: 'code', events, read });
    await site.call('svc1.record.insert', { table: name, code: 'A', pay: 4711 });
  }
  const { data } = await site.call('svc1.event.list', { type: 'pay.changed' });
  const shown = (data.rows as { data: JsonObject }[]).map((row) => row.data);
  const [staff, prices] = ['staff', 'prices'].map((one) =>
    shown.find(({ table }) => table === one),
  );
  assert.deepEqual(Object.keys(staff ?? {}), ['table', 'id', 'field']);
  assert.equal(prices?.value, 4711);
});
