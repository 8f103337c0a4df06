import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import fc from 'fast-check';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import type { Cleaning } from '../../../folder.ts';

const rule = 'svc1.userinterface';
const goods = {
  name: 'goods',
  key: 'sku',
  index: ['price'],
  read: ['anonymous'],
  schema: { properties: { sku: { type: 'string' }, price: { type: 'number' } } },
};
const shown = '{% for one in rows.all %}<i>{{ one.sku }} {{ one.price }}</i>{% endfor %}';
const rows = { all: { table: 'goods', where: { price: { '<': 6 } }, sort: 'price' } };
const listed = { engine: 'template', enginedata: { render: 'server', template: shown, rows } };
const branches = (target: string): object => ({
  when: [{ if: { lang: ['de'] }, target: '/b' }],
  target,
});

const path = fc.constantFrom('/', '/a', '/a/b', '/a/*', '/*', '/b', '/c d', '/far/*');
const moment = fc.constantFrom('2020-01-01T00:00:00.000Z', '2999-01-01T00:00:00.000Z');
const html = fc.constantFrom('<h1>one</h1>\n<p>1</p>', '<h1>two</h1>\n<p>1</p>', '', 'plain');
const pageFields = fc.record(
  {
    content: html,
    contenttype: fc.constantFrom('text/plain', 'text/html; charset=utf-8', null),
    httpresponse: fc.constantFrom(200, 203, 404, 503, null),
    lang: fc.constantFrom('de', 'en', null),
    from: fc.option(moment),
    until: fc.option(moment),
    origin: fc.constantFrom('*', 'http://elsewhere.example'),
  },
  { requiredKeys: [] },
);
const page = fc
  .record({ path, fields: pageFields })
  .map((one) => ({ content: 'x', ...one.fields, kind: 'content', path: one.path }));
const template = path.map((one) => ({ kind: 'content', path: one, ...listed }));
const link = fc
  .record({
    path: fc.constantFrom('go', 'to', '/a', '/link'),
    target: fc.constantFrom('/a', '/b', 'key:to'),
  })
  .map((one) => ({ kind: 'resolve', path: one.path, enginedata: branches(one.target) }));
const row = fc.record({
  sku: fc.constantFrom('L-1', 'L-2', 'L-3'),
  price: fc.integer({ min: 1, max: 9 }),
});

/** A change of the draft, or of the live site beside it. */
interface Step {
  readonly isLive: boolean;
  readonly which: number;
  readonly change: Change;
}

type Change =
  | { readonly do: 'insert'; readonly fields: object }
  | { readonly do: 'edit'; readonly fields: object }
  | { readonly do: 'move'; readonly path: string }
  | { readonly do: 'remove' }
  | { readonly do: 'row'; readonly fields: { readonly sku: string; readonly price: number } };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ do: fc.constant('insert' as const), fields: fc.oneof(page, template, link) }),
  fc.record({ do: fc.constant('edit' as const), fields: pageFields }),
  fc.record({ do: fc.constant('move' as const), path }),
  fc.record({ do: fc.constant('remove' as const) }),
  fc.record({ do: fc.constant('row' as const), fields: row }),
);
const steps = fc.array(
  fc.record({
    isLive: fc.integer({ min: 0, max: 4 }).map((one) => one === 0),
    which: fc.nat(100),
    change,
  }),
  { minLength: 1, maxLength: 6 },
);

const paths = ['/', '/a', '/a/b', '/a/x', '/b', '/c%20d', '/link', '/far/x', '/missing'];
const keys = ['go', 'to'];
const places = [...paths, ...keys.map((key) => `/svc1/userinterface.link.htm?k=${key}`)];

/**
 * Changes a site at random in drafts, which it publishes one after the other, and compares: what
 * `draft.compare` calls equal answers live after the publication as before it, and nothing else;
 * and a preview is what is served after it. Rejects with the steps of the first difference.
 */
export async function assertEquality(
  t: Cleaning,
  { seed, runs }: { readonly seed: number; readonly runs: number },
): Promise<void> {
  const site = await startSite(t, { ini: '[fetch]\nallow_private = 127.0.0.0/8\n' });
  const agent = new Agent({ keepAlive: true });
  t.after(() => {
    agent.destroy();
  });
  await site.call('svc1.table.insert', goods);
  await site.call(`${rule}.insert`, { kind: 'content', path: '/', content: '<h1>start</h1>' });
  for (const [at, run] of fc.sample(steps, { seed, numRuns: runs }).entries()) {
    const name = `draft ${at}`;
    const told: string[] = [];
    try {
      await site.call('svc1.draft.insert', { name });
      for (const step of run) {
        const { error } = await perform(site, step, name);
        const said = error === undefined ? '' : ` (${error.code}: ${error.message})`;
        told.push(`${step.isLive ? 'live' : 'draft'} ${JSON.stringify(step.change)}${said}`);
      }
      await assertEqual(site, agent, name);
    } catch (error) {
      const text = `seed ${seed}, run ${at}:\n${told.join('\n')}\n`;
      throw new Error(text + (error instanceof Error ? error.message : String(error)), {
        cause: error,
      });
    }
  }
}

