import type { Random } from './random.ts';

const pieces = [
  ' ',
  '\t',
  ',',
  ';',
  '=',
  '"',
  '\\',
  '/',
  '.',
  '%',
  '*',
  '-',
  '_',
  '0',
  '9',
  'a',
  'W/"',
  'q=',
  ', ',
  ' ,',
  ';q=0.5',
  '%2e',
  '%00',
  '..',
  '/*',
  '\u00e9',
  '\u0080',
  'bytes=',
  '0-',
  '(',
  ')',
  '[',
  '{',
  '@',
  ':',
  '?',
  '#',
  '&',
  "'",
  '<',
  '>',
  '|',
  '~',
  'gzip',
  'text/',
  'de-',
  'true',
  '\u00ff',
] as const;

/** A field value in latin1 characters: ordinary, unusual, or one piece repeated many times. */
export function fieldText(random: Random, lengthMax: number): string {
  const one = (): string => random.pick(pieces);
  switch (random.below(5)) {
    case 0:
      return one();
    case 1:
      return Array.from({ length: 1 + random.below(12) }, one).join('');
    case 2:
    case 3: {
      const piece = one() + (random.chance(0.5) ? one() : '');
      const text = piece.repeat(Math.ceil((1 + random.below(lengthMax)) / piece.length));
      return (random.chance(0.5) ? 'x' : '') + text + (random.chance(0.5) ? 'x' : '');
    }
    default:
      return Array.from({ length: 1 + random.below(200) }, () =>
        String.fromCharCode(32 + random.below(224)),
      ).join('');
  }
}

/** A JSON text: small, deep, wide, or with a mistake. */
export function jsonText(random: Random): string {
  switch (random.below(6)) {
    case 0:
      return '['.repeat(1 + random.below(100_000));
    case 1:
      return '{"a":'.repeat(1 + random.below(20_000));
    case 2: {
      const depth = 1 + random.below(200);
      return '['.repeat(depth) + ']'.repeat(depth);
    }
    case 3:
      return JSON.stringify({ [fieldText(random, 2_000)]: fieldText(random, 20_000) });
    case 4:
      return JSON.stringify(Array.from({ length: random.below(2_000) }, () => random.below(10)));
    default:
      return JSON.stringify(value(random, 4)).slice(
        0,
        random.chance(0.3) ? random.below(80) : undefined,
      );
  }
}

/** A JSON value that nests up to a depth. */
export function value(random: Random, depth: number): unknown {
  switch (random.below(depth > 0 ? 8 : 6)) {
    case 0:
      return null;
    case 1:
      return random.chance(0.5);
    case 2:
      return random.pick([0, -0, 1, -1, 404, 1e308, -1e-7, 9_007_199_254_740_992, 0.1]);
    case 3:
    case 4:
      return fieldText(random, 300);
    case 5:
      return random.pick([
        '',
        '*',
        '/',
        '/a/*',
        'html',
        'form',
        'resolve',
        '2026-11-23T00:00:00Z',
        '__proto__',
      ]);
    case 6:
      return Array.from({ length: random.below(5) }, () => value(random, depth - 1));
    default:
      return Object.fromEntries(
        Array.from({ length: random.below(5) }, () => [name(random), value(random, depth - 1)]),
      );
  }
}

const names = [
  'origin',
  'path',
  'kind',
  'content',
  'contenttype',
  'httpresponse',
  'engine',
  'enginedata',
  'lang',
  'rve',
  'table',
  'id',
  'as_of',
  'query',
  'k',
  'limit',
  'after',
  'text',
  'source',
  'headers',
  'when',
  'if',
  'target',
  'html',
  'scripts',
  'base64',
  'constructor',
  '__proto__',
  'from_seq',
  'url',
  'type',
] as const;

/** The name of a field of an operation, mostly a known one. */
export function name(random: Random): string {
  return random.chance(0.9) ? random.pick(names) : fieldText(random, 50);
}
