import { formValue, numeral } from '../../../core/operations/records/form-value.ts';
import { parseOriginPattern } from '../../../core/values/network/origin-pattern.ts';
import { customHeadersMax } from '../../../core/config/limits.ts';
import { plainName } from '../../../core/config/values.ts';
import { parseMediaType } from '../../../core/http/representation/mediatype.ts';
import { Failure, failureFrom } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { originBytesMax, pathBytesMax, tableCharactersMax } from '../../../core/values/limits.ts';
import {
  canonicalPath,
  encodeNonAscii,
  hasWildcard,
  isRulePath,
} from '../../../core/values/path.ts';
import {
  type NamedMoment,
  parseExactDateTime,
  parseNamedMoment,
  storedMoment,
} from '../../../core/values/time.ts';
import { KIB, MIB } from '../../../core/values/units.ts';
import { isAssetName } from '../asset-name.ts';
import { momentCharactersMax } from '../../drafts/operations/limits.ts';
import { ruleHeaderRefusal, ruleHeadersBytesMax } from '../pages/rule-headers.ts';
import { type RuleKind, isBreadcrumbKey, ruleKinds } from '../rule.ts';
import { engineSchemas } from './enginedata.ts';
import { kindSchemas } from './kind-schemas.ts';
import { contentBytesMax } from './limits.ts';

const enginedataBytesMax = MIB;

/** Origins of one rule. */
export const originsMax = 16;

/** A wildcard path is a key of LMDB, whose keys end at 1,978 bytes. */
const wildcardPathBytesMax = KIB;

/** The properties of a write that decide whether a value is valid. */
export interface Placing {
  readonly kind: RuleKind;
  readonly engine: string | undefined;
  readonly engines: ReadonlySet<string>;
  /** Names of the access sections; undefined if they are not known. */
  readonly accessNames?: ReadonlySet<string> | undefined;
}

/** One field of a page rule. */
interface FieldDefinition {
  /** The kinds that have the field. */
  readonly kinds: readonly RuleKind[];
  /** The JSON types of valid values. */
  readonly types: readonly ('string' | 'number' | 'object')[];
  /** A valid value in words that follow "has to be". */
  readonly expects: string;
  /** The value in the form that is stored; undefined if it is not valid. */
  readonly parse: (value: Json, placing: Placing) => Json | undefined;
  /** Whether a stored value is valid for another kind or engine; by default it is. */
  readonly stillValid?: (value: Json, placing: Placing) => boolean;
}

const recordKinds = ['edit-record', 'insert-record', 'delete-record'] as const;
const pageKinds = ['content', ...recordKinds] as const;
const momentExpected =
  'a date-time with an offset such as 2026-12-01T07:00Z, or the local time of a time zone such ' +
  'as 2026-12-01T08:00[Europe/Berlin]';

/**
 * The fields of a page rule that callers write (docs/design/page-rules.md#fields), kind and engine
 * first, because the others depend on them. A parser throws `too_large` for a value past its limit:
 * the write is refused.
 */
export const fieldDefinitions: ReadonlyMap<string, FieldDefinition> = new Map<
  string,
  FieldDefinition
