import { whenReady } from '../../core/values/when-ready.ts';
import { cookieName } from '../../core/config/headers.ts';
import { customHeadersMax } from '../../core/config/limits.ts';
import type { TemplateRequest } from '../../core/http/field-template.ts';
import type { FieldList, Reply } from '../../core/http/reply.ts';
import type { ProblemReason } from '../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import { durationMs } from '../../core/values/units.ts';
import {
  type FieldChanges,
  applyChanges,
  createFieldChanges,
} from '../headers/response-headers.ts';
import {
  headerLines,
  ruleHeaderRefusal,
  ruleHeadersBytesMax,
} from '../rules/pages/rule-headers.ts';

/** The header fields and cookies that a branch of a breadcrumb adds to the answer of a visit. */
export interface BranchFields {
  /** The names of the fields; of a cookie, `Set-Cookie`. */
  readonly names: readonly string[];
  /** Name, template, name, template …, as for a visit without TLS. */
  readonly lines: FieldList;
  /** The same for a visit with TLS: its cookies are `Secure`. */
  readonly secureLines: FieldList;
}

/** A member of `headers` or `cookies` that is never sent, such as `cookies.a b`. */
interface UnsentField {
  readonly path: string;
  readonly reason: ProblemReason;
  /** Words that follow the path. */
  readonly words: string;
}

/**
 * The `headers` and `cookies` of a branch as it is written. A mistake in one of them is a problem,
 * and only this one is not sent.
 */
export function parseBranchFields({ headers, cookies }: JsonObject): {
  readonly fields: BranchFields | undefined;
  readonly unsent: readonly UnsentField[];
} {
  const ofHeaders = readMembers('headers', headers, (name, given) => {
    const refusal = ruleHeaderRefusal(name, given);
    return refusal ?? { member: headerLines({ [name]: given as string | readonly string[] }) };
  });
  const ofCookies = readMembers('cookies', cookies, readCookie);
  const cookieLines = (isSecure: boolean): FieldList =>
    ofCookies.members.flatMap((line) => ['Set-Cookie[]', line(isSecure)]);
  const lines = [...ofHeaders.members.flat(), ...cookieLines(false)];
  const secureLines = [...ofHeaders.members.flat(), ...cookieLines(true)];
  const unsent = [...ofHeaders.unsent, ...ofCookies.unsent];
  if (lines.length === 0) return { fields: undefined, unsent };
  const isTooLong = Buffer.byteLength(secureLines.join()) > ruleHeadersBytesMax;
  if (isTooLong || lines.length / 2 > customHeadersMax) {
    const path = ofHeaders.members.length > 0 ? 'headers' : 'cookies';
    const words =
      `of a branch are at most ${customHeadersMax} fields, and at most ` +
      `${ruleHeadersBytesMax} bytes`;
    return { fields: undefined, unsent: [...unsent, { path, reason: 'out_of_range', words }] };
  }
  const named = lines.filter((_, at) => at % 2 === 0).map((name) => name.replace(/\[\]$/, ''));
  return { fields: { names: [...new Set(named)], lines, secureLines }, unsent };
}

/** A mistake in a member, with the path to it below the name of the member. */
type Refusal = Omit<UnsentField, 'path'> & { readonly below?: string };

function readMembers<T>(
  path: string,
  written: Json | undefined,
  read: (name: string, given: Json) => { readonly member: T } | Refusal,
): { readonly members: readonly T[]; readonly unsent: readonly UnsentField[] } {
  if (written === undefined) return { members: [], unsent: [] };
  if (!isJsonObject(written)) {
    return { members: [], unsent: [{ path, reason: 'wrong_type', words: 'has to be an object' }] };
  }
  const members: T[] = [];
  const unsent: UnsentField[] = [];
  for (const [name, given] of Object.entries(written)) {
    const found = read(name, given);
    if ('member' in found) members.push(found.member);
    else {
      const { below, reason, words } = found;
      const whole = `${path}.${name.slice(0, nameCharactersMax)}`;
      unsent.push({ path: below === undefined ? whole : `${whole}.${below}`, reason, words });
    }
  }
  return { members, unsent };
}

const nameCharactersMax = 80;

/** What a member of a cookie has to be; each makes an attribute (RFC 6265 §4.1). */
const cookieMembers: Readonly<
  Record<
    string,
    { readonly words: string; readonly attribute: (value: Json) => string | undefined }
  >
