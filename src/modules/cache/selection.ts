import { createHash } from 'node:crypto';
import { type FieldList, fieldLines, replyField, withVary } from '../../core/http/reply.ts';
import type { Fields } from '../../core/http/request.ts';
import { tokenSource, trimOws } from '../../core/http/syntax.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { languageFieldCharactersMax, languagesRememberedMax } from '../visitors/limits.ts';

/** The longest secondary cache key that is stored as text; of longer ones, a hash is stored. */
const selectingCharactersMax = 512;

/** The most members of a list that is normalized; longer lists stay unchanged. */
const canonicalMembersMax = 32;

/** The fields of a request as the source receives them, by lower-case name. */
export interface SentField {
  (name: string): string | undefined;
  /** The fields that choose a variant without a Vary, see Overrides; absent if there are none. */
  readonly variant?: string;
}

/** The names in Vary (RFC 9110 §12.5.5), in lower case, without duplicates, in order. */
export function varyNames(fields: FieldList): readonly string[] {
  const names = fieldLines(fields, 'vary').flatMap((line) => line.split(','));
  return [...new Set(names.map((name) => name.trim().toLowerCase()))].filter((name) => name !== '');
}

/**
 * Adds the names to Vary that a response implies: one with a content coding was made for an
 * Accept-Encoding, and one that allows a single origin for an Origin (Fetch, "CORS protocol and
 * HTTP caches"). Many sources forget them.
 */
export function withImpliedVary(fields: FieldList): FieldList {
  const coding = replyField({ fields }, 'content-encoding')?.toLowerCase() ?? 'identity';
  const allowed = replyField({ fields }, 'access-control-allow-origin') ?? '*';
  const implied = [
    ...(coding === 'identity' ? [] : ['Accept-Encoding']),
    ...(allowed === '*' ? [] : ['Origin']),
  ];
  const names = varyNames(fields);
  const missing = implied.filter((name) => !names.includes(name.toLowerCase()));
  return missing.length === 0 ? fields : withVary(fields, ...missing);
}

/**
 * The secondary cache key (RFC 9111 §4.1): the values of the Vary fields as the source receives
 * them, as one text. Values are not normalized further, because sources may tell them apart. An
 * absent field differs from an empty one.
 */
export function selectingKey(names: readonly string[], sent: SentField): string {
  const { variant = '' } = sent;
  if (names.length === 0 && variant === '') return '';
  const values = names.map((name) => {
    const value = sent(name);
    return value === undefined ? '' : `=${value}`;
  });
  const key = variant + values.join('\n');
  if (key.length <= selectingCharactersMax) return key;
  return `#${createHash('sha256').update(key).digest('base64url')}`;
}

/**
 * Normalizes Accept-Language (RFC 9110 §12.5.4) in the fields for the source. Returns the same
 * object if nothing changes.
 */
export function withCanonicalLanguages(fields: Fields): Fields {
  const value = fields['accept-language'];
  if (value === undefined || value.length > languageFieldCharactersMax) return fields;
  let canonical = knownLanguages.get(value);
  if (canonical === undefined) {
    canonical = canonicalLanguages(value);
    knownLanguages.set(value, canonical);
  }
  return withValue(fields, 'accept-language', canonical);
}

/** Browsers send the same value each time, so remember results. */
const knownLanguages = createLruCache<string>(languagesRememberedMax);

/**
 * Removes spaces from token lists (RFC 9110 §5.6.1) in the named fields for the source. Returns the
 * same object if nothing changes.
 */
export function withCanonicalLists(fields: Fields, names: Iterable<string>): Fields {
  let changed = fields;
  for (const name of names) {
    const value = fields[name];
    if (value !== undefined) changed = withValue(changed, name, canonicalList(value));
  }
  return changed;
}

function withValue(fields: Fields, name: string, value: string): Fields {
  if (fields[name] === value) return fields;
  const changed = Object.create(null) as Record<string, string | undefined>;
  return Object.assign(changed, fields, { [name]: value });
}

const languageRange = /^(?:\*|[a-z]{1,8}(?:-[a-z0-9]{1,8}){0,8})$/i;
const weight = /^q=(?:0(?:\.\d{1,3})?|1(?:\.0{1,3})?)$/i;

/**
 * Sorts by descending weight, then by descending tag, so that a longer tag precedes a shorter one
 * and `*` is last. A value that does not match the syntax of RFC 9110 stays unchanged.
 */
function canonicalLanguages(value: string): string {
  const elements = value.split(',', canonicalMembersMax + 1);
  if (elements.length > canonicalMembersMax) return value;
  const members: { readonly range: string; readonly q: number }[] = [];
  for (const element of elements) {
    const [range = '', parameter, ...others] = element.split(';', 3).map(trimOws);
    const isMember = languageRange.test(range) && others.length === 0;
    if (!isMember || (parameter !== undefined && !weight.test(parameter))) return value;
    members.push({ range: tagCase(range), q: Number(parameter?.slice('q='.length) ?? 1) });
  }
  return members
    .sort((one, other) => other.q - one.q || (one.range < other.range ? 1 : -1))
    .map(({ range, q }) => (q === 1 ? range : `${range};q=${q}`))
    .join(',');
}

/** A language tag in the case that browsers write (RFC 5646 §2.1.1): `zh-Hant-TW`. */
function tagCase(tag: string): string {
  const [language = '', ...subtags] = tag.toLowerCase().split('-');
  const written = subtags.map((subtag) => {
    if (subtag.length === 2) return subtag.toUpperCase();
    return subtag.length === 4 ? subtag.charAt(0).toUpperCase() + subtag.slice(1) : subtag;
  });
  return [language, ...written].join('-');
}

const token = new RegExp(`^${tokenSource}$`);

function canonicalList(value: string): string {
  const elements = value.split(',', canonicalMembersMax + 1).map(trimOws);
  const isList = elements.length <= canonicalMembersMax && elements.every((one) => token.test(one));
  return isList ? elements.join(',') : value;
}
