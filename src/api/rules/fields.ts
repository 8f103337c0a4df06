import { parseMediaType } from '../../http/mediatype.ts';
import { parseOrigin } from '../../model/authority.ts';
import { isBreadcrumbKey } from '../../model/target.ts';
import { parseDateTime } from '../../model/date-time.ts';
import { Failure } from '../../model/failure.ts';
import { isJsonObject, type Json } from '../../model/json.ts';
import {
  contentBytesMax,
  enginedataBytesMax,
  originBytesMax,
  pathBytesMax,
  tableCharactersMax,
  wildcardPathBytesMax,
} from '../../model/limits.ts';
import { canonicalPath, encodeNonAscii } from '../../model/path.ts';
import { ruleKinds, type RuleKind } from '../../model/rule.ts';
import { validEnginedata } from './enginedata.ts';

/**
 * What decides whether a field's value is valid: the rule's kind and engine, and the engines that
 * exist.
 */
export interface Placing {
  readonly kind: RuleKind;
  readonly engine: string | undefined;
  readonly engines: ReadonlySet<string>;
}

/**
 * One field of a page rule: the kinds it is valid for, and its value as it is kept, or undefined if
 * not valid.
 */
interface FieldDefinition {
  readonly kinds: readonly RuleKind[];
  readonly parse: (value: Json, placing: Placing) => Json | undefined;
  /**
   * Whether a value that was parsed before stays valid when kind or engine have changed; always, if
   * absent.
   */
  readonly stillValid?: (value: Json, placing: Placing) => boolean;
}

const recordKinds = ['edit-record', 'insert-record', 'delete-record'] as const;
const pageKinds = ['content', ...recordKinds] as const;

/**
 * The fields of a page rule that a caller may write (docs/design/page-rules.md#fields), kind and
 * engine first because the others depend on them. A parser throws `too_large` for a value past a
 * limit: such a value is refused, not kept.
 */
export const fieldDefinitions: ReadonlyMap<string, FieldDefinition> = new Map<
  string,
  FieldDefinition
>([
  ['kind', { kinds: ruleKinds, parse: (value) => (isRuleKind(value) ? value : undefined) }],
  [
    'engine',
    {
      kinds: pageKinds,
      parse: (value, { engines }) =>
        typeof value === 'string' && engines.has(value) ? value : undefined,
      stillValid: (value, { engines }) => typeof value === 'string' && engines.has(value),
    },
  ],
  ['origin', { kinds: ruleKinds, parse: parseRuleOrigin }],
  [
    'path',
    {
      kinds: ruleKinds,
      parse: (value, { kind }) => parseRulePath(value, kind),
      stillValid: (value, { kind }) =>
        kind === 'resolve' || (typeof value === 'string' && value.startsWith('/')),
    },
  ],
  ['content', { kinds: ['content'], parse: parseContent }],
  ['contenttype', { kinds: ['content', 'resolve'], parse: parseContentType }],
  ['httpresponse', { kinds: ruleKinds, parse: parseStatus }],
  [
    'enginedata',
    {
      kinds: ruleKinds,
      parse: parseEnginedata,
      stillValid: (value, placing) => isJsonObject(value) && validEnginedata(value, placing),
    },
  ],
  ['table', { kinds: pageKinds, parse: (value) => boundedText(value, tableCharactersMax) }],
  ['lang', { kinds: ruleKinds, parse: parseLanguage }],
  ['designed_at', { kinds: ruleKinds, parse: parseDateTime }],
  ['rve', { kinds: ruleKinds, parse: parseFinite }],
  [
    'enginecomments',
    { kinds: ruleKinds, parse: (value) => (typeof value === 'string' ? value : undefined) },
  ],
]);

/** Whether a value names a kind of page rule. */
export function isRuleKind(value: Json | undefined): value is RuleKind {
  return typeof value === 'string' && (ruleKinds as readonly string[]).includes(value);
}

/**
 * An origin in its canonical form (RFC 6454 §6.2): lower case, no default port, nothing behind it;
 * or `*`.
 */
export function parseRuleOrigin(value: Json): string | undefined {
  if (value === '*') return value;
  if (typeof value !== 'string') return undefined;
  refuseOver('origin', Buffer.byteLength(value), originBytesMax);
  return parseOrigin(value.replace(/\/$/, ''));
}

function parseRulePath(value: Json, kind: RuleKind): string | undefined {
  if (typeof value !== 'string' || value === '') return undefined;
  if (!value.startsWith('/')) {
    return kind === 'resolve' && isBreadcrumbKey(value) ? value : undefined;
  }
  refuseOver('path', Buffer.byteLength(value), pathBytesMax);
  const path = canonicalPath(encodeNonAscii(value));
  if (path === undefined || path.slice(0, -1).includes('*')) return undefined;
  if (path.endsWith('*')) refuseOver('path', Buffer.byteLength(path), wildcardPathBytesMax);
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

/** Forms and query strings have no numbers, so a numeral counts as its number. */
function parseFinite(value: Json): number | undefined {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : undefined;
}

function parseStatus(value: Json): number | undefined {
  const status = parseFinite(value);
  return status !== undefined && Number.isInteger(status) && status >= 200 && status <= 599
    ? status
    : undefined;
}

function parseEnginedata(value: Json, placing: Placing): Json | undefined {
  if (!isJsonObject(value)) return undefined;
  refuseOver('enginedata', Buffer.byteLength(JSON.stringify(value)), enginedataBytesMax);
  return validEnginedata(value, placing) ? value : undefined;
}

function boundedText(value: Json, charactersMax: number): string | undefined {
  return typeof value === 'string' && value !== '' && value.length <= charactersMax
    ? value
    : undefined;
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
  throw new Failure('too_large', `${field} is ${size} bytes; at most ${sizeMax} are kept.`, {
    field,
  });
}
