import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { redirectLinesMax } from '../../../src/core/http/limits.ts';
import { parseRedirectLines } from '../../../src/modules/redirects/redirect-lines.ts';
import {
  createRedirectTable,
  redirectCircles,
} from '../../../src/modules/redirects/redirect-table.ts';
import { sentPath } from '../../request-path.ts';

function locationsOf(text: string, path: string, query = ''): readonly string[] {
  const { lines, mistakes } = parseRedirectLines(text);
  assert.deepEqual(mistakes, []);
  const target = { origin: 'http://localhost', ...sentPath(path), query };
  return [...createRedirectTable(lines).matches(target)].map(({ location }) => location);
}

test('a request looks at the lines that may apply to it, of however many of its path', () => {
  const text = Array.from({ length: 1_000 }, (_, at) => `/a v=${at} /b/${at} 301`).join('\n');
  const { lines } = parseRedirectLines(`${text}\n${'/a /c\n'.repeat(1_000)}/a v=7 /late\n`);
  let looks = 0;
  const counted = new Proxy(lines, {
    get(target, name, receiver): unknown {
      if (typeof name === 'string' && /^\d+$/.test(name)) looks += 1;
      return Reflect.get(target, name, receiver);
    },
  });
  const table = createRedirectTable(counted);
  const first = (query: string): string | undefined => {
    looks = 0;
    const target = { origin: 'http://localhost', ...sentPath('/a'), query };
    return table.matches(target).next().value?.location;
  };
  assert.deepEqual([first('v=7'), looks], ['/b/7', 1]);
  assert.deepEqual([first('v=1000'), looks], ['/c?v=1000', 1]);
  assert.deepEqual([first(''), looks], ['/c', 1]);
});

