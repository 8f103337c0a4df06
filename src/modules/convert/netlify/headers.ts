import type { Conversion, WrittenSection, Source } from '../conversion.ts';
import { accessNearest } from '../directive.ts';
import {
  type FieldWish,
  type SitePlace,
  addAnswer,
  addExactProxy,
  addFields,
  addMount,
  addProxy,
  addRedirect,
} from '../sections.ts';

const movedPermanently = 301;

/** A path of `_headers` with its fields, or one table of `[[headers]]`. */
export interface NetlifyHeaders {
  readonly source: Source;
  readonly path: string;
  readonly fields: readonly FieldWish[];
}

/** Reads the lines of a `_headers`: a path, and below it fields that are indented. */
export function readHeaderBlocks(
  conversion: Conversion,
  lines: readonly string[],
): readonly NetlifyHeaders[] {
  const blocks: (NetlifyHeaders & { readonly fields: FieldWish[] })[] = [];
  for (const [at, text] of lines.entries()) {
    const source = { line: at + 1, text };
    if (/^\s*(?:#|$)/.test(text)) continue;
    if (/^\S/.test(text)) {
      blocks.push({ source, path: text.trim(), fields: [] });
      continue;
    }
    const field = readField(text.trim(), source);
    const block = blocks.at(-1);
    if (block === undefined) conversion.leave(source, 'a path before the fields');
    else block.fields.push(field);
  }
  return blocks;
}

/** `Name: value`, or `! Name` for a field that is removed. */
function readField(text: string, source: Source): FieldWish {
  if (text.startsWith('!')) return fieldOf(text.slice(1).trim(), '', source);
  const colon = text.indexOf(':');
  const name = colon === -1 ? text : text.slice(0, colon);
  return fieldOf(name.trim(), text.slice(name.length + 1).trim(), source);
}

/** A field of a fixed value. */
export function fieldOf(name: string, value: string, source: Source): FieldWish {
  return { name, template: value.replaceAll('${', () => '$${'), source };
}

/** Adds the fields of a path, or leaves them. */
export function addHeaderBlock(site: NetlifySite, { source, path, fields }: NetlifyHeaders): void {
  const { conversion } = site;
  const [, origin, rest = '/'] = /^(https?:\/\/[^/]+)?(\/.*)?$/.exec(path) ?? [];
  if (
    !/^(?:\/|https?:)/.test(path) ||
    /\/:[A-Za-z]/.test(rest) ||
    origin?.includes(':', 6) === true
  ) {
    conversion.leave(source, 'a [headers.<name>] whose `path` has a * in place of a placeholder');
    return;
  }
  const kept = fields.filter((field) => {
    if (field.name.toLowerCase() !== 'basic-auth') return true;
    conversion.leave(field.source, 'an `[access.<name>]` section with `password_file`');
    return false;
  });
  const place = origin === undefined ? site : { ...site, origins: [origin] };
  addFields(place, [rest], kept);
}

/** One line of `_redirects`, or one table of `[[redirects]]`. */
export interface NetlifyRule {
  readonly source: Source;
  readonly from: string;
  readonly to: string;
  readonly status: number;
  /** Whether the rule comes before a file of that path. */
  readonly isForced: boolean;
  /** Parameters of the query, conditions and other words, which cannot be expressed. */
  readonly conditions: readonly string[];
}

/** Reads a line of `_redirects`; undefined for an empty line or a comment, or if it is left. */
export function readRule(
  conversion: Conversion,
  text: string,
  line: number,
): NetlifyRule | undefined {
  const [from, ...words] = withoutComment(text).trim().split(/\s+/);
  if (from === undefined || from === '') return undefined;
  const source = { line, text };
  const at = words.findIndex((word) => /^(?:\/|https?:\/\/)/.test(word));
  const to = words[at];
  if (to === undefined || !/^(?:\/|https?:\/\/)/.test(from)) {
    conversion.leave(source, 'a line with a path and a target');
    return undefined;
  }
  const after = words.slice(at + 1);
  const [, digits, mark] = /^(\d{3})(!?)$/.exec(after[0] ?? '') ?? [];
  const conditions = [...words.slice(0, at), ...after.slice(digits === undefined ? 0 : 1)];
  if (digits === undefined && conditions.length === 0) {
    conversion.note(source, 'the status is 301, as on Netlify; Cloudflare Pages has 302');
  }
  const status = digits === undefined ? movedPermanently : Number(digits);
  return { source, from, to, status, isForced: mark === '!', conditions };
}

function withoutComment(text: string): string {
  const comment = /(?:^|\s)#/.exec(text);
  return comment === null ? text : text.slice(0, comment.index);
}

/** Adds what a rule stands for, or leaves it. */
export function addRule(site: NetlifySite, rule: NetlifyRule): void {
  const { conversion } = site;
  const { source, status, conditions } = rule;
  const [, origin, path = '/'] = /^(https?:\/\/[^/]+)?(\/.*)?$/.exec(rule.from) ?? [];
  const place: SitePlace =
    origin === undefined ? site : { ...site, origins: [origin], name: origin };
  const inner = path.replace(/\/\*$/, '/');
  if (conditions.length > 0) {
    const cure =
      'a page rule of the kind `resolve`, whose conditions know country, language and query';
    conversion.leave(source, cure);
  } else if (/[*]|\/:/.test(inner) || /:(?!splat\b|\/\/|\d)[A-Za-z]/.test(rule.to)) {
    conversion.leave(
      source,
      '`redirects = _redirects` of a [disk.<name>], or a `[rewrite.<name>]` section',
    );
  } else if (status === 200) addRewrite(site, place, { ...rule, from: path });
  else if ([301, 302, 303, 307, 308].includes(status)) {
    const isWide = path.endsWith('*') && !rule.isForced;
    if (isWide) conversion.note(source, 'a redirect of Waymark comes before files');
    const to = rule.to.replaceAll(':splat', '{splat}');
    addRedirect(place, { path, to, status, query: 'keep' }, source);
  } else if ((status === 404 || status === 410) && !rule.isForced) {
    // The error page is that of the mount, and all other paths get 404 anyway.
    if (path !== '/*' || status !== 404) addAnswer(place, { path, status, text: '', type: '' });
  } else conversion.leave(source, accessNearest);
}

/** A rule with the status 200: another file, or another server. */
function addRewrite(
  site: NetlifySite,
  place: SitePlace,
  { source, from, to, isForced }: NetlifyRule,
): void {
  const { conversion } = site;
  const isBelow = from.endsWith('/*');
  const folder = from.slice(0, -1);
  if (/^https?:/.test(to)) {
    if (isForced) conversion.note(source, 'files of that path come before the other server');
    const base = to.replace(/:splat$/, '');
    if (!isBelow) addExactProxy(place, { path: from, sources: [to], host: undefined }, source);
    else if (to.endsWith('/:splat')) {
      addProxy(place, { path: folder, sources: [base], host: 'source', cache: true }, source);
    } else conversion.leave(source, 'a [proxy.<name>] whose `source` ends where the path begins');
    return;
  }
  const [, below = '', file = ''] = /^\/((?:.*\/)?)([^/]+)$/.exec(to) ?? [];
  const isFallback = isBelow && file !== '' && !to.includes(':') && !isForced;
  if (isFallback && from === '/*') site.mount?.set('fallback', below + file, source);
  else if (isFallback && `/${below}` === folder) {
    const root = `${site.root === '.' ? '' : `${site.root}/`}${below.replace(/\/$/, '')}`;
    addMount(place, { path: folder, root, fallback: file }, source);
  } else conversion.leave(source, 'a `[rewrite.<name>]` section with `match` and `to`');
}

/** The site of a file: where its sections apply, and its folder. */
export interface NetlifySite extends SitePlace {
  readonly mount: WrittenSection | undefined;
  readonly root: string;
}
