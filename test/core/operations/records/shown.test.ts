import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { operations } from '../../../../src/modules.ts';
import { startSite, type TestSite } from '../../../harness.ts';

/** A text of the header values that no page rule has any more. */
const planted = 'planted-secret';
const rule = 'svc1.userinterface';

/** Engine data that is longer than what a report shows of a value, with its secrets at the start. */
function enginedata(secret: string, more: object = {}): object {
  return {
    headers: { authorization: `Bearer ${secret}`, accept: 'text/html' },
    request_headers: { 'X-Api-Key': `${secret}-2` },
    source: 'http://localhost:9/*',
    note: 'x'.repeat(300),
    ...more,
  };
}

interface Planted {
  readonly site: TestSite;
  readonly id: string;
  readonly seq: number;
  readonly txn: string;
}

/** A site on which each way to a former value is open. */
async function plantedSite(t: Parameters<typeof startSite>[0]): Promise<Planted> {
  const site = await startSite(t);
  const ask = async (name: string, v: object, draft?: string) => {
    const answer = await site.call(name, v, draft === undefined ? {} : { draft });
    assert.equal(answer.error, undefined, `${name}: ${answer.error?.message}`);
    return answer.data;
  };
  const rules: { readonly id: string; readonly seq: number }[] = [];
  for (const path of ['/past/*', '/conflict/*', '/undone/*', '/both/*']) {
    const data = enginedata(planted, { waits: { headers: { cookie: planted } } });
    rules.push(await ask(`${rule}.insert`, { path, kind: 'content.fetch', enginedata: data }));
  }
  const [past, conflict, undone, both] = rules;
  const current = { enginedata: enginedata('current') };
  // A mistake that waits has secrets, too.
  await ask(`${rule}.edit`, {
    id: past?.id,
    enginedata: `{${JSON.stringify(enginedata(planted))}`,
  });
  await ask(`${rule}.edit`, { id: past?.id, HEADERS: planted });
  await ask(`${rule}.edit`, { id: past?.id, ...current, _unknowns_: null });

  for (const name of ['open', 'published', 'ended']) await ask('svc1.draft.insert', { name });
  await ask(`${rule}.edit`, { id: conflict?.id, lang: 'de' }, 'open');
  await ask(`${rule}.edit`, { id: conflict?.id, ...current });
  await ask(`${rule}.edit`, { id: past?.id, enginedata: enginedata('drafted') }, 'open');
  for (const one of [undone, both]) {
    await ask(`${rule}.edit`, { id: one?.id, ...current }, 'published');
  }
  const { digest } = await ask('svc1.draft.publish', { draft: 'published' });
  await ask('svc1.draft.publish', { draft: 'published', confirm: digest });
  await ask(`${rule}.edit`, { id: both?.id, enginedata: enginedata('newest'), lang: 'fr' });
  await ask(`${rule}.edit`, { id: undone?.id, enginedata: enginedata(planted) }, 'ended');
  await ask('svc1.draft.invalidate', { draft: 'ended' });
  const { rows } = await ask('svc1.change.list', { limit: 1 });
  return { site, id: past?.id ?? '', seq: past?.seq ?? 0, txn: rows[0].txn };
}

interface Asked {
  readonly name: string;
  readonly v: object;
  readonly more?: { readonly draft?: string; readonly qk?: string };
  /** The scopes that get the answer; another caller may be refused. */
  readonly scopes: readonly string[];
}

