import { previewCookie } from '../http/preview-cookie.ts';
import { headerFieldsMax } from '../http/limits.ts';
import { canonicalTarget } from '../http/reading/target.ts';
import type { RequestTarget } from '../http/request.ts';
import { Failure } from '../values/failure.ts';
import type { Scheme } from '../values/network/authority.ts';
import type { MessageHead } from './exchange.ts';

/** The request fields that may select one of the prepared answers to a URL. */
export const choosingFields = ['accept', 'accept-encoding', 'accept-language'] as const;
/** The name of such a field. */
export type ChoosingField = (typeof choosingFields)[number];

/** The values of the fields that matter to a prepared answer, or to the log. */
export type PreparableHead = {
  readonly host: string;
  readonly ifNoneMatch: string | undefined;
  readonly hasCacheControl: boolean;
  readonly userAgent: string;
  readonly referer: string;
  readonly authorization: string | undefined;
  readonly cookie: string | undefined;
} & Readonly<Record<ChoosingField, string>>;

/** An ordinary GET: its answer can be prepared for later requests. */
export interface PreparableRequest {
  readonly head: PreparableHead;
  /** Its URL, with the path as it was sent: sources may answer two spellings differently. */
  readonly key: string;
  readonly target: RequestTarget;
}

/** The effect of a field on the answer; `ignored` ones have none. */
type Role =
  | ChoosingField
  | 'host'
  | 'if-none-match'
  | 'if-modified-since'
  | 'cache-control'
  | 'user-agent'
  | 'referer'
  | 'sec-fetch-dest'
  | 'cookie'
  | 'authorization'
  | 'ignored';

const roles: ReadonlyMap<string, Role> = rolesByName({
  host: ['Host'],
  'if-none-match': ['If-None-Match'],
  'if-modified-since': ['If-Modified-Since'],
  accept: ['Accept'],
  'accept-encoding': ['Accept-Encoding'],
  'accept-language': ['Accept-Language'],
  'cache-control': ['Cache-Control'],
  'user-agent': ['User-Agent'],
  referer: ['Referer'],
  'sec-fetch-dest': ['Sec-Fetch-Dest'],
  cookie: ['Cookie'],
  authorization: ['Authorization'],
  ignored: (
    'Connection Keep-Alive Pragma Priority DNT Origin ' +
    'Upgrade-Insecure-Requests Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User ' +
    'Sec-GPC Sec-CH-UA Sec-CH-UA-Mobile Sec-CH-UA-Platform Sec-CH-UA-Form-Factors Save-Data'
  ).split(' '),
});

/**
 * Reads a request for the lookup of a prepared answer. Undefined for one that has none, or is not
 * valid: `parseRequest` says why.
 */
export function preparableRequest(
  { method, url, version, fields }: MessageHead,
  scheme: Scheme,
): PreparableRequest | undefined {
  if (method !== 'GET' || version === '1.0' || !url.startsWith('/')) return undefined;
  if (fields.length > 2 * headerFieldsMax) return undefined;
  const head = readHead(fields);
  // The preview of a draft gets another answer.
  if (head === undefined || head.cookie?.includes(previewCookie) === true) return undefined;
  const target = targetOf({ method, target: url }, { scheme, host: head.host });
  if (target === undefined) return undefined;
  // No part of a valid target contains a line end, and no path a `?`.
  const mark = target.hasEmptyQuery === true ? '?' : '';
  return { head, target, key: `${target.origin}\n${target.sentPath}${mark}\n${target.query}` };
}

/** The target of a request; undefined if it is not valid. */
function targetOf(
  ...sent: Parameters<typeof canonicalTarget>
): ReturnType<typeof canonicalTarget> | undefined {
  try {
    return canonicalTarget(...sent);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

function rolesByName(names: Readonly<Record<Role, readonly string[]>>): ReadonlyMap<string, Role> {
  const entries = Object.entries(names) as [Role, readonly string[]][];
  return new Map(
    entries.flatMap(([role, spellings]) =>
      spellings.flatMap((name) => [[name, role] as const, [name.toLowerCase(), role] as const]),
    ),
  );
}

/** Whether a service worker gets another answer (console.ts). */
function isServiceWorker(destination: string): boolean {
  return /^serviceworker$/i.test(destination);
}

/**
 * Reads the fields of an ordinary GET. Undefined if one of them has no role, or comes twice where
 * that matters; an empty field is not an absent one. No field with a role is about framing, and a
 * parser has checked all values. Several Cookie fields are one (RFC 9113 §8.2.3).
 */
function readHead(sent: readonly string[]): PreparableHead | undefined {
  let [host, ifNoneMatch, referer, authorization, cookie]: (string | undefined)[] = [];
  let [hasDate, hasCacheControl] = [false, false];
  let [accept, encoding, language, userAgent] = ['', '', '', ''];
  for (let at = 0; at < sent.length; at += 2) {
    const value = sent[at + 1] ?? '';
    switch (roles.get(sent[at] ?? '')) {
      case 'ignored':
        break;
      case 'host':
        if (host !== undefined) return undefined;
        host = value;
        break;
      case 'accept':
        if (accept !== '' || value === '') return undefined;
        accept = value;
        break;
      case 'accept-encoding':
        if (encoding !== '' || value === '') return undefined;
        encoding = value;
        break;
      case 'accept-language':
        if (language !== '' || value === '') return undefined;
        language = value;
        break;
      case 'if-none-match':
        if (ifNoneMatch !== undefined) return undefined;
        ifNoneMatch = value;
        break;
      case 'if-modified-since':
        hasDate = true;
        break;
      case 'cache-control':
        hasCacheControl = true;
        break;
      case 'user-agent':
        if (userAgent === '') userAgent = value;
        break;
      case 'referer':
        referer ??= value;
        break;
      case 'authorization':
        if (authorization !== undefined) return undefined;
        authorization = value;
        break;
      case 'cookie':
        cookie = cookie === undefined ? value : `${cookie}; ${value}`;
        break;
      case 'sec-fetch-dest':
        if (isServiceWorker(value)) return undefined;
        break;
      case undefined:
        return undefined;
    }
  }
  // A date has no effect together with an entity tag (RFC 9110 §13.1.3).
  if (host === undefined || (hasDate && ifNoneMatch === undefined)) return undefined;
  return {
    host,
    ifNoneMatch,
    hasCacheControl,
    userAgent,
    referer: referer ?? '',
    authorization,
    cookie,
    accept,
    'accept-encoding': encoding,
    'accept-language': language,
  };
}
