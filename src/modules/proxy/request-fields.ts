import { type TemplateRequest, authorityOf } from '../../core/http/field-template.ts';
import { cgiName } from '../../core/http/reading/fields.ts';
import { addressFields } from '../../core/http/reading/forwarded.ts';
import type { FieldList } from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { type ViaNames, viaPrefix } from '../../core/outbound/own-names.ts';
import { hasOwnKey } from '../../core/values/key.ts';
import { ipv4Number, parseAddress } from '../../core/values/network/cidr.ts';
import { withoutSourceCookie } from './balancer.ts';
import { proxyName } from '../rules/rule.ts';
import type { FetchPlan } from './fetch-plan.ts';

/**
 * Whether a field must not be a trailer (RFC 9110 §6.5.1), in any spelling that CGI does not
 * distinguish: framing, routing, conditions, credentials, cookies, fields that say who the client
 * is, and fields that decide how the content is read or cached. Servers that merge trailers with
 * the header would believe a client what its header may not say.
 */
export function isForbiddenTrailer(name: string): boolean {
  const plain = name.replaceAll(/[^a-z0-9]/g, '-');
  return forbiddenTrailers.test(plain) || addressFields.has(plain);
}

const forbiddenTrailers = new RegExp(
  `^(?:${[
    'content-(?!digest$|md5$).*|if-.*|(?:set-)?cookie|www-authenticate|authorization|host|expect',
    'range|apikey|forwarded|x-forwarded-.*|x-original-.*|x-rewrite-url|x-real-ip|(?:x-)?remote-.*',
    'age|cache-control|cdn-cache-control|date|expires|pragma|vary|location|retry-after|link|via',
    'service-worker-allowed',
  ].join('|')})$`,
);

/** Whether a client accepts trailer fields (RFC 9110 §10.1.4). */
export function acceptsTrailers({ fields }: Pick<ContentRequest, 'fields'>): boolean {
  return fields.te !== undefined && /(?:^|[\s,])trailers(?:[\s,;]|$)/i.test(fields.te);
}

/** Hop-by-hop fields, whether Connection names them or not (RFC 9110 §7.6.1). */
export const hopByHop: ReadonlySet<string> = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/** The fields of a client that are not forwarded, or only if the rule's `pass` names them. */
const handling: ReadonlyMap<string, 'drop' | 'ifPassed'> = new Map<string, 'drop' | 'ifPassed'>([
  ...[...hopByHop].map((name) => [name, 'drop'] as const),
  // This server sets them itself. CGI would turn `Proxy` into the variable HTTP_PROXY (httpoxy).
  ['content-length', 'drop'],
  ['expect', 'drop'],
  ['forwarded', 'drop'],
  ['host', 'drop'],
  ['proxy', 'drop'],
  ['via', 'drop'],
  ['x-real-ip', 'drop'],
  // Credentials. Those of this server stay here, see clientValue.
  ['apikey', 'ifPassed'],
  ['authorization', 'ifPassed'],
  ['cookie', 'ifPassed'],
  // Some frameworks use another method or path because of them than the rule allows.
  ['x-http-method', 'ifPassed'],
  ['x-http-method-override', 'ifPassed'],
  ['x-method-override', 'ifPassed'],
  ['x-original-url', 'ifPassed'],
  ['x-rewrite-url', 'ifPassed'],
]);
/** Fields that enginedata.headers cannot set: framing, and Via, which detects loops. */
const notOverridden = new Set(['content-length', 'expect', 'via']);
/** Whether a rule cannot set a field of its requests, by its lower-case name. */
export function isNeverSet(name: string): boolean {
  return hopByHop.has(name) || isOfProxy(name) || notOverridden.has(name);
}

/** What happens to a field of a client, by its lower-case name; undefined: it is forwarded. */
export function requestHandling(name: string): 'drop' | 'ifPassed' | undefined {
  const isDropped = name.startsWith('x-forwarded-') || isOfProxy(name);
  return handling.get(name) ?? (isDropped ? 'drop' : undefined);
}

