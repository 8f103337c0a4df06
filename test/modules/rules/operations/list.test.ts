import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite } from '../../../harness.ts';
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
