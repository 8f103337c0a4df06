import type { Fields } from '../../core/http/request.ts';
import { millionths } from '../../core/http/visitor.ts';
import { userAgentCharactersMax } from './limits.ts';

/**
 * The number of different seeds for percentages. It is small, so that a seed does not identify a
 * visitor.
 */
export const visitorSeeds = 2 ** 20;

const cookieName = 'waymark_lot';
const cookiePattern = new RegExp(`(?:^|; ?)${cookieName}=([0-9a-f]{5})(?:;|$)`);

/**
 * The seed of a visitor's buckets (docs/design/rendering.md#conditions): from its cookie, else a
 * hash of its address and User-Agent, so that it also stays the same for visitors without cookies.
 */
export function seedOf(fields: Fields, address: string): number {
  const known = seedInCookie(fields);
  if (known !== undefined) return known;
  const agent = fields['user-agent']?.slice(0, userAgentCharactersMax) ?? '';
  return hash(`${address}\n${agent}`, 0) % visitorSeeds;
}

/** The seed in a visitor's cookie; undefined if it has none. */
export function seedInCookie({ cookie }: Fields): number | undefined {
  const written = cookie === undefined ? undefined : cookiePattern.exec(cookie)?.[1];
  return written === undefined ? undefined : Number.parseInt(written, 16);
}

/** The bucket of a seed at a rule, in millionths; the buckets at two rules are independent. */
export function bucketOf(seed: number, ruleId: string): number {
  return hash(ruleId, seed) % millionths;
}

/**
 * A 32-bit hash of a text and a seed: FNV-1a, then the finaliser of MurmurHash3. It need not be
 * cryptographic: visitors may know their bucket.
 */
function hash(text: string, seed: number): number {
  let bits = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at += 1) {
    bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  }
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** The Set-Cookie (RFC 6265 §4.1) by which a visitor keeps its seed when its address changes. */
export function seedCookie(seed: number, { secure }: { readonly secure: boolean }): string {
  const value = seed.toString(16).padStart(5, '0');
  const ending = secure ? '; Secure' : '';
  return `${cookieName}=${value}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax${ending}`;
}
