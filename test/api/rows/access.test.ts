import type { JsonObject } from '../../../src/model/json.ts';
import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { cleaningAfterAll } from '../../folder.ts';
import { openSocket, postOperation, startSite, type Answer, type TestSite } from '../../harness.ts';

/** Texts in rows: of the row without an owner, of the row of ada, and of a writeOnly field. */
const marks = { nobody: 'MARKNOBODY', ada: 'MARKADA', pin: 'MARKPIN' } as const;

const properties = {
  code: { type: 'string' },
  note: { type: 'string' },
  who: { type: 'string' },
  pin: { type: 'string', writeOnly: true },
  like: { type: 'string', 'x-table': 'closed' },
};

/** Tables by their access; each has a row without an owner and a row of ada. */
const tables: Readonly<Record<string, object>> = {
  closed: {},
  admins: { read: ['admin'], insert: ['admin'], edit: ['admin'] },
  own: { owner: 'who', read: ['user'], insert: ['user'], edit: ['user'] },
  open: { read: ['anonymous'] },
  letters: { insert: ['anonymous'], honeypot: 'website' },
};

/** The texts that a caller may see, by table; no caller may see that of the writeOnly field. */
type Seen = Readonly<Record<string, readonly string[]>>;

const all = [marks.nobody, marks.ada];
const everything: Seen = { closed: all, own: all, open: all, letters: all, admins: [] };
const onlyOpen: Seen = { open: all };

interface CallerCase {
  readonly scopes?: readonly string[];
  readonly user?: string;
  readonly sees: Seen;
}

const callers: Readonly<Record<string, CallerCase>> = {
  nobody: { sees: onlyOpen },
  'the user ada': { user: 'ada', sees: { ...onlyOpen, own: [marks.ada] } },
  'the user bob': { user: 'bob', sees: { ...onlyOpen, own: [] } },
  render: { scopes: ['render'], sees: onlyOpen },
  read: { scopes: ['read'], sees: onlyOpen },
  design: { scopes: ['design'], sees: onlyOpen },
  webhook: { scopes: ['webhook'], sees: onlyOpen },
  event: { scopes: ['event'], sees: onlyOpen },
  'record.write': { scopes: ['record.write'], sees: onlyOpen },
  'record.write:closed': { scopes: ['record.write:closed'], sees: onlyOpen },
  'record.read:closed': { scopes: ['record.read:closed'], sees: { ...onlyOpen, closed: all } },
  'record.read:other': { scopes: ['record.read:other'], sees: onlyOpen },
  'record.read': { scopes: ['record.read'], sees: everything },
  verify: { scopes: ['verify'], sees: everything },
  admin: { scopes: ['admin'], sees: { ...everything, admins: all } },
};

type Ask = (name: string, v: object, more?: { vk?: string; qk?: string }) => Promise<string>;

/** How a caller sends requests; each resolves to the whole text of the answer. */
const ways: Readonly<
  Record<string, (t: TestContext, site: TestSite, headers: Record<string, string>) => Promise<Ask>>
> = {
  'HTTP JSON': (_t, site, headers) =>
    Promise.resolve(async (name, v, more = {}) =>
      JSON.stringify(
        await postOperation(site.url, name, v, { ...more, headers, apikey: headers.apikey }),
      ),
    ),
  'HTTP form': (_t, site, headers) =>
    Promise.resolve(async (name, v, { vk, qk } = {}) => {
      const body = new URLSearchParams(formPairs(v, '_v'));
      if (vk !== undefined) body.set('_vk', vk);
      if (qk !== undefined) body.set('_qk', qk);
      const path = name.replace('svc1.', '').replace('.', '/');
      const sent = { method: 'POST', headers, body };
      return (await fetch(`${site.url}/svc1/${path}`, sent)).text();
    }),
  websocket: async (t, site, { apikey, ...headers }) => {
    const url = `${site.url.replace('http', 'ws')}/svc1/ws`;
    const socket = await openSocket(t, url, apikey, headers);
    return async (name, v, more) => JSON.stringify(await socket.call(name, v, more));
  },
};

function formPairs(value: object, name: string): string[][] {
  return Object.entries(value).flatMap(([member, one]: [string, unknown]) =>
    typeof one === 'object' && one !== null
      ? formPairs(one, `${name}.${member}`)
      : [[`${name}.${member}`, String(one)]],
  );
}

interface Rows {
  readonly ids: readonly string[];
  readonly seq: number;
  /** The page that shows the rows. */
  readonly path: string;
  /** A hook that hears of each change. */
  readonly hook: string;
  /** The ids of the events about changes of the rows. */
  readonly events: readonly string[];
}

async function fill(site: TestSite): Promise<Readonly<Record<string, Rows>>> {
  const rows: Record<string, Rows> = {};
  const url = 'http://127.0.0.1:1/';
  const { data: hook } = await site.call('webhook.insert', { url, event: ['record.changed'] });
  for (const [name, access] of Object.entries(tables)) {
    const schema = { type: 'object', properties };
    const definition = { name, schema, key: 'code', index: ['note'], search: ['note'], ...access };
    const made = await site.call('table.insert', definition);
    assert.equal(made.error, undefined, JSON.stringify(made.error));
    const ids: string[] = [];
    let seq = 0;
    for (const [who, note] of Object.entries({ nobody: marks.nobody, ada: marks.ada })) {
      const v = { table: name, code: who, note, pin: marks.pin, who, like: 'ada' };
      const { data } = await site.call('record.insert', v);
      assert.ok(!JSON.stringify(data).includes(marks.pin), 'the admin does not see it either');
      // A value that waits is not shown either, and there is a past to read.
      await site.call('record.edit', { table: name, id: data.id, pin: [marks.pin], colour: note });
      ids.push(data.id);
      seq = data.seq;
    }
    const { data: listed } = await site.call('event.list', { limit: 1000 });
    const events = (listed.rows as { id: string; data: { table?: string } }[])
      .filter((event) => event.data.table === name)
      .map((event) => event.id);
    assert.ok(events.length >= ids.length, 'there are events to read');
    rows[name] = { ids, seq, path: `/rows-${name}`, hook: hook.id, events };
  }
  return rows;
}