>([
  [
    'kind',
    text(ruleKinds, `one of ${ruleKinds.join(', ')}`, (value) =>
      isRuleKind(value) ? value : undefined,
    ),
  ],
  [
    'engine',
    {
      ...text(pageKinds, 'the name of an engine', (value, { engines }) =>
        typeof value === 'string' && engines.has(value) ? value : undefined,
      ),
      stillValid: (value, { engines }) => typeof value === 'string' && engines.has(value),
    },
  ],
  [
    'origin',
    text(
      ruleKinds,
      'an http or https origin such as https://www.example.com or https://*.example.com, ' +
        `without a path, up to ${originsMax} of them with a space between them, or *`,
      parseRuleOrigins,
    ),
  ],
  [
    'path',
    {
      ...text(ruleKinds, 'a path such as /news, /news/* or /shop/*/edit', (value, { kind }) =>
        parseRulePath(value, kind),
      ),
      stillValid: (value, { kind }) =>
        kind === 'resolve' || (typeof value === 'string' && value.startsWith('/')),
    },
  ],
  [
    'content',
    {
      kinds: ['content'],
      types: ['string', 'object'],
      expects: 'a text, or {"base64": "…"}',
      parse: parseContent,
    },
  ],
  [
    'asset',
    text(['content'], 'the name of an asset such as photos/harbour.jpg', (value) =>
      typeof value === 'string' && isAssetName(value) ? value : undefined,
    ),
  ],
  ['contenttype', text(['content', 'resolve'], 'a media type such as text/html', parseContentType)],
  ['httpresponse', number('an integer from 200 to 599', parseStatus)],
  [
    'headers',
    {
      kinds: ruleKinds,
      types: ['object'],
      expects:
        'an object with names of header fields that the server does not set itself, and texts ' +
        'with known variables, such as {"X-Robots-Tag": "noindex"}',
      parse: parseRuleHeaders,
    },
  ],
  [
    'enginedata',
    { kinds: ruleKinds, types: ['object'], expects: 'an object', parse: parseEnginedata },
  ],
  [
    'table',
    text(pageKinds, `a text of 1 to ${tableCharactersMax} characters`, (value) =>
      boundedText(value, tableCharactersMax),
    ),
  ],
  ['lang', text(ruleKinds, 'a BCP 47 language tag such as de-CH', parseLanguage)],
  [
    'designed_at',
    text(ruleKinds, 'an ISO 8601 date-time such as 2026-01-31T12:00:00Z', parseExactDateTime),
  ],
  ['rve', number('a number that a double holds, such as 2 or 0.5', parseFinite)],
  [
    'access',
    text(
      ruleKinds,
      'the name of a section [access.<name>] of the ini file',
      (value, { accessNames }) =>
        typeof value === 'string' &&
        'value' in plainName(value) &&
        accessNames?.has(value) !== false
          ? value
          : undefined,
    ),
  ],
  ['from', text(ruleKinds, momentExpected, parseLimit)],
  ['until', text(ruleKinds, momentExpected, parseLimit)],
  [
    'enginecomments',
    text(ruleKinds, 'a text', (value) => (typeof value === 'string' ? value : undefined)),
  ],
]);

function text(
  kinds: readonly RuleKind[],
  expects: string,
  parse: FieldDefinition['parse'],
): FieldDefinition {
  return { kinds, types: ['string'], expects, parse };
}

function number(expects: string, parse: FieldDefinition['parse']): FieldDefinition {
  return { kinds: ruleKinds, types: ['number'], expects, parse };
}

/** Whether a value names a kind of page rule. */
export function isRuleKind(value: Json | undefined): value is RuleKind {
  return typeof value === 'string' && (ruleKinds as readonly string[]).includes(value);
}

/**
 * An origin in canonical form (RFC 6454 §6.2), in lower case and without a default port; one for
 * all subdomains of a host; or `*`. Undefined for anything else.
 */
export function parseRuleOrigin(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined;
  refuseOver('origin', Buffer.byteLength(value), originBytesMax);
  return parseOriginPattern(value.replace(/\/$/, ''));
}

/** The origins of a rule, with a space between them; `*` stands alone. */
function parseRuleOrigins(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined;
  const texts = value.trim().split(/\s+/, originsMax + 1);
  if (texts.length > originsMax) return undefined;
  const origins = texts.map(parseRuleOrigin);
  if (origins.includes(undefined) || (origins.includes('*') && origins.length > 1))
    return undefined;
  return [...new Set(origins)].join(' ');
}

function parseRulePath(value: Json, kind: RuleKind): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  if (!value.startsWith('/')) {
    return kind === 'resolve' && isBreadcrumbKey(value) ? value : undefined;
  }
  refuseOver('path', Buffer.byteLength(value), pathBytesMax);
  const path = canonicalPath(encodeNonAscii(value));
  if (path === undefined || !isRulePath(path)) return undefined;
  // Only a source may tell an encoded slash from one that separates.
  if (kind !== 'content.fetch' && /%(?:2f|5c)/i.test(path)) return undefined;
  if (hasWildcard(path)) refuseOver('path', Buffer.byteLength(path), wildcardPathBytesMax);
  return path;
}

function parseContent(value: Json): Json | undefined {
  if (typeof value === 'string') {
    refuseOver('content', Buffer.byteLength(value), contentBytesMax);
    return value;
  }
  if (!isJsonObject(value) || Object.keys(value).length !== 1) return undefined;
  const { base64 } = value;
  if (typeof base64 !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(base64)) return undefined;
  if (base64.length % 4 !== 0) return undefined;
  refuseOver('content', Buffer.byteLength(base64, 'base64'), contentBytesMax);
  return value;
}

