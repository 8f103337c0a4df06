import type { Caller } from '../../../../src/core/values/key.ts';
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ruleCharacters } from '../../../../src/core/operations/limits.ts';
import { listSliceRecords } from '../../../../src/core/operations/records/limits.ts';
import { eventSliceRows } from '../../../../src/modules/webhooks/operations/limits.ts';
import { listEvents } from '../../../../src/modules/webhooks/operations/event-reads.ts';
import { listOperation } from '../../../../src/core/operations/records/list.ts';
import {
  ruleFamily,
  type RuleParts,
} from '../../../../src/modules/rules/operations/rule-family.ts';
import type { Call } from '../../../../src/core/operations/operation.ts';
import { startSite } from '../../../harness.ts';
import { commit, inserted, scratchStore } from '../../../core/log/scratch.ts';
import { transports } from '../../status/transports.ts';

const rule = 'svc1.userinterface';
const origin = 'http://shop.example';

interface Row {
  readonly id: string;
  readonly path: string;
}

for (const [transport, open] of Object.entries(transports)) {
  suite(`a list of page rules over ${transport}`, () => {
    test('is filtered by every filter, and by text in any field', async (t) => {
      const rules = [
        { origin, path: '/lamps/heron', kind: 'content', content: '<p>Brass</p>', engine: 'html' },
        {
          origin,
          path: '/lamps/*',
          kind: 'content.fetch',
          enginedata: { source: 'http://b.ex/*' },
        },
        { path: '/lamps/tern', kind: 'content', content: 'x', enginecomments: 'Ask Brassard' },
        {
          path: 'summer',
          kind: 'resolve',
          enginedata: { target: '/lamps/', html: '<p class="sun">Long\ndays</p>' },
        },
        { path: '/letters', kind: 'insert-record', table: 'letters', engine: 'html' },
        { path: '/caf%C3%A9', kind: 'content', content: 'é', odd: { Brass: 1 } },
      ];
      const site = await startSite(t, { rules });
      const call = await open(site);
      const paths = async (v: object) =>
        (await call(`${rule}.list`, v)).data.rows.map(({ path }: Row) => path);
      const all = ['/lamps/heron', '/lamps/*', '/lamps/tern', 'summer', '/letters', '/café'];
      for (const [v, expected] of [
        [{}, all],
        [{ origin: 'HTTP://Shop.Example:80/' }, all.slice(0, 2)],
        [{ origin: '*' }, all.slice(2)],
        [{ path: '/lamps/' }, all.slice(0, 3)],
        [{ path: '/caf%C3%A9' }, ['/café']],
        [{ path: 'sum' }, ['summer']],
        [{ kind: 'resolve' }, ['summer']],
        [{ table: 'letters' }, ['/letters']],
        [{ engine: 'html', origin }, ['/lamps/heron']],
        [{ text: 'brass' }, ['/lamps/heron', '/lamps/tern', '/café']],
        [{ text: 'CLASS="sun">long\nday' }, ['summer']],
        [{ text: '"target":"/lamps/"' }, ['summer']],
        [{ text: 'nothing like it' }, []],
      ] as const) {
        assert.deepEqual(await paths(v), expected, JSON.stringify(v));
      }
    });

    test('has the length of content, which only read returns', async (t) => {
      const site = await startSite(t, {
        rules: [
          { path: '/a', kind: 'content', content: 'é' },
          { path: '/b', kind: 'content', content: { base64: 'AAEC' } },
          { path: '/c', kind: 'content', engine: 'html' },
        ],
      });
      const { data } = await (await open(site))(`${rule}.list`, {});
      assert.deepEqual(
        data.rows.map((row: Row & { content_bytes?: number }) => row.content_bytes),
        [2, 3, undefined],
      );
      assert.ok(!JSON.stringify(data).includes('"content":'));
      assert.equal(data.next, null);
    });

    test('comes in stable pages, also of the past', async (t) => {
      const rules = Array.from({ length: 25 }, (_, at) => ({ path: `/${at}`, kind: 'content' }));
      const site = await startSite(t, { rules: rules.map((one) => ({ ...one, engine: 'html' })) });
      const call = await open(site);
      const { data: status } = await call('svc1.server.status', {});
      const walk = async (more: object) => {
        const seen: string[] = [];
        let after: string | null = null;
        do {
          const page: { data: { rows: Row[]; next: string | null } } = (await call(`${rule}.list`, {
            limit: 10,
            ...(after !== null && { after }),
            ...more,
          })) as never;
          seen.push(...page.data.rows.map(({ path }) => path));
          after = page.data.next;
          const [gone] = page.data.rows;
          // Between two pages, a listed rule is deleted and another one inserted.
          if (gone !== undefined && !('as_of' in more)) {
            const { data } = await call(`${rule}.invalidate`, { id: gone.id });
            await call(`${rule}.invalidate`, { id: gone.id, confirm: data.digest });
          }
        } while (after !== null);
        return seen;
      };
      const expected = rules.map(({ path }) => path);
      assert.deepEqual(await walk({}), expected);
      assert.deepEqual(await walk({ as_of: status.seq }), expected);
      assert.equal((await call(`${rule}.list`, {})).data.rows.length, 22);
    });

    test('refuses a filter that can never match, by name', async (t) => {
      const site = await startSite(t);
      const call = await open(site);
      for (const [field, value] of [
        ['kind', 'blog'],
        ['origin', 'shop'],
        ['limit', 1_001],
        ['as_of', 'then'],
      ] as const) {
        const { error } = await call(`${rule}.list`, { [field]: value });
        assert.deepEqual([error?.code, error?.field], ['invalid', field]);
      }
    });
  });
}

