import { allOf, lastOf, type Directive } from '../directive.ts';
import { copiesOfRequest, effective, effectiveAll, type NginxSite } from './site.ts';
import { nearest } from './words.ts';
import { targetOf } from './proxies.ts';

/** Another server that decides, in the words of `[access.<name>]`. */
interface Forward {
  readonly forward: string;
  readonly copy: readonly string[];
}

/**
 * The `forward` and `copy` of the `auth_request` that counts in a block; undefined for none, and
 * for one that is left.
 */
export function forwardOf(site: NginxSite, block: readonly Directive[]): Forward | undefined {
  const { conversion } = site;
  const asked = effective(site, block, 'auth_request');
  const [uri = 'off'] = asked?.words ?? [];
  if (asked === undefined || uri === 'off') return undefined;
  const servers = [block, ...site.outer];
  const locations = servers.flatMap((one) => allOf(one, 'location'));
  const location = locations.find(({ words }) => words.at(-1) === uri);
  const pass = lastOf(location?.block ?? [], 'proxy_pass');
  const target = pass && targetOf(site, pass);
  const [source, ...others] = target?.sources ?? [];
  if (location === undefined || source === undefined || others.length > 0) {
    conversion.leave(asked, nearest.auth_request ?? '');
    return undefined;
  }
  leaveSentFields(site, location.block ?? []);
  conversion.note(
    asked,
    `a visitor gets the answer of ${source} unless it is 2xx: nginx answers 401 and 403 itself`,
  );
  const copy = copiesOf(site, block);
  return { forward: source + (target?.uri === '' ? uri : (target?.uri ?? '')), copy };
}

/** Whether a location answers `auth_request` alone, and no client. */
export function isAuthLocation(server: readonly Directive[], { words, block }: Directive): boolean {
  const isInternal = lastOf(block ?? [], 'internal') !== undefined;
  return isInternal && asksFor(server, words.at(-1) ?? '');
}

function asksFor(block: readonly Directive[], uri: string): boolean {
  return block.some(({ name, words, block: inner = [] }) => {
    return (name === 'auth_request' && words[0] === uri) || asksFor(inner, uri);
  });
}

/** Fields of the request that are like those that Waymark sends to a `forward`. */
const sentAnyway: ReadonlySet<string> = new Set([
  ...['host', 'connection', 'content-length', 'x-real-ip', 'x-forwarded-for', 'x-forwarded-proto'],
  ...['x-forwarded-host', 'x-forwarded-uri', 'x-forwarded-method', 'accept', 'cookie'],
]);

/** Leaves the fields for the other server that Waymark does not send. */
function leaveSentFields({ conversion }: NginxSite, block: readonly Directive[]): void {
  for (const one of allOf(block, 'proxy_set_header')) {
    if (sentAnyway.has(one.words[0]?.toLowerCase() ?? '')) continue;
    conversion.leave(
      one,
      'X-Forwarded-Method, -Proto, -Host and -Uri, which `forward` sends: the address of that ' +
        'server for `forward_auth` of Caddy or Traefik reads them',
    );
  }
}

/**
 * The fields of the answer of the other server that an application gets under their own names.
 * Leaves the variables that become something else.
 */
function copiesOf(site: NginxSite, block: readonly Directive[]): readonly string[] {
  const copied = [...copiesOfRequest(site, block)];
  return effectiveAll(site, block, 'auth_request_set').flatMap((one) => {
    const name = copied.find(({ words }) => words[1] === one.words[0])?.words[0];
    if (name !== undefined) return [name];
    site.conversion.leave(one, '`copy`, which keeps the names of fields');
    return [];
  });
}
