import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { runHere } from '../../../cli/here.ts';
import { startSite, type Answer } from '../../../harness.ts';
import { transports } from '../../status/transports.ts';

const ui = 'svc1.userinterface';

interface Row {
  /** The sentence of the specification or the contract. */
  readonly says: string;
  readonly v: object;
  /** Field and reason of each problem. */
  readonly problems: readonly (readonly [field: string, reason: string])[];
  /** What waits in `_unknowns_`. */
  readonly waits?: object;
}

const each = 'CONTRACT §4.1: "One invalid member waits alone; its valid siblings count."';
const told =
  'CONTRACT §4.1: "What is valid but can have no effect … is told as well (`no_effect`)"';
const fetched = (enginedata: object) => ({
  path: '/from/*',
  kind: 'content.fetch',
  enginedata: { source: 'https://source.example/*', ...enginedata },
});
const crumb = (path: string, enginedata: object, more: object = {}) => ({
  ...{ path, kind: 'resolve', enginedata },
  ...more,
});
const neverSent = {
  'Content-Length': '5',
  'Transfer-Encoding': 'chunked',
  Connection: 'close',
  TE: 'trailers',
  Upgrade: 'x',
  Expect: '100-continue',
  Via: '1.1 x',
  'Keep-Alive': '5',
  Trailer: 'x',
  'Proxy-Authorization': 'x',
};

const rows: readonly Row[] = [
  {
    says: each,
    v: fetched({ headers: { ...neverSent, 'X-Shop': '7' } }),
    problems: Object.keys(neverSent).map((name) => [`enginedata.headers.${name}`, 'bad_format']),
    waits: { enginedata: { headers: neverSent } },
  },
  {
    says: each,
    v: fetched({ request_headers: { Via: '', 'X-Shop': '7' } }),
    problems: [['enginedata.request_headers.Via', 'bad_format']],
    waits: { enginedata: { request_headers: { Via: '' } } },
  },
  {
    says: told,
    v: fetched({ pass: ['Cookie', 'Host', 'Server', 'Connection', 'Via', 'X-Forwarded-For'] }),
    problems: [
      ['enginedata.pass[1]', 'no_effect'],
      ['enginedata.pass[3]', 'no_effect'],
      ['enginedata.pass[4]', 'no_effect'],
      ['enginedata.pass[5]', 'no_effect'],
    ],
  },
  {
    says: each,
    v: {
      path: '/fields',
      content: 'x',
      headers: { 'X-Good': 'a', 'Content-Length': '5', 'X-Number': 5, 'X-Var': '${hots}' },
    },
    problems: [
      ['headers.Content-Length', 'bad_format'],
      ['headers.X-Number', 'wrong_type'],
      ['headers.X-Var', 'bad_format'],
    ],
    waits: { headers: { 'Content-Length': '5', 'X-Number': 5, 'X-Var': '${hots}' } },
  },
  {
    says: told,
    v: crumb('a', { target: '/x' }, { httpresponse: 404 }),
    problems: [['httpresponse', 'no_effect']],
  },
  {
    says: told,
    v: crumb('a', { target: '/x', status: 200 }),
    problems: [['enginedata.status', 'no_effect']],
  },
  {
    says: told,
    v: crumb('a', { target: '/x', when: [{ if: { lang: 'de' }, target: '/de', status: 404 }] }),
    problems: [['enginedata.when[0].status', 'no_effect']],
  },
  {
    says: told,
    v: crumb('a', { target: 'key:none-such', status: 301 }),
    problems: [
      ['enginedata.status', 'no_effect'],
      ['enginedata.target', 'no_effect'],
    ],
  },
  {
    says: told,
    v: crumb('a', { target: '/x', when: [{ if: { lang: 'de' }, target: 'key:a' }] }),
    problems: [['enginedata.when[0].target', 'no_effect']],
  },
  {
    says: told,
    v: crumb('a', { target: 'key:a' }),
    problems: [['enginedata.target', 'no_effect']],
  },
  {
    says: told,
    v: crumb('/w/*', { target: 'key:/w/a' }),
    problems: [['enginedata.target', 'no_effect']],
  },
  { says: told, v: crumb('a', { target: 'key:good' }), problems: [] },
  { says: told, v: crumb('a', { target: '/x' }, { httpresponse: 308 }), problems: [] },
  {
    says: told,
    v: crumb(
      'a',
      { html: 'x', when: [{ if: { lang: 'de' }, target: '/de' }] },
      { httpresponse: 404 },
    ),
    problems: [],
  },
  {
    says: told,
    v: { path: '/new', kind: 'insert-record', table: 'lamsp' },
    problems: [['table', 'no_effect']],
  },
  { says: told, v: { path: '/new', kind: 'insert-record', table: 'lamps' }, problems: [] },
  ...['edit-record', 'insert-record', 'delete-record'].map((kind): Row => {
    return { says: told, v: { path: '/new', kind }, problems: [['table', 'no_effect']] };
  }),
  {
    says: told,
    v: { path: '/new', kind: 'edit-record', table: 7 },
    problems: [['table', 'wrong_type']],
    waits: { table: 7 },
  },
  {
    says: told,
    v: { path: '/both', content: 'x', engine: 'html', enginedata: { html: 'y' } },
    problems: [['engine', 'no_effect']],
  },
  { says: told, v: { path: '/one', engine: 'html', enginedata: { html: 'y' } }, problems: [] },
  ...['/missing', '/shown'].map((page): Row => {
    const v = { path: '/shown', engine: 'html', enginedata: { html: 'y', page } };
    return { says: told, v, problems: [['enginedata.page', 'no_effect']] };
  }),
  {
    says: told,
    v: { path: '/frame', engine: 'html', enginedata: { html: 'y', page: '/generic' } },
    problems: [],
  },
  {
    says: told,
    v: {
      ...{ path: '/new', kind: 'insert-record', table: 'theirs' },
      enginedata: {
        submit: { url: 'https://data.example/svc1/record/insert', a: 'svc1.record.insert' },
      },
    },
    problems: [],
  },
];

