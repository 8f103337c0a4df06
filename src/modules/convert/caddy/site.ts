import type { Directive } from '../directive.ts';
import type { FieldWish, SitePlace } from '../sections.ts';
import { iniVariables, fieldTemplate } from './placeholders.ts';
import { takeMatcher, type CaddyMatch } from './matchers.ts';
import { nearest, unneeded } from './words.ts';

/** A site of a Caddyfile, on its way to sections of Waymark. */
export interface CaddySite extends SitePlace {
  readonly scheme: 'http' | 'https';
  /** All directives of the site, which define its matchers. */
  readonly block: readonly Directive[];
  /** The variables of the environment that it names, with their defaults. */
  readonly variables: Map<string, string>;
  /** The paths of the `handle` around; one that is not stripped ends with `*`. */
  readonly within: readonly string[];
  /** Whether the path before the `*` is removed (`handle_path`, `uri strip_prefix`). */
  readonly isStripped: boolean;
  /** The folder of `root` around. */
  readonly root: string | undefined;
  readonly errors: string | undefined;
  readonly hasFiles: boolean;
}

/** The place of a directive, its paths, and its words without the matcher. */
interface Placed {
  readonly place: CaddySite;
  readonly paths: readonly string[];
  readonly rest: readonly string[];
}

/** Applies the matcher of a directive; undefined, and left, if it cannot be expressed. */
export function placed(site: CaddySite, directive: Directive): Placed | undefined {
  const { match, rest } = takeMatcher(directive.words, site.block);
  if (match === undefined) {
    site.conversion.leave(directive, 'a page rule with conditions, or a section with `path`');
    return undefined;
  }
  const servesFiles = [directive, ...(directive.block ?? [])].some(
    ({ name }) => name === 'file_server',
  );
  if (match.isFile && !servesFiles) {
    site.conversion.leave(directive, 'a [disk.<name>]: files come before all other sources');
    return undefined;
  }
  const isNarrower = match.paths.join() !== '/*';
  if (isNarrower && site.isStripped) {
    site.conversion.leave(directive, 'a section with the whole path, as the client sends it');
    return undefined;
  }
  const paths = isNarrower ? match.paths : site.within;
  return { place: onHosts(site, match), paths, rest };
}

function onHosts(site: CaddySite, { hosts }: CaddyMatch): CaddySite {
  const [first] = hosts;
  if (first === undefined) return site;
  return { ...site, origins: hosts.map((host) => `${site.scheme}://${host}`), name: first };
}

/** A value with variables of the ini file in place of those of the environment. */
export function withVariables({ variables }: CaddySite, text: string): string {
  return iniVariables(text, variables);
}

/** Leaves a directive with what comes nearest, unless it needs no counterpart. */
export function leaveUnknown(
  { conversion }: Pick<CaddySite, 'conversion'>,
  directive: Directive,
): void {
  const { name } = directive;
  if (unneeded.has(name)) return;
  const known = Object.hasOwn(nearest, name) ? nearest[name] : undefined;
  conversion.leave(directive, known ?? 'nothing that this command knows');
}

/** One line of `header`, `header_up` or `header_down`; undefined if it cannot be expressed. */
export function fieldOf(
  site: CaddySite,
  directive: Directive,
  words: readonly string[],
): FieldWish | undefined {
  const [written = '', value, replacement] = words;
  const [, mark = '', name = ''] = /^([-+?>]?)(.*?):?$/.exec(written) ?? [];
  if (replacement !== undefined || name.includes('*')) {
    site.conversion.leave(
      directive,
      'a [headers.<name>], which sets, adds and removes whole fields',
    );
    return undefined;
  }
  if (mark === '-') return { name, template: '', source: directive };
  const template = fieldTemplate(withVariables(site, value ?? ''));
  if (template === undefined) {
    site.conversion.leave(directive, 'a [headers.<name>], which knows other variables');
    return undefined;
  }
  if (mark === '?')
    site.conversion.note(directive, 'Waymark sets the field always, not only if it is missing');
  return { name, template, isAdded: mark === '+', source: directive };
}