/** The parts of a request that the fields for its source are made of. */
export type ForwardedRequest = TemplateRequest & Pick<ContentRequest, 'version'>;

/**
 * This server's name in Via when it fetches for a rule. It begins with a name of the server: other
 * servers may have proxies of the same name, and visitors know the ids of page rules.
 */
export function viaName({ ofLog, ofNode }: ViaNames, ruleId: string): string {
  // The id of a proxy has a colon, which would begin a port (RFC 9110 §7.6.3).
  if (proxyName(ruleId) !== undefined) return `${ofNode}-${ruleId.replace(':', '-')}`;
  return `${ofLog}-${ruleId}`;
}

/** Whether a request has passed through the same rule before (RFC 9110 §7.6.3). */
export function isLoop(viaField: string | undefined, name: string): boolean {
  return viaField?.split(/[\s,]+/).includes(name) ?? false;
}

/** How many rules of servers of this kind a request has passed through. */
export function countRulesInVia(viaField: string | undefined): number {
  if (viaField === undefined) return 0;
  return viaField.split(/[\s,]+/).filter((name) => name.startsWith(viaPrefix)).length;
}

/**
 * The fields to send to the source (docs/design/fetching.md#sources): the client's without
 * hop-by-hop and private ones, then Forwarded (RFC 7239), X-Forwarded-* and Via, then the rule's
 * own, which override. Via has the version in which the request arrived. `hasBody` is whether
 * content follows. A flat list, names in lower case.
 */
export function requestFields(
  plan: FetchPlan,
  request: ForwardedRequest,
  hasBody: boolean,
  via: ViaNames,
): string[] {
  const { fields, address, origin, version = '1.1' } = request;
  const sent: string[] = [];
  const send = (name: string, value: string): void => {
    if (!isOverridden(name, plan)) sent.push(name, value);
  };
  const named = connectionOptions(fields.connection);
  for (const name in fields) {
    const value = isForwarded(name, plan, named) ? clientValue(name, plan, request) : undefined;
    if (value !== undefined) send(name, value);
  }
  if (plan.host !== 'source') {
    send('host', plan.host === 'client' ? authorityOf(origin) : plan.host);
  }
  addForwardedFields(send, { address, origin });
  const trail = `${version} ${viaName(via, plan.id)}`;
  send('via', fields.via === undefined ? trail : `${fields.via}, ${trail}`);
  for (const [name, template] of plan.headers) {
    const value = isOverridden(name, plan) ? template.value(request) : undefined;
    if (value !== undefined) sent.push(name, value);
  }
  const { 'content-length': length, trailer } = fields;
  if (length !== undefined && (hasBody || length === '0')) sent.push('content-length', length);
  if (hasBody && trailer !== undefined && length === undefined) sent.push('trailer', trailer);
  // Servers of gRPC refuse a request without it.
  if (plan.isHttp2 && acceptsTrailers(request)) sent.push('te', 'trailers');
  return sent;
}

/** The trailer fields of the client that the source gets (RFC 9110 §6.5.1). */
export function requestTrailers(plan: FetchPlan, fields: FieldList): FieldList {
  const isSent = (name: string): boolean =>
    isForwarded(name, plan, undefined) && !isForbiddenTrailer(name);
  return fields.filter((_, at) => isSent(fields[at - (at % 2)]?.toLowerCase() ?? ''));
}

/** The value that requestFields sends in one field, by its lower-case name. */
export function forwardedField(
  plan: FetchPlan,
  request: ForwardedRequest,
  via: ViaNames,
  name: string,
): string | undefined {
  if (isOverridden(name, plan)) return plan.headers.get(name)?.value(request);
  if (name === 'forwarded' || name === 'via' || name.startsWith('x-forwarded-')) {
    const sent = requestFields(plan, request, false, via);
    return sent.find((_, at) => at % 2 === 1 && sent[at - 1] === name);
  }
  const { fields } = request;
  // Connection may name thousands of fields, and the cache asks for many that are not there.
  if (fields[name] === undefined) return undefined;
  const named = connectionOptions(fields.connection);
  return isForwarded(name, plan, named) ? clientValue(name, plan, request) : undefined;
}