const served = [
  crumb('good', { target: '/good' }),
  { path: '/generic', kind: 'content', content: '<script></script>' },
];

for (const [transport, open] of Object.entries(transports)) {
  suite(`what a page rule has no use for is told, over ${transport}`, () => {
    for (const { says, v, problems, waits } of rows) {
      test(`${JSON.stringify(v).slice(0, 120)} — ${says}`, async (t) => {
        const site = await startSite(t, { rules: [...served] });
        const schema = { type: 'object', properties: { name: { type: 'string' } } };
        await site.call('svc1.table.insert', { name: 'lamps', schema });
        const call = await open(site);
        const { data } = await call(`${ui}.insert`, v);
        assert.deepEqual(problemsOf(data), problems);
        assert.deepEqual(data._unknowns_, waits);
      });
    }
  });
}

/** All rows as operations that go together: each at a path of its own. */
const together = rows.map(({ v, problems }, at) => {
  const named = JSON.stringify(v)
    .replace(/"path":"(\/?)([a-z]+)/, `"path":"$1$2${at}`)
    .replaceAll('key:a"', `key:a${at}"`)
    .replaceAll('key:/w/', `key:/w${at}/`);
  return { a: `${ui}.insert`, v: JSON.parse(named) as object, problems: problems.toSorted() };
});

async function startTogether(t: TestContext) {
  const site = await startSite(t, { rules: [...served] });
  const schema = { type: 'object', properties: { name: { type: 'string' } } };
  await site.call('svc1.table.insert', { name: 'lamps', schema });
  const file = join(site.folder, 'rules.ndjson');
  const lines = together.map(({ a, v }) => `${JSON.stringify({ a, v })}\n`).join('');
  await writeFile(file, lines);
  return { site, file, lines };
}

interface Line {
  readonly line: number;
  readonly problems: readonly { readonly field: string; readonly reason: string }[];
}

/** The problems of each line of an import. */
function problemsByLine(unknowns: readonly Line[]) {
  return together.map((_, at) => {
    const { problems = [] } = unknowns.find(({ line }) => line === at + 1) ?? {};
    return problems.map(({ field, reason }) => [field, reason]).toSorted();
  });
}

suite('an import and a batch tell what an insert does', () => {
  const expected = together.map(({ problems }) => problems);

  for (const [transport, open] of Object.entries(transports)) {
    test(`by their operations, over ${transport}`, async (t) => {
      const { site, lines } = await startTogether(t);
      const call = await open(site);
      const { data } = await call(`${ui}.import`, { ndjson: lines });
      assert.deepEqual(problemsByLine(data.unknowns as Line[]), expected);
      assert.equal(data.kept, expected.filter((problems) => problems.length > 0).length);
      const { data: undo } = await call('svc1.change.invalidate', { txn: data.txn });
      await call('svc1.change.invalidate', { txn: data.txn, confirm: undo.digest });
      const operations = together.map(({ a, v }) => ({ a, v }));
      const { data: batched } = await call('svc1.batch', { operations });
      assert.deepEqual(
        (batched.results as Partial<Line>[]).map(({ problems = [] }) =>
          problems.map(({ field, reason }) => [field, reason]).toSorted(),
        ),
        expected,
      );
    });
  }

  test('by `waymark import` to a server and into a data folder', async (t) => {
    const { site, file } = await startTogether(t);
    const env = { WAYMARK_APIKEY: site.adminKey };
    const sent = await runHere(['import', file, '--url', site.url, '--json'], { env });
    assert.deepEqual(
      problemsByLine((JSON.parse(sent.out) as { unknowns: Line[] }).unknowns),
      expected,
    );
    const { file: other, site: local } = await startTogether(t);
    const done = await runHere(['import', other, '--config', local.iniFile, '--json'], { env });
    assert.equal(done.code, 0, done.err);
    const report = JSON.parse(done.out) as { unknowns: Line[]; kept: number };
    // Without the server, nothing says which pages its files and other servers have.
    const offline = expected.map((problems) =>
      problems.filter(([field]) => field !== 'enginedata.page'),
    );
    assert.deepEqual(problemsByLine(report.unknowns), offline);
    assert.equal(report.kept, offline.filter((problems) => problems.length > 0).length);
    assert.match(done.err, /^line \d+: warning: enginedata\.target has no effect now: /m);
  });
});

test('an edit keeps the fields of a rule beside one that is not valid, and takes it when corrected', async (t) => {
  const site = await startSite(t);
  const v = { path: '/fields', content: 'x', headers: { 'X-A': '1', 'X-B': '2' } };
  const { data: saved } = await site.call(`${ui}.insert`, v);
  const { id } = saved;
  const headers = { 'X-A': 5, 'X-C': '3' };
  const { data: edited } = await site.call(`${ui}.edit`, { id, headers });
  assert.deepEqual(edited.headers, { 'X-C': '3', 'X-A': '1' });
  assert.deepEqual(edited._unknowns_, { headers: { 'X-A': 5 } });
  const reply = await fetch(`${site.url}/fields`);
  assert.deepEqual([reply.headers.get('x-a'), reply.headers.get('x-c')], ['1', '3']);
  const { data: again } = await site.call(`${ui}.edit`, { id, content: 'y' });
  assert.deepEqual([again.headers, again._unknowns_], [edited.headers, edited._unknowns_]);
  const { data: whole } = await site.call(`${ui}.edit`, { id, headers: { 'X-A': '5' } });
  assert.deepEqual([whole.headers, whole._unknowns_], [{ 'X-A': '5' }, undefined]);
});

function problemsOf(data: Answer['data']): readonly (readonly [string, string])[] {
  const problems = data.problems as readonly { readonly field: string; readonly reason: string }[];
  return problems.map(({ field, reason }) => [field, reason]);
}
