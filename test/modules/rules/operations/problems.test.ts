import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { JsonObject } from '../../../../src/core/values/json/json.ts';
import type { Problem } from '../../../../src/core/values/failure.ts';
import { cleaningAfterAll } from '../../../folder.ts';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import { runHere } from '../../../cli/here.ts';
import { transports } from '../../status/transports.ts';

const rule = 'svc1.userinterface';
const page = { path: '/a', kind: 'content', content: 'x' };
const fetched = { path: '/a', kind: 'content.fetch' };
const source = 'http://far.example/*';
const crumb = { path: 'k', kind: 'resolve' };

/** Field, reason and suggestion of each problem in an answer. */
function told({ data, error }: Answer): readonly string[] {
  const problems = (data?.problems ?? error?.problems ?? []) as readonly Problem[];
  for (const { message } of problems) assert.match(message, /[.?]$|served there/);
  return problems.map(({ field, reason, suggestion }) =>
    suggestion === undefined ? `${field} ${reason}` : `${field} ${reason} ${suggestion}`,
  );
}

/** Sent fields, the problems of the answer, and the waiting fields. */
const cases: readonly (readonly [
  title: string,
  sent: JsonObject,
  problems: readonly string[],
  waiting?: JsonObject,
])[] = [
  ['nothing wrong', { ...page, httpresponse: 201 }, []],
  ['an unknown field', { ...page, contnt: 'y' }, ['contnt unknown_field content'], { contnt: 'y' }],
  ['a field of the server', { ...page, meta: {} }, ['meta unknown_field'], { meta: {} }],
  [
    'a number as text',
    { ...page, httpresponse: '404', rve: '1e3' },
    ['httpresponse wrong_type', 'rve wrong_type'],
    { httpresponse: '404', rve: '1e3' },
  ],
  ['a status', { ...page, httpresponse: 99 }, ['httpresponse out_of_range'], { httpresponse: 99 }],
  [
    'a field of another kind',
    { ...page, ...crumb, table: 't', enginedata: { target: '/' } },
    ['content not_for_kind', 'table not_for_kind'],
    { content: 'x', table: 't' },
  ],
  ['an engine', { ...page, engine: 'htlm' }, ['engine unknown_engine html'], { engine: 'htlm' }],
  ['a date', { ...page, designed_at: 'soon' }, ['designed_at bad_format'], { designed_at: 'soon' }],
  ['an origin', { ...page, origin: 'ftp://x' }, ['origin bad_format'], { origin: 'ftp://x' }],
  ['content.fetch without enginedata', fetched, ['enginedata.source missing']],
  [
    'content.fetch with unknown members',
    { ...fetched, enginedata: { source, time_out: '5s', header: {}, statuss: 1 } },
    [
      'enginedata.time_out unknown_field timeout',
      'enginedata.header unknown_field headers',
      'enginedata.statuss unknown_field',
    ],
  ],
  [
    'a source that is no URL',
    { ...fetched, enginedata: { source: 'far.example', pass: ['cookie'] } },
    ['enginedata.source bad_format'],
    { enginedata: { source: 'far.example' } },
  ],
  [
    'a source that is no text',
    { ...fetched, enginedata: { source: 5 } },
    ['enginedata.source wrong_type'],
    { enginedata: { source: 5 } },
  ],
  [
    'one bad header among good ones',
    { ...fetched, enginedata: { source, headers: { 'X Y': 'a', 'X-Z': 'b', 'X-N': 5 } } },
    ['enginedata.headers.X Y bad_format', 'enginedata.headers.X-N wrong_type'],
    { enginedata: { headers: { 'X Y': 'a', 'X-N': 5 } } },
  ],
  [
    'a private source',
    { ...fetched, enginedata: { source: ['http://10.0.0.1/*', 'http://localhost/*', source] } },
    ['enginedata.source unreachable_private', 'enginedata.source unreachable_private'],
  ],
  [
    'one bad script',
    { ...page, content: null, engine: 'html', enginedata: { scripts: 'one', own: 1 } },
    ['enginedata.scripts wrong_type'],
    { enginedata: { scripts: 'one' } },
  ],
  [
    'one bad script in a list',
    { ...page, content: null, engine: 'html', enginedata: { scripts: ['a', 5] } },
    ['enginedata.scripts[1] wrong_type'],
    { enginedata: { scripts: ['a', 5] } },
  ],
  [
    'a form with a wrong address and unknown members',
    {
      ...{ path: '/f', kind: 'insert-record', table: 't' },
      enginedata: { submit: { url: 'x', a: 'b', vv: 1 }, feilds: [] },
    },
    [
      'enginedata.submit.url bad_format',
      'enginedata.feilds unknown_field fields',
      'enginedata.submit.vv unknown_field v',
    ],
    { enginedata: { submit: { url: 'x', a: 'b', vv: 1 } } },
  ],
  [
    'a breadcrumb with wrong branches',
    {
      ...crumb,
      enginedata: {
        target: '/a',
        when: [
          { if: { contry: 'CH' }, target: '/b' },
          { if: { country: 'Switzerland' }, target: '/b' },
          { target: '/b' },
          { if: { lang: 'de' }, targt: '/b' },
          7,
        ],
      },
    },
    [
      'enginedata.when[0].if.contry unknown_field country',
      'enginedata.when[1].if.country bad_format',
      'enginedata.when[2].if missing',
      'enginedata.when[3] missing',
      'enginedata.when[4] wrong_type',
      'enginedata.when[3].targt unknown_field target',
    ],
  ],
  [
    'a breadcrumb with a script for its target',
    { ...crumb, enginedata: { target: 'javascript:x', html: '<b>' } },
    ['enginedata.target bad_format'],
    { enginedata: { target: 'javascript:x' } },
  ],
  ['a breadcrumb that leads nowhere', crumb, ['enginedata.target no_effect']],
  [
    'a URL as the key of a breadcrumb',
    { ...crumb, path: 'https://old.example/a?b=1', enginedata: { target: '/a' } },
    ['path no_effect'],
  ],
  ['a path of Waymark itself', { ...page, path: '/svc1/x' }, ['path no_effect']],
];

