import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import { pino } from 'pino';
import { readableLines } from '../../../src/core/report/line-formats.ts';

type Message = readonly [level: 'debug' | 'info' | 'warn' | 'error' | 'fatal', object, string];

/** What a person reads of a line that pino writes. */
function shown([level, fields, text]: Message, style = { colour: false, hasTime: false }): string {
  const lines: string[] = [];
  const readable = readableLines(style);
  const destination = { write: (line: string) => lines.push(readable(line)) };
  const settings = { level: 'trace', base: null, timestamp: pino.stdTimeFunctions.isoTime };
  pino(settings, destination)[level](fields, text);
  return lines.join('');
}

suite('lines of the log for people', () => {
  const cases: readonly (readonly [name: string, Message, expected: string])[] = [
    ['a message', ['info', {}, 'It serves.'], 'INFO: It serves.\n'],
    ['the process', ['info', { pid: 7 }, 'It serves.'], 'INFO (7): It serves.\n'],
    [
      'fields as JSON',
      ['warn', { id: 'a1', more: { a: [1, null] } }, 'Slow.'],
      'WARN: Slow. {"id":"a1","more":{"a":[1,null]}}\n',
    ],
    ['two lines of a message', ['debug', {}, 'one\ntwo'], 'DEBUG: one\ntwo\n'],
    [
      'no control characters',
      ['fatal', { text: '\x1b[2J\x9b' }, '\x1b]0;x\x07\r\x9b'],
      'FATAL: \\u001b]0;x\\u0007\\u000d\\u009b {"text":"\\u001b[2J\\u009b"}\n',
    ],
    ['an error that is none', ['error', { err: 7 }, 'No.'], 'ERROR: No.\n    7\n'],
  ];
  for (const [name, message, expected] of cases) {
    test(`have ${name}`, () => {
      assert.equal(shown(message), expected);
    });
  }

  test('have the stacks of an error and its cause below, with their fields', () => {
    const cause = Object.assign(new Error('no room'), { code: 'ENOSPC' });
    const err = Object.assign(new Error('The disk is full.', { cause }), { code: 'storage_full' });
    const text = shown(['error', { err, id: 'a1' }, 'Cannot write.']);
    const lines = text.trimEnd().split('\n');
    assert.equal(lines[0], 'ERROR: Cannot write. {"id":"a1"}');
    assert.equal(lines[1], '    Error: The disk is full.');
    assert.match(lines[2] ?? '', /^ {8}at .*line-formats\.test\.ts/);
    assert.match(text, /^ {4}caused by: Error: no room$/m);
    assert.equal(lines.at(-1), '    {"code":"storage_full"}');
  });

  test('begin with the time, and have colours, if they should', () => {
    const text = shown(['info', { port: 80 }, 'It serves.'], {
      colour: true,
      hasTime: true,
    });
    const plain = stripVTControlCharacters(text);
    assert.match(plain, /^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: It serves\. \{"port":80\}\n$/);
    assert.equal(text.split('\x1b[').length, 1 + 6, 'three colours begin and end');
  });
});
