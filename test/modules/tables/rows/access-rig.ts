import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { cleaningAfterAll } from '../../../folder.ts';
import { openSocket, postOperation, startSite, type TestSite } from '../../../harness.ts';

/** Texts in rows: of the row without an owner, of the row of ada, and of a writeOnly field. */
export const marks = { nobody: 'MARKNOBODY', ada: 'MARKADA', pin: 'MARKPIN' } as const;

const properties = {
  code: { type: 'string' },
  note: { type: 'string' },
  who: { type: 'string' },
  pin: { type: 'string', writeOnly: true },
  like: { type: 'string', 'x-table': 'closed' },
};

/** Tables by their access; each has a row without an owner and a row of ada. */
export const tables: Readonly<Record<string, object>> = {
  closed: {},
  admins: { read: ['admin'], insert: ['admin'], edit: ['admin'] },
  own: { owner: 'who', read: ['user'], insert: ['user'], edit: ['user'] },
  open: { read: ['anonymous'] },
  letters: { insert: ['anonymous'], honeypot: 'website' },
};

/** The texts that a caller may see, by table; no caller may see that of the writeOnly field. */
type Seen = Readonly<Record<string, readonly string[]>>;

/** The texts that some caller may see. */
export const all = [marks.nobody, marks.ada];
const everything: Seen = { closed: all, own: all, open: all, letters: all, admins: [] };
const onlyOpen: Seen = { open: all };

/** A caller: the scopes of its key, its user, and the texts that it may see. */
export interface CallerCase {
  readonly scopes?: readonly string[];
  readonly user?: string;
  readonly sees: Seen;
}

/** Callers with every kind of access. */
export const callers: Readonly<Record<string, CallerCase>> = {
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

type Way = 'HTTP JSON' | 'HTTP form' | 'websocket';

/** How a caller sends requests; each resolves to the whole text of the answer. */
const ways: Readonly<
  Record<Way, (t: TestContext, site: TestSite, headers: Record<string, string>) => Promise<Ask>>
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

/** Makes the tables, their rows, and a hook for each change. */
export async function fill(site: TestSite): Promise<Readonly<Record<string, Rows>>> {
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
export const pages = Object.keys(tables).map((table) => ({
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

/** Defines a suite for a way to send requests: each caller gets the rows that it may see. */
export function testWay(way: Way): void {
  const connect = ways[way];
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

/** A new key with these scopes. */
export async function keyWith(site: TestSite, scopes: readonly string[]): Promise<string> {
  const { data, error } = await site.call('key.insert', { name: 'x', scopes });
  assert.equal(error, undefined, JSON.stringify(error));
  return data.key;
}
