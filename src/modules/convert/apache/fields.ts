import { extensions as extensionsByType } from 'mime-types';
import type { Directive } from '../directive.ts';
import type { FieldWish } from '../sections.ts';
import type { ApacheSite } from './site.ts';

/** `Header [always] set Name value`: a field of answers; undefined if it is left. */
export function headerField(
  { conversion }: Pick<ApacheSite, 'conversion'>,
  directive: Directive,
): FieldWish | undefined {
  const words = directive.words.filter((word) => !/^(?:always|onsuccess)$/i.test(word));
  const [written = '', name = '', value = '', ...rest] = words;
  const action = written.toLowerCase();
  const source = directive;
  if (action === 'unset' && value === '') return { name, template: '', source };
  const isSet = ['set', 'setifempty'].includes(action);
  const isAdded = ['add', 'append', 'merge'].includes(action);
  if ((!isSet && !isAdded) || rest.length > 0 || value.includes('%{')) {
    conversion.leave(directive, 'a [headers.<name>], which sets, adds and removes whole fields');
    return undefined;
  }
  return { name, template: value.replaceAll('${', () => '$${'), isAdded, source };
}

const unitSeconds: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

/** The `Cache-Control` of a time such as `access plus 1 year` or `A3600`. */
function maxAge(text: string): string | undefined {
  const [, base, short] = /^([AM])(\d{1,9})$/.exec(text) ?? [];
  if (short !== undefined) return base === 'A' ? `max-age=${short}` : undefined;
  const words = text
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== 'plus');
  const [from, ...parts] = words;
  if (from !== 'access' && from !== 'now') return undefined;
  let seconds = 0;
  for (let at = 0; at < parts.length; at += 2) {
    const unit = unitSeconds[(parts[at + 1] ?? '').replace(/s$/, '')];
    const count = Number(parts[at]);
    if (unit === undefined || !Number.isInteger(count)) return undefined;
    seconds += count * unit;
  }
  return `max-age=${seconds}`;
}

/** The paths and the field of `ExpiresByType` or `ExpiresDefault`; undefined if it is left. */
export function expiresField(
  { conversion }: Pick<ApacheSite, 'conversion'>,
  directive: Directive,
): { readonly paths: readonly string[]; readonly field: FieldWish } | undefined {
  const isDefault = directive.name === 'expiresdefault';
  const [type = '', ...rest] = isDefault ? ['', ...directive.words] : directive.words;
  const age = maxAge(rest.join(' '));
  const known = extensionsByType[type.toLowerCase()] ?? otherTypes[type.toLowerCase()];
  const paths = isDefault ? ['/*'] : known?.map((extension) => `*.${extension}`);
  if (age === undefined || paths === undefined) {
    conversion.leave(directive, 'a [headers.<name>] with the extensions of that type as `path`');
    return undefined;
  }
  const withFolders = type === 'text/html' ? [...paths, '*/'] : paths;
  return { paths: withFolders, field: { name: 'Cache-Control', template: age, source: directive } };
}

/** Types that are no longer registered, or never were. */
const otherTypes: Readonly<Record<string, readonly string[]>> = {
  'text/javascript': ['js', 'mjs'],
  'application/javascript': ['js', 'mjs'],
  'application/x-javascript': ['js', 'mjs'],
  'image/jpg': ['jpg', 'jpeg'],
  'image/vnd.microsoft.icon': ['ico'],
  'font/ttf': ['ttf'],
  'application/x-font-woff': ['woff'],
  'application/x-font-ttf': ['ttf'],
};
