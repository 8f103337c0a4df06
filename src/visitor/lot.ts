import { hash } from 'node:crypto';
import type { Fields } from '../http/request.ts';
import { millionths } from '../model/condition.ts';
import { userAgentCharactersMax, visitorLots } from '../model/limits.ts';

const cookieName = 'waymark_lot';
const cookiePattern = new RegExp(`(?:^|; ?)${cookieName}=([0-9a-f]{5})(?:;|$)`);

/**
 * Where a visitor stands among all (contract §6, percent): as its cookie says, else by its address
 * and User-Agent, so that it stays the same for those who keep no cookies as well.
 */
export function lotOf(fields: Fields, address: string): number {
  const known = knownLot(fields);
  if (known !== undefined) return known;
  const agent = fields['user-agent']?.slice(0, userAgentCharactersMax) ?? '';
  return Number.parseInt(hash('sha256', `${address}\n${agent}`).slice(0, 12), 16) % visitorLots;
}

/** The lot that a visitor brings along; undefined where it brings none. */
export function knownLot({ cookie }: Fields): number | undefined {
  const written = cookie === undefined ? undefined : cookiePattern.exec(cookie)?.[1];
  return written === undefined ? undefined : Number.parseInt(written, 16);
}

/** What a lot draws at a breadcrumb, in millionths: another number at another one. */
export function drawOf(lot: number, ruleId: string): number {
  return Number.parseInt(hash('sha256', `${ruleId} ${lot}`).slice(0, 12), 16) % millionths;
}

/** The Set-Cookie by which a visitor keeps its lot when its address changes (RFC 6265 §4.1). */
export function lotCookie(lot: number, { secure }: { readonly secure: boolean }): string {
  const value = lot.toString(16).padStart(5, '0');
  const ending = secure ? '; Secure' : '';
  return `${cookieName}=${value}; Path=/; Max-Age=31536000; HttpOnly; SameSite=Lax${ending}`;
}
