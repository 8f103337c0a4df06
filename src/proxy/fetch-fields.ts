import { ipv4Number, parseAddress } from '../model/cidr.ts';
import type { ContentRequest } from '../http/request.ts';
import { fieldLines, type FieldList } from '../http/reply.ts';
import type { FetchPlan } from './fetch-source.ts';
import {
  visibleCookie,
  visibleLinks,
  visibleReference,
  visibleRefresh,
  type Fetched,
} from './fetch-visible.ts';

/** Meant for the next hop only, whether Connection names them or not (RFC 9110 §7.6.1). */
const hopByHop = new Set([
  'connection',
  'http2-settings',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
/**
 * Said anew by this server, or not for others to see. `proxy` is no field, but becomes a variable
 * in CGI (httpoxy).
 */
const notPassed = new Set([
  'apikey',
  'content-length',
  'expect',
  'forwarded',
  'host',
  'proxy',
  'via',
  'x-real-ip',
]);
const passedIfNamed = new Set(['authorization', 'cookie']);
/** What enginedata.headers cannot say: framing and the trail that ends loops. */
const notOverridden = new Set(['content-length', 'expect', 'via']);
/**
 * Of an answer: said by whoever sends it, or (Alt-Svc, RFC 7838) said of the source's host and
 * untrue of this one. Its Date goes on as it is (RFC 9110 §6.6.1).
 */
const notAnswered = new Set(['alt-svc', 'server-timing']);

/** What of a request decides which fields its source is sent. */
export type Sending = Pick<ContentRequest, 'fields' | 'address' | 'origin'>;

/**
 * What means nothing or harm behind the content (RFC 9110 §6.5.1): framing, routing, conditions,
 * credentials, cookies, and how the content is to be read or kept.
 */
const notBehind = new RegExp(
  `^(?:${[
    'content-(?!digest$|md5$).*|if-.*|set-cookie|www-authenticate|authorization|host|expect|range',
    'age|cache-control|cdn-cache-control|date|expires|pragma|vary|location|retry-after|link|via',
    'alt-svc|clear-site-data|strict-transport-security',
  ].join('|')})$`,
);

/** How this server calls itself in Via when it fetches for a rule. */
export function viaName(via: string, ruleId: string): string {
  return `${via}-${ruleId}`;
}

/** Whether a request has come through the same rule before (RFC 9110 §7.6.3). */
export function isLoop(viaField: string | undefined, name: string): boolean {
  return viaField?.split(/[\s,]+/).includes(name) ?? false;
}

/** How many rules of servers of this name a request has come through. */
export function rulesPassed(viaField: string | undefined, via: string): number {
  if (viaField === undefined) return 0;
  return viaField.split(/[\s,]+/).filter((name) => name.startsWith(`${via}-`)).length;
}

/**
 * The fields to send to the source (contract §8): the client's without those of this hop and the
 * private ones, the trail (RFC 7239, Via), then the rule's own, which override. `hasBody` says
 * whether content goes with them. Flat list, names in lower case.
 */
export function requestFields(
  plan: FetchPlan,
  { fields, address, origin }: Sending,
  hasBody: boolean,
  via: string,
): string[] {
  const sent: string[] = [];
  const send = (name: string, value: string): void => {
    if (!isOverridden(name, plan)) sent.push(name, value);
  };
  const named = connectionOptions(fields.connection);
  for (const name in fields) {
    const value = fields[name];
    if (value !== undefined && isPassedOn(name, plan, named)) send(name, value);
  }
  sendTrail(send, { address, origin });
  const trail = `1.1 ${viaName(via, plan.id)}`;
  send('via', fields.via === undefined ? trail : `${fields.via}, ${trail}`);
  for (const [name, value] of plan.headers) {
    if (isOverridden(name, plan)) sent.push(name, value);
  }
  const length = fields['content-length'];
  if (hasBody && length !== undefined) sent.push('content-length', length);
  return sent;
}

/** What requestFields sends in one field, by its lower-case name. */
export function sentField(
  plan: FetchPlan,
  request: Sending,
  via: string,
  name: string,
): string | undefined {
  if (isOverridden(name, plan)) return plan.headers.get(name);
  if (name === 'forwarded' || name === 'via' || name.startsWith('x-forwarded-')) {
    const sent = requestFields(plan, request, false, via);
    return sent.find((_, at) => at % 2 === 1 && sent[at - 1] === name);
  }
  const { fields } = request;
  return isPassedOn(name, plan, connectionOptions(fields.connection)) ? fields[name] : undefined;
}

/** Whether a field of the client goes on to the source. */
function isPassedOn(
  name: string,
  plan: FetchPlan,
  named: ReadonlySet<string> | undefined,
): boolean {
  if (isHopByHop(name, named) || notPassed.has(name)) return false;
  if (name.startsWith('x-forwarded-')) return false;
  return !passedIfNamed.has(name) || plan.pass.has(name);
}

/** Whether a field is sent as the rule says, whatever else it would be. */
function isOverridden(name: string, { headers }: FetchPlan): boolean {
  if (headers.size === 0 || !headers.has(name)) return false;
  return !isHopByHop(name, undefined) && !notOverridden.has(name);
}

/** The fields of the source's answer as the client has to see them. */
export function answerFields(fields: FieldList, fetched: Fetched, via: string): string[] {
  const sent: string[] = [];
  const named = connectionOptions(listed(fields, 'connection'));
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    const lower = name.toLowerCase();
    if (isHopByHop(lower, named) || notAnswered.has(lower)) continue;
    sent.push(name, visibleValue(lower, value, fetched));
  }
  sent.push('Via', `1.1 ${via}`);
  return sent;
}

/** The fields behind the content of the source's answer that the client gets. */
export function sentBehind(fields: FieldList): readonly string[] {
  return fields.filter((_, at) => {
    const name = fields[at - (at % 2)]?.toLowerCase() ?? '';
    return !isHopByHop(name, undefined) && !notAnswered.has(name) && !notBehind.test(name);
  });
}

function visibleValue(name: string, value: string, fetched: Fetched): string {
  switch (name) {
    case 'location':
    case 'content-location':
      return visibleReference(value, fetched);
    case 'link':
      return visibleLinks(value, fetched);
    case 'refresh':
      return visibleRefresh(value, fetched);
    case 'set-cookie':
      return visibleCookie(value, fetched);
    default:
      return value;
  }
}

function sendTrail(
  send: (name: string, value: string) => void,
  { address, origin }: Pick<ContentRequest, 'address' | 'origin'>,
): void {
  const schemeEnd = origin.indexOf('://');
  const [scheme, host] = [origin.slice(0, schemeEnd), origin.slice(schemeEnd + '://'.length)];
  const client = canonicalAddress(address);
  const node = client?.includes(':') === true ? `"[${client}]"` : (client ?? 'unknown');
  send('forwarded', `for=${node};host="${host}";proto=${scheme}`);
  if (client !== undefined) send('x-forwarded-for', client);
  send('x-forwarded-host', host);
  send('x-forwarded-proto', scheme);
}

/** An address without its zone, in its shortest form; undefined for what is none. */
function canonicalAddress(address: string): string | undefined {
  // There is one way to write it.
  if (ipv4Number(address) !== undefined) return address;
  const [withoutZone = ''] = address.split('%', 1);
  return parseAddress(withoutZone)?.toString();
}

/** Proxy-Status (RFC 9209) is the one field of that name that is meant for the client. */
function isHopByHop(name: string, named: ReadonlySet<string> | undefined): boolean {
  if (hopByHop.has(name) || named?.has(name)) return true;
  return name.startsWith('proxy-') && name !== 'proxy-status';
}

/** The fields that Connection names; undefined where it names none but Keep-Alive, or is absent. */
function connectionOptions(field: string | undefined): ReadonlySet<string> | undefined {
  if (field === undefined || field === 'keep-alive') return undefined;
  return new Set(field.split(',').map((option) => option.trim().toLowerCase()));
}

function listed(fields: FieldList, name: string): string | undefined {
  const values = fieldLines(fields, name);
  return values.length === 0 ? undefined : values.join(',');
}