/** Removes a rule, so that it hides no other one. */
async function remove(site: TestSite, id: string): Promise<void> {
  const report = await site.call(`${rule}.invalidate`, { id });
  await site.call(`${rule}.invalidate`, { id, confirm: report.data.digest });
}

for (const [transport, open] of Object.entries(transports)) {
  suite(`the answer to a write names its problems, over ${transport}`, () => {
    const shared = startSite(cleaningAfterAll());
    for (const [title, sent, problems, waiting = {}] of cases) {
      test(title, async () => {
        const site = await shared;
        const call = await open(site);
        const inserted = await call(`${rule}.insert`, sent);
        assert.deepEqual(told(inserted), problems);
        assert.deepEqual(inserted.data._unknowns_ ?? {}, waiting);
        // An edit with the same fields has the same problems.
        const plain = await call(`${rule}.insert`, { ...page, path: '/b' });
        const { id } = plain.data;
        const edited = told(await call(`${rule}.edit`, { ...sent, id }));
        // The content that it had waits by the new kind, though this write does not name it.
        const moves = sent.kind !== 'content' && !Object.hasOwn(sent, 'content');
        const expected = [...problems, ...(moves ? ['content not_for_kind'] : [])];
        assert.deepEqual(
          edited.filter((one) => one !== 'path shadowed').toSorted(),
          expected.toSorted(),
        );
        for (const gone of [inserted.data.id, id]) await remove(site, gone as string);
      });
    }

    test('names what waits by a write that does not name it, and strict handling refuses that', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      const strict = await strictly(site, transport);
      const { id } = (await call(`${rule}.insert`, page)).data;
      const other = { id, kind: 'resolve', enginedata: { target: '/y' } };
      const refused = await strict('edit', other);
      assert.deepEqual([refused.error?.code, refused.error?.field], ['invalid', 'content']);
      const moved = await call(`${rule}.edit`, other);
      assert.deepEqual([moved.data.unknowns, told(moved)], [['content'], ['content not_for_kind']]);
      // It still waits after an edit of another field, which made no mistake of its own.
      const later = await strict('edit', { id, enginecomments: 'x' });
      assert.deepEqual([later.data.unknowns, told(later)], [['content'], ['content not_for_kind']]);
      const hook = { url: 'https://far.example/', event: 'record.changed', frequency: 'bad' };
      const { data: inserted } = await call('svc1.webhook.insert', hook);
      const paused = await call('svc1.webhook.edit', { id: inserted.id, order: true });
      assert.deepEqual(paused.data.unknowns, ['frequency']);
      assert.equal((paused.data.problems as readonly Problem[])[0]?.field, 'frequency');
    });

    test('strict handling refuses a write with a mistake', async (t) => {
      const site = await startSite(t);
      const strict = await strictly(site, transport);
      const lax = ['unreachable_private', 'no_effect', 'shadowed'];
      for (const [title, sent, problems] of cases) {
        const answer = await strict('insert', sent);
        const isMistake = problems.some((one) => !lax.some((reason) => one.includes(reason)));
        assert.equal(answer.error?.code, isMistake ? 'invalid' : undefined, title);
        const names = told(answer).filter((one) => one !== 'path shadowed');
        assert.deepEqual(names, problems, title);
      }
      const { data } = await site.call(`${rule}.insert`, { ...page, path: '/edited' });
      const refused = await strict('edit', { id: data.id, content: 'y', lang: 5 });
      assert.deepEqual([refused.error?.field, told(refused)], ['lang', ['lang wrong_type']]);
      assert.equal((await fetch(`${site.url}/edited`)).status, 200);
      assert.equal(await (await fetch(`${site.url}/edited`)).text(), 'x');
    });
  });
}

