import { wantsDetails, templateFields, type AccessField } from './access-fields.ts';
import type { AccessEntry, AccessRules } from '../../core/report/access-entry.ts';

/** `[log.<name>]`: the requests of some paths have no line, or one of several has one. */
interface PathLogRule {
  readonly name: string;
  /** Patterns in which each `*` stands for any text. */
  readonly path: readonly string[];
  readonly access: boolean;
  /** One answer of so many has a line; 1 for all. */
  readonly sample: number;
}

/** The settings of `[log]` and `[log.<name>]` that decide about a line. */
interface RuleSettings {
  readonly redact: readonly string[];
  readonly fields: readonly AccessField[];
  readonly line: string | undefined;
  readonly paths: readonly PathLogRule[];
}

/**
 * Compiles the settings; undefined if they leave every entry as it is. `matches` compares a pattern
 * with a path, and `random` returns a number from 0 to 1.
 */
export function createAccessRules(
  { redact, fields, line, paths }: RuleSettings,
  {
    matches,
    random,
  }: {
    readonly matches: (pattern: string, path: string) => boolean;
    readonly random: () => number;
  },
): AccessRules | undefined {
  const used = line === undefined ? fields : (templateFields(line) as readonly AccessField[]);
  const hasDetails = wantsDetails(used);
  if (!hasDetails && redact.length === 0 && paths.length === 0) return undefined;
  const names = new Set(redact.map((name) => name.toLowerCase()));
  const ruleOf = (path: string): PathLogRule | undefined =>
    paths.find((rule) => rule.path.some((pattern) => matches(pattern, path)));
  const hasLine = ({ target, status }: AccessEntry): boolean => {
    if (paths.length === 0 || !target.startsWith('/')) return true;
    const rule = ruleOf(pathOf(target));
    if (rule === undefined) return true;
    if (!rule.access) return false;
    return rule.sample === 1 || status >= 500 || random() * rule.sample < 1;
  };
  return {
    wantsDetails: hasDetails,
    apply(entry) {
      if (!hasLine(entry)) return undefined;
      if (names.size === 0) return entry;
      const target = redactedUrl(entry.target, names);
      const referer = redactedUrl(entry.referer, names);
      return { ...entry, target, referer };
    },
  };
}

/** The path of a target, decoded as far as it can be. */
function pathOf(target: string): string {
  const [path = ''] = target.split('?', 1);
  return decoded(path);
}

/**
 * A URL in which the values of some parameters of its query and its fragment are `redacted`, by
 * their lower-case names. A name may be percent-encoded, and a value may itself be a URL with such
 * parameters, encoded or not.
 */
export function redactedUrl(url: string, names: ReadonlySet<string>): string {
  return redactedWithin(url, names, encodedUrlsMax);
}

/** URLs within encoded values of one another that are looked at. */
const encodedUrlsMax = 3;

function redactedWithin(url: string, names: ReadonlySet<string>, depth: number): string {
  const mark = url.search(/[?#]/);
  if (mark === -1) return url;
  const parameters = url.slice(mark).replace(/[^&;#?]+/g, (pair) => {
    const equals = pair.indexOf('=');
    if (equals === -1) return pair;
    const name = pair.slice(0, equals);
    if (isNamed(name, names)) return `${name}=redacted`;
    return depth === 0 ? pair : `${name}=${redactedValue(pair.slice(equals + 1), names, depth)}`;
  });
  return url.slice(0, mark) + parameters;
}

/** A value as it was sent, unless it is an encoded URL of which something is redacted. */
function redactedValue(value: string, names: ReadonlySet<string>, depth: number): string {
  const plain = decoded(value);
  if (plain === value) return value;
  const shown = redactedWithin(plain, names, depth - 1);
  return shown === plain ? value : encodeURIComponent(shown);
}

function isNamed(name: string, names: ReadonlySet<string>): boolean {
  const plain =
    name.includes('%') || name.includes('+') ? decoded(name.replaceAll('+', ' ')) : name;
  return names.has(plain.toLowerCase());
}

function decoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
