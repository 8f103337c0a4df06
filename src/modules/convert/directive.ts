import { Failure } from '../../core/values/failure.ts';

/** A literal text at the start of a regular expression, and what follows it. */
const literalStart = /^((?:[^\\^$.|?*+()[\]{}]|\\[^A-Za-z0-9])*)(.*)$/s;
const extensionsMax = 100;

/** What comes nearest to PHP by FastCGI. */
export const phpNearest =
  'run PHP with an HTTP server of its own (`frankenphp`, `php -S`) behind a [proxy.<name>]';

/** What comes nearest to directives about who may see something. */
export const accessNearest = 'an `[access.<name>]` section';

/** What comes nearest to a redirect that has other variables. */
export const redirectNearest =
  'a [redirect.<name>], whose `to` knows {splat}, {path}, {query} and {host}';

/** What comes nearest to error pages of other names. */
export const errorsNearest =
  '`errors` of a [disk.<name>]: a folder with pages such as 404.html and 5xx.html';

/** What differs for a file of `htpasswd`. */
export const htpasswdNote = 'Waymark reads the lines of `htpasswd -B`, and no older hashes';

/** A directive of a configuration of nginx, Caddy or Apache, with its block. */
export interface Directive {
  readonly name: string;
  /** Its arguments, without quotes. */
  readonly words: readonly string[];
  /** The line on which it begins, from 1. */
  readonly line: number;
  /** The included file that has it; undefined for the file that is converted. */
  readonly file?: string | undefined;
  /** Name and arguments as they are written. */
  readonly text: string;
  /** Undefined without a block. */
  readonly block: readonly Directive[] | undefined;
}

/** All directives of a block with a name. */
export function allOf(block: readonly Directive[], name: string): readonly Directive[] {
  return block.filter((one) => one.name === name);
}

/** The last directive of a block with a name, which is the one that counts. */
export function lastOf(block: readonly Directive[], name: string): Directive | undefined {
  return block.findLast((one) => one.name === name);
}

/** The failure of a file that is no configuration: `invalid`, with the line. */
export function syntaxFailure(line: number, message: string): Failure {
  return new Failure('invalid', `line ${line}: ${message}`);
}

/** What a simple regular expression of a path matches. */
export type PathPattern =
  | { readonly kind: 'exact'; readonly path: string }
  /** All paths that begin with `path`; `isCaptured` if group 1 is what follows. */
  | { readonly kind: 'below'; readonly path: string; readonly isCaptured: boolean };

/**
 * The paths that a regular expression of nginx, Caddy or Apache matches, if it is one of the usual
 * forms: `^/old$`, `^/old/?$`, `^/old/(.*)$`, `^/old/`. Undefined for others. A path of `.htaccess`
 * has no slash at its start; `prefix` is put before it.
 */
export function patternsOf(regex: string, prefix = ''): readonly PathPattern[] | undefined {
  if (!regex.startsWith('^')) {
    const isAny = /^(?:\.\*|\(\.\*\)\$?)$/.test(regex);
    return isAny ? [below(prefix || '/', prefix !== '' && regex.startsWith('('))] : undefined;
  }
  const [, written = '', rest = ''] = literalStart.exec(regex.slice(1)) ?? [];
  const unescaped = prefix + written.replaceAll(/\\(.)/g, '$1');
  if (!unescaped.startsWith('/')) {
    // `^(.*)$` of nginx and Caddy captures the slash, too.
    return /^\(?\.\*\)?\$?$/.test(rest) ? [below('/', false)] : undefined;
  }
  if (rest === '$') return [{ kind: 'exact', path: unescaped }];
  if (/^(?:\.\*\$?|\.\+\$?|)$/.test(rest)) return [below(unescaped, false)];
  if (/^\(\.[*+]\)\$?$/.test(rest)) return [below(unescaped, true)];
  const folder = unescaped.replace(/\/$/, '');
  const isOptionalSlash =
    rest.startsWith('/?') || (unescaped.endsWith('/') && rest.startsWith('?'));
  if (!isOptionalSlash || folder === '') return undefined;
  const end = rest.replace(/^\/?\?/, '');
  if (end === '$') return bothSlashes(folder);
  if (/^\(\.\*\)\$?$/.test(end))
    return [below(`${folder}/`, true), { kind: 'exact', path: folder }];
  return undefined;
}

function below(path: string, isCaptured: boolean): PathPattern {
  return { kind: 'below', path, isCaptured };
}

function bothSlashes(folder: string): readonly PathPattern[] {
  return [
    { kind: 'exact', path: folder },
    { kind: 'exact', path: `${folder}/` },
  ];
}

/** The `path` of a redirect or of fields for a pattern. */
export function globOf(pattern: PathPattern): string {
  return pattern.kind === 'exact' ? pattern.path : `${pattern.path}*`;
}

/**
 * The extensions of a regular expression such as `\.(?:css|js|jpe?g)$`, with optional letters
 * expanded; undefined for other forms.
 */
export function extensionsOf(regex: string): readonly string[] | undefined {
  const [, group, single] =
    /^(?:\^?\.\*|\^?\(\.\*\)|\^?\.\+)?\\\.(?:\((?:\?:)?([\w|?]+)\)|(\w+))\$?$/.exec(regex) ?? [];
  const words = (group ?? single)?.split('|');
  if (words === undefined || words.length > extensionsMax) return undefined;
  const expanded = words.flatMap(withOptional);
  const isPlain = expanded.every((word) => /^\w+$/.test(word));
  return isPlain && expanded.length <= extensionsMax ? [...new Set(expanded)] : undefined;
}

function withOptional(word: string): readonly string[] {
  const [, before, letter, after] = /^(\w*)(\w)\?(\w*)$/.exec(word) ?? [];
  if (before === undefined || letter === undefined || after === undefined) return [word];
  return [before + after, before + letter + after];
}