> = {
  max_age: {
    words: 'has to be a number of seconds, or a time such as 30d',
    attribute(value) {
      const ms = typeof value === 'string' ? durationMs(value) : Number(value) * 1_000;
      const isAge = ['string', 'number'].includes(typeof value) && Number.isInteger(ms);
      return isAge && Number(ms) >= 0 ? `Max-Age=${Math.floor(Number(ms) / 1_000)}` : undefined;
    },
  },
  path: {
    words: 'has to be a path such as /shop',
    attribute: (value) =>
      typeof value === 'string' && /^\/[\x21-\x23\x25-\x3a\x3c-\x7e]*$/.test(value)
        ? `Path=${value}`
        : undefined,
  },
  domain: {
    words: 'has to be a host such as example.com',
    attribute: (value) =>
      typeof value === 'string' && /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/i.test(value)
        ? `Domain=${value}`
        : undefined,
  },
  http_only: { words: 'has to be true or false', attribute: flag('HttpOnly') },
  secure: { words: 'has to be true or false', attribute: flag('Secure') },
  same_site: {
    words: 'has to be lax, strict or none',
    attribute: (value) => sameSites.get(typeof value === 'string' ? value.toLowerCase() : ''),
  },
};

const sameSites = new Map([
  ['lax', 'SameSite=Lax'],
  ['strict', 'SameSite=Strict'],
  ['none', 'SameSite=None'],
]);

function flag(attribute: string): (value: Json) => string | undefined {
  return (value) => (typeof value === 'boolean' ? (value ? attribute : '') : undefined);
}

/**
 * A cookie: its value, or an object with `value` and attributes. An empty value removes the cookie.
 * Its line is made for a visit with TLS, or without.
 */
function readCookie(
  name: string,
  written: Json,
): { readonly member: (isSecure: boolean) => string } | Refusal {
  const named = cookieName(name);
  if ('refused' in named) return { reason: 'bad_format', words: 'is not the name of a cookie' };
  if (/^(?:__Host-)?waymark_/i.test(name)) {
    return { reason: 'bad_format', words: 'cannot be set: the server sets that cookie itself' };
  }
  const { value, ...members } = isJsonObject(written) ? written : { value: written };
  const below = isJsonObject(written) ? { below: 'value' } : {};
  if (typeof value !== 'string') {
    const reason = value === undefined ? 'missing' : 'wrong_type';
    return { reason, words: 'has to be a text', ...below };
  }
  if (!/^[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*$/.test(value) || value.includes('${')) {
    const words = 'is not valid: encode spaces, commas, semicolons, quotes and what is not ASCII';
    return { reason: 'bad_format', words, ...below };
  }
  const attributes = new Map([
    ['path', 'Path=/'],
    ['same_site', 'SameSite=Lax'],
    ...(value === '' ? [['max_age', 'Max-Age=0'] as const] : []),
  ]);
  for (const [member, given] of Object.entries(members)) {
    const known = Object.hasOwn(cookieMembers, member) ? cookieMembers[member] : undefined;
    const attribute = known?.attribute(given);
    if (known === undefined) {
      const words = `is not known: known are value, ${Object.keys(cookieMembers).join(', ')}`;
      return { reason: 'unknown_field', words, below: member };
    }
    if (attribute === undefined) {
      return { reason: 'bad_format', words: known.words, below: member };
    }
    attributes.set(member, attribute);
  }
  const isOfHost = name.startsWith('__Host-');
  if (isOfHost && (attributes.get('path') !== 'Path=/' || attributes.has('domain'))) {
    const words = 'is never stored: a cookie with __Host- has the path / and no domain';
    return { reason: 'bad_format', words };
  }
  // Browsers store none of these without it.
  const isAlwaysSecure =
    /^__(?:Host|Secure)-/.test(name) || attributes.get('same_site') === 'SameSite=None';
  const secure = isAlwaysSecure ? 'Secure' : attributes.get('secure');
  attributes.delete('secure');
  return {
    member(isSecure) {
      const all = [...attributes.values(), secure ?? (isSecure ? 'Secure' : '')];
      return [`${name}=${value}`, ...all].filter((one) => one !== '').join('; ');
    },
  };
}

const prepared = new WeakMap<FieldList, FieldChanges>();

/** A reply with the fields of branches, in their order: a later one replaces an earlier one. */
export function withBranchFields(
  branches: readonly BranchFields[],
  reply: Reply | Promise<Reply>,
  request: TemplateRequest,
): Reply | Promise<Reply> {
  const isSecure = request.origin.startsWith('https:');
  return branches.reduce((answer, { lines, secureLines }) => {
    const changes = changesOf(isSecure ? secureLines : lines);
    return whenReady(answer, (one) => applyChanges(one, request, changes));
  }, reply);
}

function changesOf(lines: FieldList): FieldChanges {
  let changes = prepared.get(lines);
  if (changes === undefined) {
    changes = createFieldChanges(lines);
    prepared.set(lines, changes);
  }
  return changes;
}
