import type { Fields } from '../http/request.ts';
import { visitorLots } from '../model/limits.ts';
import { userAgentCharactersMax } from './limits.ts';
import { millionths } from '../model/visitor.ts';

const cookieName = 'waymark_lot';
const cookiePattern = new RegExp(`(?:^|; ?)${cookieName}=([0-9a-f]{5})(?:;|$)`);

/**
 * Where a visitor stands among all (docs/design/rendering.md#breadcrumbs, percent): as its cookie
 * says, else by its address and User-Agent, so that it stays the same for those who keep no cookies
 * as well.
 */
export function lotOf(fields: Fields, address: string): number {
  const known = knownLot(fields);
  if (known !== undefined) return known;
  const agent = fields['user-agent']?.slice(0, userAgentCharactersMax) ?? '';
  return scatter(`${address}\n${agent}`, 0) % visitorLots;
}

/** The lot that a visitor brings along; undefined where it brings none. */
export function knownLot({ cookie }: Fields): number | undefined {
  const written = cookie === undefined ? undefined : cookiePattern.exec(cookie)?.[1];
  return written === undefined ? undefined : Number.parseInt(written, 16);
}

/** What a lot draws at a breadcrumb, in millionths: another number at another one. */
export function drawOf(lot: number, ruleId: string): number {
  return scatter(ruleId, lot) % millionths;
}

/**
 * A number of 32 bits that looks like chance, always the same for a text and a seed: FNV-1a over
 * the text, then the finaliser of MurmurHash3. Nobody has a secret to keep here.
 */
function scatter(text: string, seed: number): number {
  let bits = 0x811c9dc5 ^ seed;
  for (let at = 0; at < text.length; at += 1) {
    bits = Math.imul(bits ^ text.charCodeAt(at), 0x01000193);
  }
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return (bits ^ (bits >>> 16)) >>> 0;
}

/** The Set-Cookie by which a visitor keeps its lot when its address changes (RFC 6265 §4.1). */
export function lotCookie(lot: number, { secure }: { readonly secure: boolean }): string {
  const value = lot.toString(16).padStart(5, '0');
  const ending = secure ? '; Secure' : '';
  return `${cookieName}=${value}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax${ending}`;
}