/** The questions that lead to former values, with the scopes that get an answer. */
function leading({ id, seq, txn }: Planted): readonly Asked[] {
  const asked = (name: string, v: object, scopes: readonly string[], more = {}): Asked => {
    return { name: `svc1.${name}`, v, scopes, more };
  };
  const [open, read] = [{ draft: 'open' }, ['read']];
  return [
    asked('userinterface.read', { id }, read),
    asked('userinterface.read', { id }, read, open),
    asked('userinterface.read', { id }, read, { qk: 'history' }),
    asked('userinterface.read', { id }, read, { qk: 'history', ...open }),
    asked('userinterface.read', { id, as_of: String(seq) }, read),
    asked('userinterface.read', { id, as_of: String(seq + 4) }, read),
    asked('userinterface.list', { as_of: String(seq) }, read),
    asked('userinterface.list', { as_of: String(seq), text: planted }, read),
    asked('userinterface.list', {}, read, open),
    asked('userinterface.explain', { url: '/past/x', as_of: String(seq) }, read),
    asked(
      'userinterface.get',
      { origin: 'http://a.example', path: '/past/x', as_of: String(seq) },
      ['render', 'read'],
    ),
    asked('userinterface.invalidate', { id, from: String(seq + 1) }, ['read', 'draft'], open),
    asked('userinterface.invalidate', { from: String(seq + 4) }, ['read', 'draft'], open),
    asked('userinterface.replace', { find: planted, with: 'x' }, ['read', 'draft'], open),
    asked('userinterface.subscribe', { from_seq: 0 }, read),
    asked('draft.changes', open, read),
    asked('draft.read', open, read),
    asked('draft.read', { draft: 'ended' }, read),
    asked('draft.list', { state: 'discarded' }, read),
    asked('draft.compare', { ...open, urls: '/past/x' }, read),
    asked('draft.publish', open, ['read', 'publish']),
    asked('draft.undo', { draft: 'published' }, ['read', 'publish']),
    asked('change.list', { txn }, read),
    asked('change.list', {}, read),
  ];
}

const scopeSets: readonly (readonly string[])[] = [
  ...['render', 'read', 'draft', 'publish', 'webhook', 'event', 'verify'].map((one) => [one]),
  ...['record.read', 'record.write'].map((one) => [one]),
  ['read', 'draft'],
  ['read', 'publish'],
  ['render', 'read', 'draft', 'publish', 'webhook', 'event', 'record.read', 'record.write'],
];

suite('a value that a record had', () => {
  test('is in no answer to a caller without design, of any operation', async (t) => {
    const world = await plantedSite(t);
    const { site, id, seq, txn } = world;
    const questions = leading(world);
    const names = new Set(questions.map(({ name }) => name));
    const others = operations.filter(({ name }) => !names.has(name)).map(({ name }) => name);
    for (const scopes of scopeSets) {
      const { data } = await site.call('svc1.key.insert', { name: scopes.join(), scopes });
      const socket = await site.socket(data.key as string);
      const messages: string[] = [];
      socket.websocket.addEventListener('message', (event) => messages.push(event.data as string));
      for (const { name, v, more, scopes: needed } of questions) {
        const answer = await socket.call(name, v, more);
        const where = `${name} ${JSON.stringify({ v, more, scopes })}`;
        if (needed.every((one) => scopes.includes(one))) {
          assert.equal(answer.error, undefined, `${where}: ${answer.error?.message}`);
        }
      }
      // All other operations get whatever members they have for what they may show.
      const members = [{}, { id }, { id, as_of: String(seq) }, { id, txn, draft: 'open' }];
      await Promise.all(others.flatMap((name) => members.map((v) => socket.call(name, v))));
      assert.ok(messages.length > questions.length);
      for (const text of messages) {
        assert.ok(!text.includes(planted), `${scopes.join(' ')}: ${text.slice(0, 2_000)}`);
      }
      socket.websocket.close();
    }
  });

  test('is in the same answers to a caller with design, who could restore it', async (t) => {
    const world = await plantedSite(t);
    const questions = leading(world).filter(({ name, more, v }) => {
      return more?.qk !== undefined || /changes|publish|undo|invalidate/.test(name) || 'as_of' in v;
    });
    const silent: string[] = [];
    for (const { name, v, more } of questions) {
      const answer = await world.site.call(name, v, more ?? {});
      if (!JSON.stringify(answer).includes(planted)) silent.push(name);
    }
    const others = ['svc1.userinterface.explain', 'svc1.userinterface.get'];
    assert.deepEqual(silent, others, 'the table of the test leads to the values');
  });
});