suite('the lines of a file of redirects', () => {
  test('lead where Netlify leads', () => {
    for (const [text, path, query, wanted] of [
      ['/home /', '/home', '', ['/']],
      ['/home / # the start', '/home/', 'a=1', ['/?a=1']],
      ['/a /b 302!', '/a', '', ['/b']],
      ['/news/* /blog/:splat', '/news/2024/x%2Fy', '', ['/blog/2024/x%2Fy']],
      ['/news/* /blog/:splat', '/news', '', ['/blog/']],
      ['/news/* /blog/:splat', '/newsletter', '', []],
      [
        '/n/:month/:date/:year/:slug /b/:year/:month/:date/:slug',
        '/n/02/12/2004/caf%C3%A9',
        '',
        ['/b/2004/02/12/caf%C3%A9'],
      ],
      ['/n/:year /b?y=:year', '/n/a%26b', '', ['/b?y=a%26b']],
      ['/store id=:id /blog/:id 301', '/store', 'x=1&id=7', ['/blog/7?x=1']],
      ['/store id=:id /blog/:id 301', '/store', 'x=1', []],
      ['/store id=7 /seven', '/store', 'id=7', ['/seven']],
      ['/store id=7 /seven', '/store', 'id=8', []],
      ['/* https://www.example.com/:splat', '/a/b', 'c', ['https://www.example.com/a/b?c']],
      ['http://localhost/x /here', '/x', '', ['/here']],
      ['http://other.example/x /here', '/x', '', []],
      ['/x /first\n/* /second\n/:a /third', '/x', '', ['/first', '/second', '/third']],
      ['/\u00e4 /b', '/%C3%A4', '', ['/b']],
      // A line that leads to the URL of the request does not apply.
      ['/a /a/', '/a/', '', []],
      ['/a/* /a/:splat 301', '/a/b', '', []],
      // No value changes the origin of the target.
      ['/s/* /:splat', '/s//evil.example/x', '', ['/evil.example/x']],
      ['/s to=:to /:to', '/s', 'to=/evil.example', ['/evil.example']],
      ['/s to=:to https://a.example:8080/:to', '/s', 'to=@b', ['https://a.example:8080/@b']],
    ] as const) {
      assert.deepEqual(locationsOf(text, path, query), wanted, `${text} ${path}?${query}`);
    }
  });

  test('have their options, and a mistake of one leaves the others', () => {
    const { lines, mistakes } = parseRedirectLines(
      [
        '# comment',
        '/a /b 302! Country=at,de Language=de',
        '/only',
        '/a /b 418',
        '/a*b /c',
        'about /c',
        '/a /:spalt',
        '/a /b Role=admin',
        '/a https://x.example/ 200',
        '/a https://:splat.example/',
        '/a //evil.example',
        '/a/:x/:x /b',
        '/a /b Country=austria',
        '/%zz /b',
        '/z /y\r',
      ].join('\n'),
    );
    assert.deepEqual(
      lines.map(({ line, status, isForced, countries, languages }) => {
        return [line, status, isForced, countries, languages];
      }),
      [
        [2, 302, true, ['AT', 'DE'], ['de']],
        [15, 301, false, [], []],
      ],
    );
    assert.deepEqual(
      mistakes.map(({ line }) => line),
      [3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14],
    );
    assert.match(mistakes[1]?.message ?? '', /status 418; use 200, 301/);
    assert.match(mistakes[4]?.message ?? '', /:spalt/);
    assert.match(mistakes[6]?.message ?? '', /\[proxy\.<name>\]/);
  });

  test('are refused as a whole beyond the limit', () => {
    const { lines, isTooLong } = parseRedirectLines('/a /b\n'.repeat(redirectLinesMax + 1));
    assert.deepEqual([lines.length, isTooLong], [0, true]);
  });

  test('lead in circles that are named', async () => {
    const circles = async (text: string) => {
      const found = await redirectCircles(parseRedirectLines(text).lines);
      return found.map((circle) => circle.map(({ line }) => line));
    };
    for (const [text, wanted] of [
      ['/a /b\n/b /c\n/c /d', []],
      ['/a /b\n/b /a', [[1, 2]]],
      ['/x /a\n/a /b\n/b /a', [[2, 3]]],
      ['/a/* /a/b/:splat', [[1]]],
      ['/a /a/', []],
      ['/a https://a.example/a\nhttps://a.example/a /b\n', []],
      [
        'http://a.example/* http://b.example/:splat\nhttp://b.example/* http://a.example/:splat',
        [[1, 2]],
      ],
      ['/a /b 200\n/b /a', []],
      ['/a /b Language=de\n/b /a Language=en', []],
    ] as const) {
      assert.deepEqual(await circles(text), wanted, text);
    }
  });

  test('are found among any others as one after the other would be', () => {
    const segment = fc.constantFrom('a', 'b', ':x', ':y', 'c%20d');
    const path = fc
      .tuple(fc.uniqueArray(segment, { maxLength: 3 }), fc.boolean())
      .map(([segments, isOpen]) => `/${[...segments, ...(isOpen ? ['*'] : [])].join('/')}`);
    const asked = fc.array(fc.constantFrom('a', 'b', 'c%20d', 'e'), { maxLength: 4 });
    fc.assert(
      fc.property(fc.array(path, { maxLength: 8 }), asked, (paths, segments) => {
        const texts = paths.map((one, at) => `${one} /to-${at}`);
        const together = locationsOf(texts.join('\n'), `/${segments.join('/')}`);
        const apart = texts.flatMap((text) => locationsOf(text, `/${segments.join('/')}`));
        assert.deepEqual(together, apart);
      }),
    );
  });

  test('never throw, whatever they are', async () => {
    const word = fc.oneof(
      fc.constantFrom('/a', '/*', ':x', '301', '200!', '#', 'a=b', 'https://', '//', '%', '*'),
      fc.string({ unit: 'binary' }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(word), async (words) => {
        await redirectCircles(parseRedirectLines(words.join(' ')).lines);
      }),
    );
  });
});
