import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { codeProblems, markdownProblems } from '../../docs/prose/prose.ts';

suite('the check of the prose', () => {
  const cases: readonly (readonly [string, RegExp | undefined])[] = [
    ['The server reads the ini file.', undefined],
    ['The server reads the config file.', /“config file”: write ini file/],
    ['A WebSocket is open.', undefined],
    ['A web socket is open.', /write websocket/],
    ['It closes the the file.', /“the the”: write the word once/],
    ['Waits for an page.', /write a\./],
    ['Waits for a answer, an hour or an HTTP request, a user and a one.', /“a answer”: write an/],
    ['It is simply\nbetter.', /simply/],
    ['`config files` and [a page](how-to/config-file.md) are no prose.', undefined],
    ['```sh\nsimply e.g.\n```\n', undefined],
  ];
  for (const [text, expected] of cases) {
    test(`of “${text.replaceAll('\n', ' ')}”`, () => {
      const found = markdownProblems(text).map(({ message }) => message);
      if (expected === undefined) assert.deepEqual(found, []);
      else assert.match(found.join('\n'), expected);
    });
  }

  test('finds a long sentence in its line, and not the sum of short ones', () => {
    const sentence = (words: number): string => `${'word and '.repeat(words / 2)}end.`;
    assert.deepEqual(markdownProblems(`# A\n\n${sentence(30)} ${sentence(30)}\n`), []);
    const [found] = markdownProblems(`# A\n\nShort.\n\n- ${sentence(50)}\n`);
    assert.equal(found?.line, 5);
    assert.match(found.message, /has 51 words/);
  });

  test('reads comments and texts of code, and leaves out names', () => {
    const code = [
      'import { configFile } from "x";',
      '// simply so',
      'const easily = `It is ${easily} asked.`;',
      '/** `simply` is a name; the config',
      ' * file is not. */',
      'say("Give the API token.");',
    ].join('\n');
    assert.deepEqual(
      codeProblems('a.ts', code).map(({ line }) => line),
      [2, 4, 6],
    );
  });
});
