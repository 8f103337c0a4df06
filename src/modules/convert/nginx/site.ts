import { allOf, lastOf, type Directive } from '../directive.ts';
import type { Conversion } from '../conversion.ts';
import type { FieldWish, SitePlace } from '../sections.ts';
import { nearest, unneeded } from './words.ts';
import { fieldTemplate, secondsOf } from './variables.ts';

/** A server of nginx, on its way to sections of Waymark. */
export interface NginxSite extends SitePlace {
  /** The scheme of all its addresses; undefined if it has both. */
  readonly scheme: 'http' | 'https' | undefined;
  /** The first name. */
  readonly server: string | undefined;
  readonly upstreams: ReadonlyMap<string, Directive>;
  /** The blocks whose directives a location inherits, the innermost first. */
  readonly outer: readonly (readonly Directive[])[];
}

/** The directive of a name that counts in a block: its own, or the one that it inherits. */
export function effective(
  { outer }: Pick<NginxSite, 'outer'>,
  block: readonly Directive[],
  name: string,
): Directive | undefined {
  for (const each of [block, ...outer]) {
    const found = lastOf(each, name);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The directives of a name that count in a block: all of the innermost block that has one. */
export function effectiveAll(
  { outer }: Pick<NginxSite, 'outer'>,
  block: readonly Directive[],
  name: string,
): readonly Directive[] {
  for (const each of [block, ...outer]) {
    const found = allOf(each, name);
    if (found.length > 0) return found;
  }
  return [];
}

/**
 * The `proxy_set_header` lines of a block that send a field of the answer to `auth_request` under
 * its own name, as `copy` does.
 */
export function copiesOfRequest(
  site: Pick<NginxSite, 'outer'>,
  block: readonly Directive[],
): ReadonlySet<Directive> {
  const set = effectiveAll(site, block, 'auth_request_set');
  const fields = new Map(
    set.map(({ words: [variable = '', value = ''] }) => {
      const [, field = ''] = /^\$upstream_http_(\w+)$/.exec(value) ?? [];
      return [variable, field.replaceAll('_', '-').toLowerCase()];
    }),
  );
  const sent = effectiveAll(site, block, 'proxy_set_header');
  return new Set(
    sent.filter(({ words: [name = '', value = ''] }) => fields.get(value) === name.toLowerCase()),
  );
}

/** Whether an `include` names a file of nginx or certbot that needs no counterpart. */
export function isKnownInclude({ words: [file = ''] }: Directive): boolean {
  return /(?:^|\/)(?:mime\.types|options-ssl-nginx\.conf)$/.test(file);
}

/** Leaves each directive of a block that is neither handled nor unneeded. */
export function leaveOthers(
  conversion: Conversion,
  block: readonly Directive[],
  handled: ReadonlySet<string>,
): void {
  for (const directive of block) {
    const { name, words } = directive;
    if (name === 'ssl_protocols' && !words.includes('TLSv1.2')) {
      conversion.leave(directive, 'nothing: Waymark speaks TLS 1.2 and 1.3');
    }
    if (handled.has(name) || unneeded.has(name)) continue;
    if (name === 'include' && isKnownInclude(directive)) continue;
    const known = Object.hasOwn(nearest, name) ? nearest[name] : undefined;
    conversion.leave(directive, known ?? 'nothing that this command knows');
  }
}

const yearSeconds = 31_536_000;

/** The `Cache-Control` that `expires` stands for; undefined for none. */
function cacheControlOf({ words }: Directive): string | undefined {
  const [text = ''] = words;
  if (text === 'max') return `max-age=${10 * yearSeconds}`;
  if (text === 'epoch' || text.startsWith('-')) return 'no-cache';
  const seconds = secondsOf(text);
  return seconds === undefined ? undefined : `max-age=${seconds}`;
}

/** The fields that `add_header` and `expires` of a block add to answers. */
export function fieldsOf(
  conversion: Conversion,
  block: readonly Directive[],
): readonly FieldWish[] {
  const fields: FieldWish[] = [];
  const expires = lastOf(block, 'expires');
  const age = expires && cacheControlOf(expires);
  if (expires !== undefined && age === undefined && expires.words[0] !== 'off') {
    conversion.leave(expires, 'a Cache-Control in a [headers.<name>]');
  }
  const controls: string[] = age === undefined ? [] : [age];
  for (const directive of allOf(block, 'add_header')) {
    const [name = '', value = ''] = directive.words;
    const template = fieldTemplate(value);
    if (template === undefined) {
      conversion.leave(directive, 'a [headers.<name>], which knows other variables');
    } else if (name.toLowerCase() === 'cache-control') controls.push(template);
    else fields.push({ name, template, source: directive });
  }
  const source = lastOf(block, 'add_header') ?? expires;
  const control = allOf(block, 'add_header').find(
    ({ words }) => words[0]?.toLowerCase() === 'cache-control',
  );
  if (controls.length > 0 && source !== undefined) {
    const template = controls.join(', ');
    fields.unshift({ name: 'Cache-Control', template, source: control ?? expires ?? source });
  }
  return fields;
}
