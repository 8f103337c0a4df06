import { head, refused, type Case } from './case.ts';

const reached = 'GET /far/a ';

function field(line: string): string {
  return head('GET /far/a', line);
}

const badFields: readonly string[] = [
  'X : y',
  'X\t: y',
  'X y: z',
  ': y',
  ' : y',
  'X',
  'X;: y',
  'X(): y',
  'X@y: z',
  'X[]: y',
  '"X": y',
  'X/y: z',
  'X\x00: y',
  'X\x7f: y',
  'X\xe9: y',
  '\x00X: y',
  'X: a\x00b',
  'X: \x00',
  'X: a\x01b',
  'X: a\x0bb',
  'X: a\x0cb',
  'X: a\x1bb',
  'X: a\x7fb',
  'X: a\rb',
  'X: a\nb',
  'X: a\r',
  'X: y\r\n z',
  'X: y\r\n\tz',
  'X:\r\n y',
  'X: y\r\n \r\nZ: a',
  '\tX: y',
  'X: y\r\n: z',
  'X\r\nY: z',
  'X\r: y',
  'X\n: y',
];

/** Names and values of fields (RFC 9112 §5, RFC 9110 §5.1, §5.5). */
export const fields: readonly Case[] = [
  ['a field', field('X: y'), '200 kept', reached],
  ['no blank behind the colon', field('X:y'), '200 kept', reached],
  ['many blanks around a value', field('X: \t  y \t '), '200 kept', reached],
  ['an empty value', field('X:'), '200 kept', reached],
  ['a value of blanks', field('X:   '), '200 kept', reached],
  ['a tab in a value', field('X: a\tb'), '200 kept', reached],
  ['obs-text in a value', field('X: caf\xe9'), '200 kept', reached],
  ['every character a name may have', field("!#$%&'*+-.^_`|~09azAZ: y"), '200 kept', reached],
  ['colons in a value', field('X: : y: z'), '200 kept', reached],
  ['the same field twice', field('X: y\r\nX: z'), '200 kept', reached],
  ['99 fields', field('X: y\r\n'.repeat(98) + 'Z: a'), '200 kept', reached],
  ['101 fields', field('X: y\r\n'.repeat(99) + 'Z: a'), '431 closed'],
  ['2,000 fields', field('X: y\r\n'.repeat(2_000) + 'Z: a'), '431 closed'],
  ['a value that is too large', field(`X: ${'y'.repeat(40_000)}`), '431 closed'],
  ['a value that is much too large', field(`X: ${'y'.repeat(200_000)}`), '431 closed'],
  ['a name that is too large', field(`${'X'.repeat(60_000)}: y`), '431 closed'],
  ['blanks without an end', field(`X:${' '.repeat(60_000)}y`), '431 closed'],
  ['nothing but blanks', field(`X: y${' '.repeat(60_000)}`), '431 closed'],
  ...badFields.map((line): Case => [`the field ${line}`, field(line), refused]),
];