/**
 * The value of a field of the client for the source: the cookie that chooses the source is no one
 * else's business, and would make each request one with credentials. A key of this server goes no
 * further; that of an application does. Nor does an address that is not that of the client, unless
 * `pass` names the field: applications believe it, and no Vary names it, so that one lie would
 * decide what the cache gives to all.
 */
function clientValue(
  name: string,
  { balance, pass }: FetchPlan,
  { fields, address }: Pick<ContentRequest, 'fields' | 'address'>,
): string | undefined {
  const value = fields[name];
  if (addressFields.has(name) && !pass.has(name)) {
    return value !== undefined && isAddressOf(address, value) ? value : undefined;
  }
  if (name === 'apikey' || name === 'authorization') {
    return value !== undefined && hasOwnKey(value) ? undefined : value;
  }
  return name === 'cookie' && balance === 'cookie' ? withoutSourceCookie(value) : value;
}

/**
 * Whether a field of the client is forwarded to the source. CGI and WSGI cannot tell `X_User` from
 * `X-User`: a name with characters other than letters, digits and dashes is forwarded only if the
 * rule's `pass` names it, and never if the rule sets a field with the same CGI name.
 */
function isForwarded(
  name: string,
  plan: FetchPlan,
  named: ReadonlySet<string> | undefined,
): boolean {
  const isOdd = oddName.test(name);
  const plain = isOdd ? name.replaceAll(/[^a-z0-9]/g, '-') : name;
  const handled = handling.get(plain);
  if (handled === 'drop' || plain.startsWith('x-forwarded-') || isOfProxy(plain)) return false;
  if (named !== undefined && (named.has(name) || named.has(plain))) return false;
  if ((isOdd || handled === 'ifPassed') && !plan.pass.has(name)) return false;
  return plan.headers.size === 0 || !plan.headerCgiNames.has(cgiName(name));
}

const oddName = /[^a-z0-9-]/;

/** Whether a rule forwards a field of the client, by its lower-case name. */
export function forwardsField(plan: FetchPlan, name: string): boolean {
  return isForwarded(name, plan, undefined);
}

/** Whether the rule sets a field, in place of the client's or this server's value. */
function isOverridden(name: string, { headers }: FetchPlan): boolean {
  if (headers.size === 0 || !headers.has(name)) return false;
  return !isNeverSet(name);
}

function addForwardedFields(
  send: (name: string, value: string) => void,
  { address, origin }: Pick<ContentRequest, 'address' | 'origin'>,
): void {
  const scheme = origin.slice(0, origin.indexOf('://'));
  const host = authorityOf(origin);
  const client = canonicalAddress(address);
  const node = client?.includes(':') === true ? `"[${client}]"` : (client ?? 'unknown');
  send('forwarded', `for=${node};host="${host}";proto=${scheme}`);
  if (client !== undefined) send('x-forwarded-for', client);
  send('x-forwarded-host', host);
  send('x-forwarded-proto', scheme);
}

/** Whether a text is the address of a client, in any of its forms. */
export function isAddressOf(address: string, text: string): boolean {
  const named = canonicalAddress(text);
  return named !== undefined && named === canonicalAddress(address);
}

/** An address without its zone, in its shortest form; undefined for an invalid one. */
function canonicalAddress(address: string): string | undefined {
  // IPv4 addresses have only one form.
  if (ipv4Number(address) !== undefined) return address;
  const [withoutZone = ''] = address.split('%', 1);
  return parseAddress(withoutZone)?.toString();
}

/** Of the Proxy-* fields, only Proxy-Status (RFC 9209) is for the client. */
export function isOfProxy(name: string): boolean {
  return name.startsWith('proxy-') && name !== 'proxy-status';
}

/** The fields that Connection names; undefined if it is absent or only names Keep-Alive. */
export function connectionOptions(field: string | undefined): ReadonlySet<string> | undefined {
  if (field === undefined || field === 'keep-alive') return undefined;
  return new Set(field.split(',').map((option) => option.trim().toLowerCase()));
}
