import assert from 'node:assert/strict';
import { suite, test, type TestContext } from 'node:test';
import { someVisitor } from '../../visitor.ts';
import {
  explain,
  createSiteParts,
  reasons,
  shop,
  type RuleFields,
} from '../../core/pipeline/explain-rig.ts';

suite('the explanation of a breadcrumb', () => {
  const crumb = (path: string, target: string, more: Partial<RuleFields> = {}): RuleFields => ({
    ...{ path, kind: 'resolve', enginedata: { target }, ...more },
  });
  const rules = [
    crumb('spring', 'key:summer'),
    crumb('summer', '/everywhere'),
    crumb('summer', 'https://far.example/', { origin: shop, httpresponse: 303 }),
    crumb('/visit', 'key:spring'),
    crumb('there', 'key:back'),
    crumb('back', 'key:there'),
    crumb('lost', 'key:none'),
  ];
  const ofKey = async (t: TestContext, key: string) => {
    const site = (await createSiteParts(t)).siteOf(rules);
    return site.explainKey({ key, origin: shop, query: '', fields: {}, visitor: someVisitor() });
  };

  test('follows a key over other keys to the rule that decides', async (t) => {
    const { winner, status, tried, notes } = await ofKey(t, 'spring');
    assert.deepEqual(winner, { source: 'stored', id: 'rule 3', status: 303 });
    assert.equal(status, 303);
    assert.deepEqual(reasons(tried), [
      'stored spring: rule 1',
      'stored summer: rule 3',
      'stored summer: rule 2 any_origin',
    ]);
    assert.deepEqual(notes, ['It leads to https://far.example/.']);
  });

  test('follows a visit by path, among the sources', async (t) => {
    const site = (await createSiteParts(t)).siteOf(rules);
    const { winner, tried } = explain(site, { path: '/visit' });
    assert.deepEqual(winner, { source: 'stored', id: 'rule 3', status: 303 });
    assert.deepEqual(
      tried.map(({ source, key }) => key ?? source),
      ['disk', 'stored', 'spring', 'summer', 'content.fetch', 'fallback'],
    );
  });

  test('names keys that lead in a circle or do not exist', async (t) => {
    const circle = await ofKey(t, 'there');
    assert.equal(circle.status, 422);
    assert.match(circle.notes.join(), /in a circle/);
    const lost = await ofKey(t, 'lost');
    assert.deepEqual(lost.winner, { source: 'stored', id: 'rule 7', status: 404 });
    assert.deepEqual(lost.notes, ['No breadcrumb has this key.']);
    const none = await ofKey(t, 'none');
    assert.deepEqual([none.winner, none.status], [null, 404]);
    assert.deepEqual(none.tried, [{ source: 'stored', key: 'none', candidates: [] }]);
  });
});
