import { linearPattern } from '../../core/values/linear-pattern.ts';
import { origin, sitePath } from '../../core/config/addresses.ts';
import { optional, single, type ParsedKeys } from '../../core/config/ini-key.ts';
import type { KeyText } from '../../core/config/key-text.ts';
import { quoted, type LineProblem } from '../../core/config/problem.ts';
import { wordOr, type ValueParser } from '../../core/config/values.ts';

/** A regular expression for a path, which is matched in linear time. */
export const pathExpression: ValueParser<string> = (value) => {
  try {
    linearPattern(value);
    return { value };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { refused: error.message };
  }
};

/** A path with an optional query, in which `$1` to `$99` stand for groups. */
const rewriteTarget: ValueParser<string> = (text) => {
  const [written = '', ...queries] = text.split('?');
  const path = sitePath(written);
  if ('refused' in path) return path;
  const query = queries.join('?');
  return /^[\x21\x22\x24-\x3b\x3d\x3f-\x7e]*$/.test(query)
    ? { value: query === '' ? path.value : `${path.value}?${query}` }
    : { refused: 'the query has a character that must be percent-encoded' };
};

/** The keys of `[rewrite.<name>]`. */
export const rewriteKeys = {
  origin: single(wordOr('*', origin), '*'),
  match: optional(pathExpression),
  to: optional(rewriteTarget),
};

/** What the reference says about each key. */
export const rewriteTexts: Readonly<Record<keyof typeof rewriteKeys, KeyText>> = {
  origin: {
    about: 'The origin whose requests are rewritten; `*` for every origin.',
    example: 'https://www.example.com',
  },
  match: {
    about:
      'A regular expression for the canonical path. It is matched in linear time, so it has no ' +
      'lookaround and no back-references.',
    example: '^/blog/(\\d+)/(.*)$',
  },
  to: {
    about:
      'The path inside the server whose content answers, with an optional query; `$1` is the ' +
      'first group. The query of the request is added.',
    example: '/posts/$1-$2',
  },
};

/** Finds rewrites that lack a key, and targets with a group that the pattern does not have. */
export function rewriteProblems({
  rewrites,
}: {
  readonly rewrites: readonly ParsedKeys<typeof rewriteKeys>[];
}): readonly LineProblem[] {
  return rewrites.flatMap(({ name, line, lines, isValid, values: { match, to } }) => {
    if (!isValid) return [];
    const title = `[rewrite.${name}]`;
    if (match === undefined || to === undefined) {
      const [key, example] = match === undefined ? ['match', '^/blog/(.*)$'] : ['to', '/posts/$1'];
      return [{ line, message: `${title} needs \`${key}\`, such as \`${key} = ${example}\`` }];
    }
    const problem = unknownGroup(match, to);
    if (problem === undefined) return [];
    return [{ line: lines.get('to')?.[0] ?? line, message: `${title} has ${problem}` }];
  });
}

/** Names a group of a target that the pattern does not have, as the end of a sentence. */
export function unknownGroup(match: string, to: string): string | undefined {
  const groups = (linearPattern(`${match}|`).exec('')?.length ?? 1) - 1;
  const unknown = to.match(/\$\d{1,2}/g)?.find((one) => Number(one.slice(1)) > groups);
  if (unknown === undefined) return undefined;
  const count = groups === 1 ? 'one group' : `${groups} groups`;
  return `${quoted(unknown)} in \`to\`, but \`match\` has ${count}`;
}
