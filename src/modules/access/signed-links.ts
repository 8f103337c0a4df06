import { createHmac, timingSafeEqual } from 'node:crypto';
import { LoadedFile } from '../../core/config/loaded-file.ts';
import { makeLinkKey, parseSecretsKeys } from '../../core/config/secrets-keys.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { KIB } from '../../core/values/units.ts';

/** The largest file of keys that sign links. */
const linkKeysBytesMax = 64 * KIB;

/** The part of a URL that a signature covers, besides the time at which it ends. */
type SignedPlace = Pick<RequestTarget, 'origin' | 'path' | 'query'>;

/** What the end of a query says about a link. */
type SignedLink =
  | { readonly state: 'none' | 'wrong' | 'ended' }
  /** The query without the signature. */
  | { readonly state: 'valid'; readonly query: string };

/** Keys that sign links: the first one signs, all of them verify. */
type LinkKeys = readonly Buffer[];

/**
 * The query of a link that ends at a time, in seconds since 1970: the given one, then `expires` and
 * `signature`, an HMAC-SHA-256 of origin, canonical path, query and time (RFC 2104).
 */
export function signedQuery(key: Buffer, place: SignedPlace, expires: number): string {
  const start = place.query === '' ? '' : `${place.query}&`;
  return `${start}expires=${expires}&signature=${signature(key, place, String(expires))}`;
}

/** Verifies the end of a query; other parameters of these names are none of a link. */
export function verifyLink(keys: LinkKeys, place: SignedPlace, nowMs: number): SignedLink {
  const found = /(?:^|&)expires=(\d{1,12})&signature=([\w-]{43})$/.exec(place.query);
  if (found === null) return { state: 'none' };
  const [, expires = '', sent = ''] = found;
  const query = place.query.slice(0, found.index);
  const given = Buffer.from(sent);
  const isRight = keys.some((key) =>
    timingSafeEqual(Buffer.from(signature(key, { ...place, query }, expires)), given),
  );
  if (!isRight) return { state: 'wrong' };
  return Number(expires) * 1_000 > nowMs ? { state: 'valid', query } : { state: 'ended' };
}

function signature(key: Buffer, { origin, path, query }: SignedPlace, expires: string): string {
  // None of the parts contains a line end.
  const text = ['waymark link', origin, path, query, expires].join('\n');
  return createHmac('sha256', key).update(text).digest('base64url');
}

/** The keys of a file as it is now. */
export interface LinkKeyFile {
  /** Looks for a change of the file; undefined if that was done a moment ago. Never rejects. */
  prepare(): Promise<void> | undefined;
  /** None while the file cannot be read. */
  keys(): LinkKeys;
}

/** Opens a `link_key_file`. */
export function openLinkKeys(
  file: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): LinkKeyFile {
  let isReadable = false;
  const loaded = new LoadedFile<LinkKeys>({
    ...{ file, bytesMax: linkKeysBytesMax, now },
    read: (bytes) => {
      const parsed = parseSecretsKeys(bytes.toString(), makeLinkKey);
      if ('refused' in parsed) throw new Error(`it ${parsed.refused}`);
      isReadable = true;
      return parsed.keys.map((key) => key.bytes);
    },
    failed: (error) => {
      isReadable = false;
      const reason = reasonOf(error);
      log.error({ file, reason }, 'the keys of signed links cannot be read: no link is valid');
    },
  });
  return {
    prepare: () => loaded.prepare(),
    keys: () => (isReadable ? (loaded.value ?? []) : []),
  };
}