/** Writes with `handling=strict`: over HTTP in the header field, elsewhere in the envelope. */
async function strictly(site: TestSite, transport: string) {
  if (transport === 'HTTP') {
    const headers = { prefer: 'respond-async, handling = "strict"' };
    return (name: string, v: object) => site.call(`${rule}.${name}`, v, { headers });
  }
  const socket = await site.socket(site.adminKey);
  return (name: string, v: object) =>
    socket.call(`${rule}.${name}`, v, { prefer: 'handling=strict' } as object);
}

test('an invalid member waits alone, and becomes a field once it is valid', async (t) => {
  const site = await startSite(t);
  const { data } = await site.call(`${rule}.insert`, {
    ...{ path: '/e', kind: 'content', engine: 'template' },
    enginedata: { html: '<b>', template: 5, css: 'a' },
  });
  assert.deepEqual(data.enginedata, { html: '<b>', css: 'a' });
  const { data: edited } = await site.call(`${rule}.edit`, { id: data.id, engine: 'html' });
  assert.deepEqual(edited.enginedata, { html: '<b>', css: 'a', template: 5 });
  assert.equal(edited._unknowns_, undefined);
  const next = { html: 5, css: 'b' };
  const { data: again } = await site.call(`${rule}.edit`, { id: data.id, enginedata: next });
  assert.deepEqual(again.enginedata, { html: '<b>', css: 'b' }, 'what was valid stays in force');
  assert.deepEqual(again._unknowns_, { enginedata: { html: 5 } });
});

test('with very many invalid members, their outer member waits', async (t) => {
  const site = await startSite(t);
  const wrong = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`w${at}`, at]));
  const { data } = await site.call(`${rule}.insert`, {
    ...{ path: '/f', kind: 'insert-record', table: 't' },
    enginedata: { submit: { url: '/a', a: 'b' }, words: { ...wrong, insert: 'Add' }, ...wrong },
  });
  assert.equal(data._unknowns_.enginedata.words.insert, 'Add');
  assert.equal(data.enginedata.words, undefined);
  assert.equal(data.enginedata.w0, 0);
  assert.equal(data.problems.length, 100);
});

test('a rule whose origin is not valid matches nothing, and explain says so', async (t) => {
  const site = await startSite(t);
  const sent = { path: '/w', kind: 'content', content: 'x', origin: 'ftp://x' };
  const { data } = await site.call(`${rule}.insert`, sent);
  const { id } = data;
  const status = async () => (await fetch(`${site.url}/w`)).status;
  assert.equal(await status(), 404);
  const { data: explained } = await site.call(`${rule}.explain`, { path: '/w' });
  assert.equal(explained.winner, null);
  const [lost] = explained.tried.find(
    ({ source: name }: { source: string }) => name === 'stored',
  ).candidates;
  assert.deepEqual([lost.id, lost.lost.code], [id, 'waits']);
  await site.call(`${rule}.edit`, { id, origin: site.url });
  assert.equal(await status(), 200);
  // The former origin stays in the record without effect: it may cover more than intended.
  const { data: edited } = await site.call(`${rule}.edit`, { id, origin: 'htp://shop.example' });
  assert.equal(edited.origin, site.url);
  assert.equal(await status(), 404);
  const then = { path: '/w', as_of: String(edited.seq - 1) };
  const { data: before } = await site.call(`${rule}.explain`, then);
  assert.equal(before.status, 200);
  await site.call(`${rule}.edit`, { id, origin: null });
  assert.equal(await status(), 200);
});

