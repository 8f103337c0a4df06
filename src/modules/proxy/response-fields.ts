import { fieldLines, type FieldList } from '../../core/http/reply.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import type { FetchPlan } from './fetch-plan.ts';
import {
  connectionOptions,
  hopByHop,
  isForbiddenTrailer,
  isOfProxy,
  requestHandling,
} from './request-fields.ts';
import {
  rewriteCookie,
  rewriteLinks,
  rewriteUrl,
  rewriteRefresh,
  rewriteWorkerScope,
  defaultWorkerScope,
  type FetchedUrl,
} from './rewrite-headers.ts';

/** The rule for a field of a source: drop it, send it if a condition holds, or rewrite it. */
type Handling =
  | 'drop'
  /** Sent if the rule's `pass` names it. */
  | 'ifPassed'
  /** Sent if the rule covers the whole origin, or its `pass` names it. */
  | 'ifWholeOrigin'
  | ((value: string, fetched: FetchedUrl) => string | undefined);

/** All fields that are not sent as they are, by lower-case name. */
const handling: ReadonlyMap<string, Handling> = new Map<string, Handling>([
  ...[...hopByHop].map((name) => [name, 'drop'] as const),
  // Wrong from this server: Server-Timing measures the source, Alt-Svc (RFC 7838) names
  // alternatives to the source's host. The source's Date is kept (RFC 9110 §6.6.1).
  ['alt-svc', 'drop'],
  ['server-timing', 'drop'],
  // They reveal the source's software, or make a proxy in front of this server send one of its own
  // files (X-Sendfile).
  ['server', 'ifPassed'],
  ['x-accel-redirect', 'ifPassed'],
  ['x-aspnet-version', 'ifPassed'],
  ['x-aspnetmvc-version', 'ifPassed'],
  ['x-lighttpd-send-file', 'ifPassed'],
  ['x-powered-by', 'ifPassed'],
  ['x-sendfile', 'ifPassed'],
  // Browsers apply these to the whole origin, whichever page sends them
  // (docs/design/fetching.md#fields-of-a-source).
  ['accept-ch', 'ifWholeOrigin'],
  ['accept-ch-lifetime', 'ifWholeOrigin'],
  ['clear-site-data', 'ifWholeOrigin'],
  ['critical-ch', 'ifWholeOrigin'],
  ['expect-ct', 'ifWholeOrigin'],
  ['nel', 'ifWholeOrigin'],
  ['origin-agent-cluster', 'ifWholeOrigin'],
  ['origin-policy', 'ifWholeOrigin'],
  ['public-key-pins', 'ifWholeOrigin'],
  ['public-key-pins-report-only', 'ifWholeOrigin'],
  ['report-to', 'ifWholeOrigin'],
  ['reporting-endpoints', 'ifWholeOrigin'],
  ['sec-session-registration', 'ifWholeOrigin'],
  ['secure-session-registration', 'ifWholeOrigin'],
  ['set-login', 'ifWholeOrigin'],
  ['strict-transport-security', 'ifWholeOrigin'],
  ['use-as-dictionary', 'ifWholeOrigin'],
  ['content-location', rewriteUrl],
  ['link', rewriteLinks],
  ['location', rewriteUrl],
  ['refresh', rewriteRefresh],
  ['service-worker-allowed', rewriteWorkerScope],
  ['set-cookie', rewriteCookie],
]);

/** Whether `pass` cannot make a field travel, in requests or answers, by its lower-case name. */
export function isNeverPassed(name: string): boolean {
  const [request, response] = [requestHandling(name), handling.get(name)];
  const isDecided =
    request === 'ifPassed' || response === 'ifPassed' || response === 'ifWholeOrigin';
  return !isDecided && (request === 'drop' || response === 'drop');
}

/** Whether browsers apply a field, by its lower-case name, to more than its own page. */
export function affectsWholeOrigin(name: string): boolean {
  return handling.get(name) === 'ifWholeOrigin' || name === 'service-worker-allowed';
}

/**
 * The fields of the source's answer, filtered and rewritten for the client. Via has the version in
 * which the answer arrived (RFC 9110 §7.6.3).
 */
export function responseFields(
  { fields, version }: Pick<SourceResponse, 'fields' | 'version'>,
  fetched: FetchedUrl,
): string[] {
  const sent: string[] = [];
  const { plan } = fetched;
  const connection = fieldLines(fields, 'connection');
  const named = connection.length === 0 ? undefined : connectionOptions(connection.join(','));
  let contentType: string | undefined;
  let hasWorkerScope = false;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name = '', value = ''] = [fields[at], fields[at + 1]];
    const lower = name.toLowerCase();
    const handled = handling.get(lower);
    if (handled === undefined) {
      if (named?.has(lower) === true || isOfProxy(lower)) continue;
      if (lower === 'content-type') contentType ??= value;
      sent.push(name, value);
    } else if (typeof handled === 'function') {
      const visible = named?.has(lower) === true ? undefined : handled(value, fetched);
      if (visible === undefined) continue;
      hasWorkerScope ||= lower === 'service-worker-allowed';
      sent.push(name, visible);
    } else if (isSent(handled, lower, plan) && named?.has(lower) !== true) sent.push(name, value);
  }
  const isScript = contentType?.toLowerCase().includes('script') === true;
  const scope = isScript && !hasWorkerScope ? defaultWorkerScope(fetched) : undefined;
  if (scope !== undefined) sent.push('Service-Worker-Allowed', scope);
  sent.push('Via', `${version} waymark`);
  return sent;
}

function isSent(handled: Handling, name: string, plan: FetchPlan): boolean {
  if (handled === 'drop') return false;
  return (handled === 'ifWholeOrigin' && plan.isWholeOrigin) || plan.pass.has(name);
}

/** The trailer fields of the source's answer that the client gets. */
export function trailerFields(fields: FieldList): readonly string[] {
  const isLeftOut = (name: string): boolean =>
    typeof handling.get(name) === 'string' || isOfProxy(name) || isForbiddenTrailer(name);
  return fields.filter((_, at) => !isLeftOut(fields[at - (at % 2)]?.toLowerCase() ?? ''));
}