/** Every operation by which a row could get out, with inputs about each row. */
function* requests(
  table: string,
  { ids, seq, path, hook, events }: Rows,
): Iterable<readonly [string, object, { qk: string }?]> {
  yield ['svc1.record.list', { table, count: true }];
  yield ['svc1.record.list', { table, as_of: String(seq) }];
  yield ['svc1.record.list', { table, text: 'mark' }];
  yield ['svc1.record.list', { table, where: { note: { prefix: 'MARK' } }, sort: '-note' }];
  yield ['svc1.record.get', { table }];
  yield ['svc1.record.get', { table, text: 'mark' }];
  yield ['svc1.record.get', { table, as_of: String(seq), sort: '-note' }];
  yield ['svc1.record.schema', { table }];
  for (const [at, id] of ids.entries()) {
    const code = ['nobody', 'ada'][at];
    yield ['svc1.record.read', { table, id }];
    yield ['svc1.record.read', { table, code }];
    yield ['svc1.record.read', { table, id, as_of: String(seq) }];
    yield ['svc1.record.read', { table, id }, { qk: 'history' }];
    yield ['svc1.record.get', { table, id }];
    yield ['svc1.record.get', { table, code }];
    yield ['svc1.record.get', { table, code, as_of: String(seq) }];
    yield ['svc1.record.invalidate', { table, id }];
    yield ['svc1.record.invalidate', { table, id, from: '1' }];
    yield ['svc1.record.edit', { table, id, if_seq: 1, note: 'x' }];
    yield ['svc1.record.edit', { table, code, if_seq: 1, note: 'x' }];
    yield ['svc1.record.insert', { table, code }];
    // A row of another table counts as missing in this one.
    yield ['svc1.record.read', { table: 'open', id }];
    yield ['svc1.record.get', { table: 'own', id }];
  }
  yield ['svc1.record.invalidate', { table, from: '1' }];
  yield ['svc1.userinterface.list', { text: 'MARK' }];
  yield ['svc1.event.list', {}];
  yield ['svc1.webhook.list', { text: 'MARK' }];
  yield ['svc1.webhook.deliveries', { id: hook }];
  yield ['svc1.change.list', { limit: 1000 }];
  yield ['svc1.userinterface.explain', { path }];
  const origin = 'http://localhost';
  yield ['svc1.userinterface.get_content', { origin, path }];
  yield ['svc1.userinterface.get_content', { origin, path, as_of: String(seq) }];
  for (const id of events) yield ['svc1.event.read', { id }];
}

/** Pages that the server renders, each with the rows of one table. */
const pages = Object.keys(tables).map((table) => ({
  path: `/rows-${table}`,
  kind: 'content',
  engine: 'template',
  enginedata: {
    render: 'server',
    rows: { all: { table } },
    template:
      '{% for one in rows.all %}<i>{{ one.note }}{{ one.pin }}{{ one.colour }}</i>{% endfor %}',
  },
}));

for (const [way, connect] of Object.entries(ways)) {
  suite(`no row reaches a caller without access, over ${way}`, () => {
    // None of the requests changes a row.
    const started = startSite(cleaningAfterAll(), {
      server: 'trust_proxy = 127.0.0.1/32',
      ini: '[auth]\nuser_header = X-User\n',
      rules: pages,
    }).then(async (site) => ({ site, rows: await fill(site) }));
    for (const [name, { scopes, user, sees }] of Object.entries(callers)) {
      test(name, async (t) => {
        const { site, rows } = await started;
        const headers = {
          ...(scopes !== undefined && { apikey: await keyWith(site, scopes) }),
          ...(user !== undefined && { 'X-User': user, 'X-Forwarded-For': '203.0.113.7' }),
        };
        const ask = await connect(t, site, headers);
        const shown = new Map<string, Set<string>>();
        for (const [table, ofTable] of Object.entries(rows)) {
          const allowed = sees[table] ?? [];
          for (const [operation, v, more] of requests(table, ofTable)) {
            const answer = await ask(operation, v, more);
            const what = `${operation} ${JSON.stringify(v)}: ${answer}`;
            assert.ok(!answer.includes(marks.pin), what);
            for (const mark of all) {
              if (!answer.includes(mark)) continue;
              assert.ok(allowed.includes(mark), what);
              shown.set(table, (shown.get(table) ?? new Set()).add(mark));
            }
          }
        }
        // The reverse: a caller that may see a row gets it.
        for (const [table, allowed] of Object.entries(sees)) {
          assert.deepEqual(
            [...(shown.get(table) ?? [])].toSorted(),
            [...allowed].toSorted(),
            table,
          );
        }
      });
    }
  });
}

async function keyWith(site: TestSite, scopes: readonly string[]): Promise<string> {
  const { data, error } = await site.call('key.insert', { name: 'x', scopes });
  assert.equal(error, undefined, JSON.stringify(error));
  return data.key;
}

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
  const send = async (more: object): Promise<unknown> => {
    const v = { table: 'notes', note: 'x' };
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