function parseContentType(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined;
  return parseMediaType(value) === undefined ? undefined : value.trim();
}

/** The fields of a form or query, in which every value is a text, as JSON has them. */
export function ruleFieldsFromText(sent: JsonObject): JsonObject {
  const { httpresponse, rve, enginedata } = sent;
  const [status, order] = [httpresponse, rve].map((one) =>
    typeof one === 'string' ? numeral(one) : null,
  );
  return {
    ...sent,
    ...emptied(sent),
    ...(status !== undefined && parseStatus(status) !== undefined && { httpresponse: status }),
    ...(order !== undefined && parseFinite(order) !== undefined && { rve: order }),
    ...(isJsonObject(enginedata) && {
      enginedata: formValue(enginedata, { properties: enginedataProperties(sent) }),
    }),
  };
}

/** No value for the empty texts of fields that cannot be empty: browsers send empty inputs, too. */
function emptied(sent: JsonObject): JsonObject {
  const placing: Placing = { kind: 'content', engine: undefined, engines: new Set() };
  const names = Object.keys(sent).filter((name) => sent[name] === '');
  const never = names.filter((name) => {
    const definition = fieldDefinitions.get(name);
    return definition !== undefined && definition.parse('', placing) === undefined;
  });
  return Object.fromEntries(never.map((name) => [name, null]));
}

/** The schemas of members of enginedata; of every kind and engine if an edit names none. */
function enginedataProperties({ kind, engine }: JsonObject): JsonObject {
  const own = [
    typeof kind === 'string' ? kindSchemas[kind as RuleKind] : undefined,
    typeof engine === 'string' ? engineSchemas.get(engine) : undefined,
  ].filter((schema) => schema !== undefined);
  const schemas = own.length > 0 ? own : [...Object.values(kindSchemas), ...engineSchemas.values()];
  return Object.fromEntries(
    schemas.flatMap(({ properties }) =>
      isJsonObject(properties) ? Object.entries(properties) : [],
    ),
  );
}

function parseFinite(value: Json): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function parseStatus(value: Json): number | undefined {
  const status = parseFinite(value);
  return status !== undefined && Number.isInteger(status) && status >= 200 && status <= 599
    ? status
    : undefined;
}

/** Undefined if a name or value of them is not valid: see placeHeaders. */
function parseRuleHeaders(value: Json): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  refuseOver('headers', Buffer.byteLength(JSON.stringify(value)), ruleHeadersBytesMax);
  const isValid = Object.entries(value).every(
    ([name, given]) => ruleHeaderRefusal(name, given) === undefined,
  );
  const count = Object.values(value).flat().length;
  return isValid && count > 0 && count <= customHeadersMax ? value : undefined;
}

/** Its members are validated one by one: see splitEnginedata. */
function parseEnginedata(value: Json): JsonObject | undefined {
  if (!isJsonObject(value)) return undefined;
  refuseOver('enginedata', Buffer.byteLength(JSON.stringify(value)), enginedataBytesMax);
  return value;
}

function boundedText(value: Json, charactersMax: number): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= charactersMax
    ? value
    : undefined;
}

/** A moment that limits when a rule answers, in the form that is stored. */
function parseLimit(value: Json): string | undefined {
  const moment = limitOf(value);
  return moment === undefined || moment instanceof Failure ? undefined : storedMoment(moment);
}

/** The moment of such a value, or why it is none; undefined for one that is no text. */
export function limitOf(value: Json): NamedMoment | Failure | undefined {
  if (typeof value !== 'string' || value.length > momentCharactersMax) return undefined;
  try {
    return parseNamedMoment(value, undefined);
  } catch (thrown) {
    return failureFrom(thrown);
  }
}

/** A language tag in the canonical form of RFC 5646 §4.5. */
function parseLanguage(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined;
  try {
    return Intl.getCanonicalLocales(value)[0];
  } catch {
    return undefined;
  }
}

function refuseOver(field: string, size: number, sizeMax: number): void {
  if (size <= sizeMax) return;
  throw new Failure('too_large', `${field} has ${size} bytes; the limit is ${sizeMax}.`, {
    field,
  });
}
