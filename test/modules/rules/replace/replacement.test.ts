import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { replacer, type Replacement } from '../../../../src/modules/rules/replace/replacement.ts';

const page = { id: '1', origin: '*', path: '/', kind: 'content' } as const;

function replaced(rule: object, given: Replacement) {
  return replacer(given)({ ...page, ...rule });
}

/** The content that replacing in a content leaves; undefined if it stays. */
function contentOf(content: string, given: Replacement): unknown {
  return replaced({ content }, given).fields.content;
}

suite('the replacement in a page rule', () => {
  for (const [what, content, given, expected] of [
    ['a text as it is written', 'a.b axb a.b', { find: 'a.b', with: '$1' }, '$1 axb $1'],
    [
      'upper and lower case',
      'Kai KAI kaiser',
      { find: 'kai', with: 'x', ignore_case: true },
      'x x xser',
    ],
    [
      'whole words',
      'Öl Ölung Öl_',
      { find: 'Öl', with: 'oil', whole_words: true },
      'oil Ölung Öl_',
    ],
    ['signs of patterns', '(a) [b] {c} ^$|/-', { find: '[b] {c} ^$|/-', with: '' }, '(a) '],
    ['nothing', 'a', { find: 'b', with: 'c' }, undefined],
    [
      'a pattern',
      'a1 b22',
      { find: '[a-z](\\d+)', with: '$1$$$&$2', regex: true },
      '1$a1$2 22$b22$2',
    ],
    ['a named group', '2026-11', { find: '(?<y>\\d{4})-', with: '$<y>/', regex: true }, '2026/11'],
    ['a pattern in lines', 'ab\nab', { find: '^a', with: 'x', regex: true }, 'xb\nxb'],
    ['a pattern that may be empty', 'aab', { find: 'a*', with: 'x', regex: true }, 'xb'],
    [
      'a pattern in both cases',
      'HAFEN hafen Hafen-Ä',
      { find: '[h][a-f]fen', with: 'x', regex: true, ignore_case: true },
      'x x x-Ä',
    ],
    [
      'a pattern as a word',
      'cat concat cats',
      { find: 'cats?', with: 'dog', regex: true, whole_words: true },
      'dog concat dog',
    ],
    [
      'the title alone',
      '<title>Kai</title><p>Kai</p>',
      { find: 'Kai', with: 'Bo', parts: ['title'] },
      '<title>Bo</title><p>Kai</p>',
    ],
    ['no title', '<p>Kai</p>', { find: 'Kai', with: 'Bo', parts: ['title'] }, undefined],
  ] as const) {
    test(`replaces ${what}`, () => {
      assert.equal(contentOf(content, given), expected);
    });
  }

  test('finds targets, titles, data and headers, each on request', () => {
    const enginedata = {
      target: '/old',
      status: 302,
      title: 'old',
      when: [{ if: { country: ['old'] }, target: '/old/b' }],
    };
    const rule = { kind: 'resolve', enginedata, headers: { 'X-A': 'old', 'Link[]': ['old', 'b'] } };
    const { fields, count, found } = replaced(rule, { find: 'old', with: 'new' });
    assert.equal(count, 5);
    assert.deepEqual(fields, {
      enginedata: {
        ...{ target: '/new', status: 302, title: 'new' },
        when: [{ if: { country: ['old'] }, target: '/new/b' }],
      },
      headers: { 'X-A': 'new', 'Link[]': ['new', 'b'] },
    });
    assert.deepEqual(
      found.map(({ field }) => field),
      [
        ...['enginedata.target', 'enginedata.title', 'enginedata.when[0].target'],
        ...['headers.X-A', 'headers.Link[][0]'],
      ],
    );
    for (const [part, expected] of [
      ['targets', 2],
      ['title', 1],
      ['data', 0],
      ['headers', 2],
      ['content', 0],
    ] as const) {
      assert.equal(replaced(rule, { find: 'old', with: 'new', parts: [part] }).count, expected);
    }
  });

  test('leaves the header fields for a source, and everything that is no text, alone', () => {
    const enginedata = { source: ['http://old/'], headers: { 'X-Key': 'old' }, host: 'old' };
    const { fields } = replaced(
      { kind: 'content.fetch', enginedata, content: { base64: 'b2xk' } },
      { find: 'old', with: 'new' },
    );
    assert.deepEqual(fields, { enginedata: { ...enginedata, source: ['http://new/'] } });
  });

  test('shows each place with what is around it in its line', () => {
    const content = `first\n${'x'.repeat(100)} Kai ${'y'.repeat(100)}\nlast Kai`;
    const { found, count } = replaced({ content }, { find: 'Kai', with: 'Bo' });
    assert.equal(count, 2);
    assert.deepEqual(found[0], {
      ...{ field: 'content', found: 'Kai', replaced: 'Bo' },
      before: `${'x'.repeat(59)} `,
      after: ` ${'y'.repeat(59)}`,
    });
    assert.deepEqual([found[1]?.before, found[1]?.after], ['last ', '']);
  });

  for (const [what, find] of [
    ['without linear time', '(a)\\1'],
    ['that is none', '(a'],
    ['that is too long', 'a'.repeat(1_001)],
  ] as const) {
    test(`refuses a pattern ${what}`, () => {
      assert.throws(() => replacer({ find, with: '', regex: true }), {
        code: 'invalid',
        field: 'find',
      });
    });
  }

  test('finds a long text in a long page', () => {
    const find = 'a'.repeat(100);
    const text = `${'b'.repeat(200_000)}${find}`;
    assert.equal(contentOf(text, { find, with: 'c' }), `${'b'.repeat(200_000)}c`);
  });

  test('takes no more time or room for a page of many texts than for one', () => {
    const texts = (count: number, text: string) => ({
      enginedata: { texts: Array(count).fill(text) },
    });
    const pattern = { find: `${'a?'.repeat(100)}b`, with: '', regex: true };
    // Each text alone takes a part of the time that a page has.
    assert.equal(replaced(texts(1, 'a'.repeat(3_000)), pattern).count, 0);
    assert.throws(() => replaced(texts(1_000, 'a'.repeat(3_000)), pattern), /takes too long/);
    const long = { find: `${'a'.repeat(999)}b`, with: '' };
    assert.equal(replaced(texts(2, 'a'.repeat(9_000)), long).count, 0);
    assert.throws(() => replaced(texts(20_000, 'a'.repeat(9_000)), long), /takes too long/);
    const short = { find: 'ab', with: 'y' };
    assert.equal(replaced(texts(10_000, 'ab'), short).count, 10_000);
    assert.throws(() => replaced(texts(10_001, 'ab'), short), { code: 'too_large' });
    const grown = { find: 'ab', with: 'y'.repeat(10_000) };
    assert.throws(() => replaced(texts(5_000, 'ab'), grown), { code: 'too_large' });
  });

  test('ends a pattern that takes too long, and refuses endless results', () => {
    const slow = { find: `${'(a?){16}'.repeat(20)}z`, with: '', regex: true };
    assert.throws(() => contentOf('a'.repeat(200_000), slow), { code: 'invalid', field: 'find' });
    const many = { find: 'a', with: 'b' };
    assert.throws(() => contentOf('a'.repeat(10_001), many), { code: 'too_large' });
    const long = { find: 'a+', with: '$&'.repeat(1_000), regex: true };
    assert.throws(() => contentOf('a'.repeat(100_000), long), { code: 'too_large' });
  });
});
