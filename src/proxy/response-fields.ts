import { fieldLines, replyField, type FieldList } from '../http/reply.ts';
import { connectionOptions, isHopByHop } from './request-fields.ts';
import {
  rewriteCookie,
  rewriteLinks,
  rewriteUrl,
  rewriteRefresh,
  rewriteWorkerScope,
  defaultWorkerScope,
  type FetchedUrl,
} from './rewrite-headers.ts';

/**
 * Fields that would be wrong from this server: Server-Timing measures the source, Alt-Svc (RFC
 * 7838) names alternatives to the source's host. The source's Date is kept (RFC 9110 §6.6.1).
 */
const droppedFields = new Set(['alt-svc', 'server-timing']);

/**
 * Fields that are sent only if the rule's `pass` names them: they reveal the source's software, or
 * make a proxy in front of this server send one of its own files (X-Sendfile).
 */
const sentIfPassed = new Set([
  'server',
  'x-accel-redirect',
  'x-aspnet-version',
  'x-aspnetmvc-version',
  'x-lighttpd-send-file',
  'x-powered-by',
  'x-sendfile',
]);

/**
 * Fields that browsers apply to the whole origin, whichever page sends them. They are sent only if
 * the rule covers the whole origin, or if its `pass` names them
 * (docs/design/fetching.md#fields-of-a-source).
 */
const originWideFields = new Set([
  'accept-ch',
  'accept-ch-lifetime',
  'clear-site-data',
  'critical-ch',
  'expect-ct',
  'nel',
  'origin-agent-cluster',
  'origin-policy',
  'public-key-pins',
  'public-key-pins-report-only',
  'report-to',
  'reporting-endpoints',
  'sec-session-registration',
  'secure-session-registration',
  'set-login',
  'strict-transport-security',
  'use-as-dictionary',
]);

/** Whether browsers apply a field, by its lower-case name, to more than its own page. */
export function affectsWholeOrigin(name: string): boolean {
  return originWideFields.has(name) || name === 'service-worker-allowed';
}

/**
 * Fields that must not be trailers (RFC 9110 §6.5.1): framing, routing, conditions, credentials,
 * cookies, and fields that decide how the content is read or cached.
 */
const forbiddenTrailers = new RegExp(
  `^(?:${[
    'content-(?!digest$|md5$).*|if-.*|set-cookie|www-authenticate|authorization|host|expect|range',
    'age|cache-control|cdn-cache-control|date|expires|pragma|vary|location|retry-after|link|via',
    'service-worker-allowed',
  ].join('|')})$`,
);

/** The fields of the source's answer, filtered and rewritten for the client. */
export function responseFields(fields: FieldList, fetched: FetchedUrl, via: string): string[] {
  const sent: string[] = [];
  const { plan } = fetched;
  const connection = fieldLines(fields, 'connection');
  const named = connection.length === 0 ? undefined : connectionOptions(connection.join(','));
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    const lower = name.toLowerCase();
    if (isHopByHop(lower, named) || droppedFields.has(lower)) continue;
    if (sentIfPassed.has(lower) && !plan.pass.has(lower)) continue;
    if (originWideFields.has(lower) && !plan.isWholeOrigin && !plan.pass.has(lower)) continue;
    const visible = rewriteValue(lower, value, fetched);
    if (visible !== undefined) sent.push(name, visible);
  }
  const scope = defaultWorkerScope(replyField({ fields: sent }, 'content-type'), fetched);
  if (scope !== undefined && replyField({ fields: sent }, 'service-worker-allowed') === undefined) {
    sent.push('Service-Worker-Allowed', scope);
  }
  sent.push('Via', `1.1 ${via}`);
  return sent;
}

/** The trailer fields of the source's answer that the client gets. */
export function trailerFields(fields: FieldList): readonly string[] {
  const isLeftOut = (name: string): boolean =>
    isHopByHop(name, undefined) ||
    forbiddenTrailers.test(name) ||
    [droppedFields, sentIfPassed, originWideFields].some((names) => names.has(name));
  return fields.filter((_, at) => !isLeftOut(fields[at - (at % 2)]?.toLowerCase() ?? ''));
}

/** The value of a field for the client; undefined to drop the field. */
function rewriteValue(name: string, value: string, fetched: FetchedUrl): string | undefined {
  switch (name) {
    case 'location':
    case 'content-location':
      return rewriteUrl(value, fetched);
    case 'link':
      return rewriteLinks(value, fetched);
    case 'refresh':
      return rewriteRefresh(value, fetched);
    case 'service-worker-allowed':
      return rewriteWorkerScope(value, fetched);
    case 'set-cookie':
      return rewriteCookie(value, fetched);
    default:
      return value;
  }
}
