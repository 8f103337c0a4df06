import { allOf, type Directive } from '../directive.ts';
import { extensionsOf, globOf, patternsOf } from '../patterns.ts';

/** The requests that a matcher of Caddy matches, if paths and hosts decide. */
export interface CaddyMatch {
  /** Each with a `*` at its start or end, or without one. */
  readonly paths: readonly string[];
  readonly hosts: readonly string[];
  /** Whether the file must exist, as it must for a mount. */
  readonly isFile: boolean;
}

const all: CaddyMatch = { paths: ['/*'], hosts: [], isFile: false };

/**
 * Takes the matcher from the words of a directive: `*`, `/path*`, `@name`, or none. `match` is
 * undefined for a named matcher that cannot be expressed.
 */
export function takeMatcher(
  words: readonly string[],
  block: readonly Directive[],
): { readonly match: CaddyMatch | undefined; readonly rest: readonly string[] } {
  const [first = '', ...rest] = words;
  if (first === '*') return { match: all, rest };
  if (first.startsWith('/')) return { match: { ...all, paths: [first] }, rest };
  if (!first.startsWith('@')) return { match: all, rest: words };
  const definition = allOf(block, first)[0];
  return { match: definition && namedMatch(definition), rest };
}

function namedMatch({ words, block }: Directive): CaddyMatch | undefined {
  const [kind = '', ...values] = words;
  const lines = block ?? [{ name: kind, words: values }];
  let match: CaddyMatch = all;
  for (const { name, words: args } of lines) {
    if (name === 'path' && args.every(isGlob)) match = { ...match, paths: args };
    else if (name === 'host') match = { ...match, hosts: args };
    else if (name === 'file' && isPathItself(args)) match = { ...match, isFile: true };
    else if (name === 'path_regexp') {
      const paths = globsOf(args.at(-1) ?? '');
      if (paths === undefined) return undefined;
      match = { ...match, paths };
    } else return undefined;
  }
  return lines.length === 0 ? undefined : match;
}

/** Whether a `file` matcher tries the path of the request only. */
function isPathItself(words: readonly string[]): boolean {
  return words.every((word) => word === '{path}' || word === '{path}/index.html');
}

function isGlob(path: string): boolean {
  return /^(?:\*?[^*]*|[^*]*\*)$/.test(path);
}

function globsOf(regex: string): readonly string[] | undefined {
  const extensions = extensionsOf(regex);
  if (extensions !== undefined) return extensions.map((one) => `*.${one}`);
  return patternsOf(regex)?.map(globOf);
}
