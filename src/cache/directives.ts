import { splitList, tokenSource, unquote } from '../http/syntax.ts';

/**
 * Cache directives (RFC 9111 §5.2) by lower-case name: `true` for one without an argument, its text
 * unquoted, or undefined for an argument that cannot be read.
 */
export type Directives = ReadonlyMap<string, string | true | undefined>;

const directive = new RegExp(
  `^(${tokenSource})(?:=(${tokenSource}|"(?:[^"\\\\]|\\\\.)*")|([ \\t]*=.*|[ \\t].*))?$`,
  's',
);

/** Past 2^31 seconds a number stands for a very long time (RFC 9111 §1.2.2). */
const longestSeconds = 2 ** 31;

const none: Directives = new Map();

/**
 * Reads a Cache-Control field (RFC 9111 §5.2). Of a directive that comes twice the first one counts
 * (§4.2.1); what is no directive is left out.
 */
export function parseDirectives(field: string | undefined): Directives {
  if (field === undefined) return none;
  const directives = new Map<string, string | true | undefined>();
  // A quoted-string that does not end must not hide what stands before it.
  for (const element of splitList(field, ',') ?? field.split(',').map((one) => one.trim())) {
    const parts = directive.exec(element);
    const name = parts?.[1]?.toLowerCase();
    if (parts === null || name === undefined || directives.has(name)) continue;
    const [, , argument, unreadable] = parts;
    const bare = unreadable === undefined ? true : undefined;
    directives.set(name, argument === undefined ? bare : unquote(argument));
  }
  return directives;
}

/**
 * A directive's argument in seconds (RFC 9111 §1.2.2): undefined where the directive is absent, 0
 * where its argument is no number, so that what cannot be read makes nothing fresh (§4.2.1).
 */
export function secondsOf(directives: Directives, name: string): number | undefined {
  if (!directives.has(name)) return undefined;
  const argument = directives.get(name);
  if (typeof argument !== 'string' || !/^\d+$/.test(argument)) return 0;
  return Math.min(Number(argument), longestSeconds);
}

/**
 * The fields that a `no-cache` or `private` is about (RFC 9111 §5.2.2.4, §5.2.2.7), by lower-case
 * name: none where it is absent, `all` where it names none that can be read and so is about the
 * whole answer.
 */
export function fieldsOf(
  directives: Directives,
  name: 'no-cache' | 'private',
): readonly string[] | 'all' {
  if (!directives.has(name)) return [];
  const argument = directives.get(name);
  if (typeof argument !== 'string') return 'all';
  const names = argument.split(',').map((one) => one.trim().toLowerCase());
  const named = names.filter((one) => one !== '');
  return named.length > 0 && named.every((one) => fieldName.test(one)) ? named : 'all';
}

const fieldName = new RegExp(`^${tokenSource}$`);