const reader = { scopes: new Set(['read']) } as unknown as Caller;

test('a list of the past yields to other requests, also among later records', async (t) => {
  const store = await scratchStore(t);
  await commit(store, inserted('a', { path: '/a' }));
  const later = Array.from({ length: listSliceRecords }, (_, at) =>
    inserted(`b${at}`, { path: '/' }),
  );
  await commit(store, ...later);
  const view = { base: '', publicUrl: undefined, engines: [], schemaOf: () => undefined };
  const run = listOperation(ruleFamily).run({ store, view } as unknown as RuleParts);
  const caller = new AbortController();
  const call = { signal: () => caller.signal, caller: reader } as Call;
  const answer = run({ as_of: '1' }, call);
  // The list notices it when it yields for the first time.
  caller.abort();
  await assert.rejects(async () => answer, { name: 'AbortError' });
});

for (const [when, v] of [
  ['now', { kind: 'resolve' }],
  ['then', { kind: 'resolve', as_of: '8' }],
] as const) {
  test(`a list of ${when} yields to other requests among few large rules`, async (t) => {
    const store = await scratchStore(t);
    const enginecomments = 'x'.repeat((listSliceRecords * ruleCharacters) / 4);
    const large = Array.from({ length: 8 }, (_, at) =>
      inserted(`a${at}`, { path: '/a', enginecomments }),
    );
    await commit(store, ...large);
    const view = { base: '', publicUrl: undefined, engines: [], schemaOf: () => undefined };
    const run = listOperation(ruleFamily).run({ store, view } as unknown as RuleParts);
    const caller = new AbortController();
    const answer = run(v, { signal: () => caller.signal, caller: reader } as Call);
    caller.abort();
    await assert.rejects(async () => answer, { name: 'AbortError' });
  });
}

test('a list of events yields to other requests among few large rows', async (t) => {
  const store = await scratchStore(t);
  const enginecomments = 'x'.repeat((eventSliceRows * ruleCharacters) / 4);
  const large = Array.from({ length: 8 }, (_, at) =>
    inserted(`a${at}`, { path: '/a', enginecomments }),
  );
  await commit(store, ...large);
  const caller = new AbortController();
  const answer = listEvents.run({ store })({ type: 'x.y' }, {
    signal: () => caller.signal,
  } as Call);
  caller.abort();
  await assert.rejects(async () => answer, { name: 'AbortError' });
});