test('a rule that a file or rule hides is a problem', async (t) => {
  const site = await startSite(t, {
    ini: '[disk.site]\nroot = site\n',
    files: { 'site/hidden.html': 'x' },
  });
  const insert = (v: object) => site.call(`${rule}.insert`, v);
  const hidden = await insert({ ...page, path: '/hidden.html' });
  assert.deepEqual(told(hidden), ['path shadowed']);
  assert.match(hidden.data.problems[0].message, /^A file of \[disk\.site\]/);

  const summer = { path: 'summer', kind: 'resolve', enginedata: { target: '/a' } };
  const first = await insert(summer);
  assert.deepEqual(told(first), []);
  const second = await insert({ ...summer, enginedata: { target: '/b' } });
  assert.deepEqual(told(second), ['path shadowed']);
  const hides = new RegExp(`^It hides the page rule ${String(first.data.id)}`);
  assert.match(second.data.problems[0].message, hides);
  const edited = await site.call(`${rule}.edit`, { id: first.data.id, path: 'summer', rve: -1 });
  const hiddenBy = new RegExp(`^The page rule ${String(second.data.id)} .* hides this one`);
  assert.match(edited.data.problems[0].message, hiddenBy);

  assert.deepEqual(told(await insert({ ...page, path: '/x/*' })), []);
  assert.deepEqual(told(await insert({ ...page, path: '/x/*', lang: 'de' })), []);
  const behind = { path: '/x/*', kind: 'content.fetch', enginedata: { source } };
  assert.deepEqual(told(await insert(behind)), ['path shadowed']);
  assert.deepEqual(told(await insert({ ...behind, path: '/y/*' })), []);
});

test('a form has numbers as texts', async (t) => {
  const site = await startSite(t);
  const body = new URLSearchParams({
    ...{ '_v.path': '/n', '_v.content': 'x', '_v.httpresponse': '404', '_v.rve': '1.5' },
  });
  const headers = { apikey: site.adminKey };
  const url = `${site.url}/svc1/userinterface/insert`;
  const answer = (await (await fetch(url, { method: 'POST', body, headers })).json()) as Answer;
  assert.deepEqual([answer.data.httpresponse, answer.data.rve], [404, 1.5]);
  body.set('_v.lang', '!');
  body.set('_prefer', 'handling=strict');
  const refused = (await (await fetch(url, { method: 'POST', body, headers })).json()) as Answer;
  assert.deepEqual([refused.error?.code, refused.error?.field], ['invalid', 'lang']);
});

test('a record page without an engine has the engine form', async (t) => {
  const site = await startSite(t);
  const sent = { path: '/new', kind: 'insert-record', table: 't' };
  const { data } = await site.call(`${rule}.insert`, sent);
  assert.equal(data.engine, 'form');
  const place = { origin: site.url, path: '/new' };
  assert.equal((await site.call(`${rule}.get_render`, place)).data.engine, 'form');
  const other = await site.call(`${rule}.insert`, { ...sent, path: '/o', engine: 'html' });
  assert.equal(other.data.engine, 'html');
});

test('the command line prints problems as warnings, and refuses with --strict', async (t) => {
  const site = await startSite(t);
  const env = { WAYMARK_URL: site.url, WAYMARK_APIKEY: site.adminKey };
  const fields = '{"path":"/c","content":"x","contnt":"y"}';
  const warned = await runHere(['rule', 'insert', fields], { env });
  assert.equal(warned.code, 0);
  assert.match(warned.err, /^warning: contnt is not a known field; .* Did you mean content\?$/m);
  const refused = await runHere(['rule', 'insert', fields.replace('/c', '/d'), '--strict'], {
    env,
  });
  assert.equal(refused.code, 1);
  assert.match(refused.err, /^waymark: contnt is not a known field; .* refuses the write\.$/m);
  assert.equal((await fetch(`${site.url}/d`)).status, 404);
});
