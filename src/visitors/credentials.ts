import type { Fields } from '../http/request.ts';
import { userRolesMax } from '../model/limits.ts';

/** A bearer token (RFC 6750 §2.1), or else one in a cookie; undefined for none. */
export function tokenIn({ authorization, cookie }: Fields, cookieName: string): string | undefined {
  const bearer = authorization === undefined ? null : /^bearer +(\S+)$/i.exec(authorization);
  return bearer?.[1] ?? cookieValue(cookie, cookieName);
}

/** The first cookie of a name (RFC 6265 §4.2.1), without the quotes that may be around it. */
function cookieValue(cookies: string | undefined, name: string): string | undefined {
  for (const pair of cookies?.split(';') ?? []) {
    const equals = pair.indexOf('=');
    if (equals === -1 || pair.slice(0, equals).trim() !== name) continue;
    return pair
      .slice(equals + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1');
  }
  return undefined;
}

/** Roles as a proxy lists them, with commas between them. */
export function listedRoles(roles: string | undefined): readonly string[] {
  if (roles === undefined) return [];
  const names = roles.split(',').map((role) => role.trim());
  return names.filter((role) => role !== '').slice(0, userRolesMax);
}
