import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { turnMs } from '../../../src/core/fair/turns.ts';
import { startSite, type TestSite } from '../../harness.ts';

const records = 60;
const rule = 'svc1.userinterface';

interface Read {
  readonly name: string;
  readonly v: object;
  readonly more: object;
}

/** A site with rules, rows, events and drafted changes, each as many as `records`. */
async function fullSite(t: TestContext): Promise<TestSite> {
  const site = await startSite(t, {
    ini: '[table.item]\nschema = item.json\nindex = n, name\nsearch = name',
    files: {
      'item.json': JSON.stringify({
        type: 'object',
        properties: { n: { type: 'integer' }, name: { type: 'string' } },
      }),
    },
  });
  const each = async (act: (at: number) => Promise<unknown>): Promise<void> => {
    await Promise.all(Array.from({ length: records }, (_, at) => act(at)));
  };
  await site.call('svc1.draft.insert', { name: 'spring' });
  await each(async (at) => {
    const { data } = await site.call(`${rule}.insert`, { path: `/p${at}`, content: 'a lamp' });
    await site.call(`${rule}.edit`, { id: data.id, content: 'drafted' }, { draft: 'spring' });
    await site.call('svc1.record.insert', { table: 'item', n: at, name: 'brass' });
    await site.call('svc1.event.insert', { type: 'a.b', data: { at } });
  });
  return site;
}

/**
 * Calls an operation with a clock that lets each step take half a turn; returns its answer and the
 * number of turns of the event loop meanwhile.
 */
async function countTurns(
  t: TestContext,
  site: TestSite,
  { name, v, more }: Read,
): Promise<{ readonly data: object; readonly turns: number }> {
  let ms = performance.now();
  const clock = t.mock.method(performance, 'now', () => (ms += turnMs / 2));
  let turns = 0;
  let isDone = false;
  const count = (): void => {
    turns += 1;
    if (!isDone) setImmediate(count);
  };
  count();
  const { status, data } = await site.call(name, v, more);
  isDone = true;
  clock.mock.restore();
  assert.equal(status, 200, `${name} ${JSON.stringify(data)}`);
  return { data: data as object, turns };
}

const places = Array.from({ length: records }, (_, at) => `/p${at}`);

const reads: readonly (readonly [string, object, object?])[] = [
  [`${rule}.list`, { text: 'nowhere' }],
  [`${rule}.list`, { text: 'nowhere', as_of: '5' }],
  [`${rule}.list`, { text: 'nowhere' }, { draft: 'spring' }],
  [`${rule}.tree`, { origin: '*', path: '/', shadows: true }],
  [`${rule}.replace`, { find: 'nowhere', with: 'x' }],
  [`${rule}.get_render`, { origin: 'http://a.example', paths: places }],
  ['svc1.record.list', { table: 'item', count: true, where: { n: { '>=': 0 } }, limit: 1 }],
  ['svc1.record.list', { table: 'item', sort: 'n', where: { name: 'none' }, as_of: '9999' }],
  ['svc1.record.get', { table: 'item', where: { n: { '>=': 0 } } }],
  ['svc1.event.list', { type: 'none.such' }],
  ['svc1.change.list', { by: 'nobody' }],
  ['svc1.draft.changes', { draft: 'spring' }],
  ['svc1.draft.compare', { draft: 'spring' }],
];

suite('a read whose work grows with the data', { timeout: 60_000 }, () => {
  test('takes many turns of the event loop', async (t) => {
    const site = await fullSite(t);
    const { data } = await site.call('svc1.server.status', {});
    for (const [name, v, more = {}] of reads) {
      const given = 'as_of' in v && v.as_of === '9999' ? { ...v, as_of: String(data.seq) } : v;
      const { turns } = await countTurns(t, site, { name, v: given, more });
      assert.ok(turns >= records / 2, `${name} ${JSON.stringify(v)}: ${turns}`);
    }
  });
});