async function perform(
  site: TestSite,
  { isLive, which, change: one }: Step,
  name: string,
): Promise<Answer> {
  const more = isLive ? {} : { draft: name };
  const nth = async (family: string, v: object): Promise<string | undefined> => {
    const { data } = await site.call(`${family}.list`, { limit: 100, ...v }, more);
    const found = (data?.rows ?? []) as readonly { readonly id: string }[];
    return found[which % Math.max(1, found.length)]?.id;
  };
  if (one.do === 'insert') return site.call(`${rule}.insert`, one.fields, more);
  if (one.do === 'row') {
    const { data } = await site.call('svc1.record.list', { table: 'goods' }, more);
    const found = data.rows.find((each: { sku: string }) => each.sku === one.fields.sku);
    const v = { table: 'goods', ...one.fields };
    if (found === undefined) return site.call('svc1.record.insert', v, more);
    return site.call('svc1.record.edit', { ...v, id: found.id }, more);
  }
  const id = await nth(rule, {});
  if (id === undefined) return {};
  if (one.do === 'edit') return site.call(`${rule}.edit`, { id, ...one.fields }, more);
  if (one.do === 'move') return site.call(`${rule}.edit`, { id, path: one.path }, more);
  // What the draft has changed and live loses is named as a conflict, and not as a change.
  if (isLive) return {};
  const { data } = await site.call(`${rule}.invalidate`, { id }, more);
  return site.call(`${rule}.invalidate`, { id, confirm: data.digest }, more);
}

async function assertEqual(site: TestSite, agent: Agent, name: string): Promise<void> {
  const given = { draft: name, urls: paths.join('\n'), keys: keys.join('\n') };
  const { data: compared } = await site.call('svc1.draft.compare', given);
  const before = await answersOf(site, agent);
  const link = await site.call('svc1.draft.preview', { draft: name });
  const opened = await ask(agent, link.data.url, {});
  const [cookie = ''] = opened.headers['set-cookie'] ?? [];
  const previewed = await answersOf(site, agent, { cookie: cookie.split(';')[0] ?? '' });
  const report = await site.call('svc1.draft.publish', { draft: name, others: 'draft' });
  const confirm = report.data?.digest;
  const done = await site.call('svc1.draft.publish', { draft: name, others: 'draft', confirm });
  if (done.error?.code === 'conflict') {
    // Another row has the key, or another rule the place: it says so, and publishes nothing.
    await site.call('svc1.draft.invalidate', { draft: name });
    return;
  }
  assert.equal(done.data?.done, true, JSON.stringify(done));
  const after = await answersOf(site, agent);
  const differing = new Map(
    (compared.rows as readonly ComparedRow[]).map((one) => [one.url ?? one.key ?? '', one.differs]),
  );
  for (const [at, place] of places.entries()) {
    const id = paths[at] ?? keys[at - paths.length] ?? '';
    const differs = (differing.get(id) ?? []).filter((what) => what !== 'branches');
    assert.deepEqual(
      differs.toSorted(),
      differencesOf(before[at], after[at]).toSorted(),
      `${place}: compare, and what has changed:\n${JSON.stringify([before[at], after[at]])}`,
    );
    const { content, ...preview } = previewed[at] ?? nothing;
    const bar = content.lastIndexOf('<aside role="status"');
    const own = bar === -1 ? content : content.slice(0, bar);
    const { content: served, headers, ...live } = after[at] ?? nothing;
    assert.deepEqual(
      { ...preview, content: own, headers: shownFields(preview.headers) },
      { ...live, content: served, headers: shownFields(headers) },
      `${place}: the preview, and what is served`,
    );
  }
}

interface ComparedRow {
  readonly url?: string;
  readonly key?: string;
  readonly differs: readonly string[];
}

interface Seen {
  readonly status: number;
  readonly target: string;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly content: string;
}

const nothing: Seen = { status: 0, target: '', headers: {}, content: '' };

function differencesOf(one = nothing, other = nothing): readonly string[] {
  const isRedirect = (seen: Seen): boolean => seen.status >= 300 && seen.status < 400;
  const text = (seen: Seen): string => (isRedirect(seen) ? '' : seen.content);
  return [
    ...(one.status === other.status ? [] : ['status']),
    ...(one.target === other.target ? [] : ['target']),
    ...(JSON.stringify(one.headers) === JSON.stringify(other.headers) ? [] : ['headers']),
    ...(text(one) === text(other) ? [] : ['content']),
  ];
}

/** The fields that a preview shows: it has others for caches. */
function shownFields(headers: Seen['headers']): object {
  const hidden = /^(?:cache-control|last-modified|x-robots-tag|accept-ranges|vary)$/;
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !hidden.test(name)));
}

async function answersOf(
  site: TestSite,
  agent: Agent,
  fields: Readonly<Record<string, string>> = {},
): Promise<readonly Seen[]> {
  const answers: Seen[] = [];
  for (const place of places) answers.push(await ask(agent, site.url + place, fields));
  return answers;
}

/** Fields that two equal answers may differ in. */
const changing =
  /^(?:age|connection|content-length|date|etag|keep-alive|location|transfer-encoding)$/;

function ask(agent: Agent, url: string, headers: Readonly<Record<string, string>>): Promise<Seen> {
  return new Promise((resolve, reject) => {
    request(url, { agent, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => {
        const kept = Object.entries(response.headers).filter(([name]) => !changing.test(name));
        resolve({
          status: response.statusCode ?? 0,
          target: response.headers.location ?? '',
          headers: Object.fromEntries(
            kept.toSorted(([a], [b]) => (a < b ? -1 : 1)),
          ) as Seen['headers'],
          // The id of a failure is another one each time.
          content: Buffer.concat(chunks)
            .toString('utf8')
            .replace(/[\da-f]{8}-[\da-f-]{27}/g, '<id>'),
        });
      });
    })
      .on('error', reject)
      .end();
  });
}
