import { wantsDetails, templateFields, type AccessField } from './access-fields.ts';
import type { AccessEntry } from './access-entry.ts';

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

/** What the ini file says about lines of the access log, besides their format. */
export interface AccessRules {
  /** Whether the lines have fields of `AccessEntry.details`. */
  readonly wantsDetails: boolean;
  /** The entry as the log may have it; undefined for a request that has no line. */
  apply(entry: AccessEntry): AccessEntry | undefined;
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
 * A URL in which the values of some query parameters are `redacted`, by their lower-case names. A
 * name may be percent-encoded, and a value may itself be a URL with such parameters.
 */
export function redactedUrl(url: string, names: ReadonlySet<string>): string {
  const mark = url.indexOf('?');
  if (mark === -1) return url;
  const query = url.slice(mark + 1).replace(/[^&;#?]+/g, (pair) => {
    const equals = pair.indexOf('=');
    if (equals === -1) return pair;
    const name = pair.slice(0, equals);
    return isNamed(name, names) ? `${name}=redacted` : pair;
  });
  return `${url.slice(0, mark)}?${query}`;
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
