import { isImplemented } from '../../core/http/request.ts';
import type { AccessEntry } from '../../core/report/access-entry.ts';
import type { SpanAttributes, TraceSpan } from '../../core/report/trace.ts';
import { type Peer, schemeOf } from '../../core/values/network/peer.ts';
import { maskedKeys } from '../logs/access-log.ts';
import { redactedUrl } from '../logs/access-rules.ts';

/** Answered requests, as spans need them; `target` has no token of a preview. */
type SpanEntry = Pick<
  AccessEntry,
  | ('method' | 'target' | 'host' | 'httpVersion' | 'userAgent' | 'status' | 'bytes' | 'source')
  | ('cache' | 'failureId' | 'reason' | 'cut')
>;

/**
 * Ends the span of a request, by OpenTelemetry's conventions for HTTP servers. It has no address of
 * a client, and no value of the query parameters that the conventions or `[log] redact` name.
 */
export function endRequestSpan(
  span: TraceSpan,
  entry: SpanEntry,
  { peer, redact }: { readonly peer: Peer; readonly redact: readonly string[] },
): void {
  if (!span.isRecorded) {
    span.end({});
    return;
  }
  const { method, status, source } = entry;
  // A client must not make up names.
  const known = isImplemented(method) ? method : undefined;
  span.rename(`${known ?? 'HTTP'} ${source}`);
  const scheme = schemeOf(peer);
  span.end({
    attributes: {
      'http.request.method': known ?? '_OTHER',
      'http.request.method_original': known === undefined ? method : undefined,
      'url.scheme': scheme,
      ...urlAttributes(entry.target, redact),
      ...hostAttributes(entry.host, scheme),
      'network.protocol.version': entry.httpVersion.replace(/^2\.0$/, '2'),
      'user_agent.original': entry.userAgent === '' ? undefined : entry.userAgent,
      'http.response.status_code': status,
      'http.response.body.size': entry.bytes,
      'waymark.source': source,
      'waymark.cache': entry.cache,
      'waymark.failure_id': entry.failureId,
      'waymark.reason': entry.reason,
      'waymark.cut': entry.cut ? true : undefined,
    },
    error: status >= 500 ? String(status) : undefined,
  });
}

/** Query parameters that OpenTelemetry's conventions redact, and those with keys and codes here. */
const secretParameters: readonly string[] = [
  ...['awsaccesskeyid', 'signature', 'sig', 'x-goog-signature'],
  ...['apikey', 'code', 'token'],
];

function urlAttributes(target: string, redact: readonly string[]): SpanAttributes {
  const names = [...secretParameters, ...redact.map((name) => name.toLowerCase())];
  const [, path = '', query] =
    /^([^?]*)(?:\?(.*))?$/s.exec(redactedUrl(maskedKeys(target), new Set(names))) ?? [];
  return { 'url.path': path, 'url.query': query };
}

function hostAttributes(host: string, scheme: 'http' | 'https'): SpanAttributes {
  const [, name, port] = /^(\[[\da-fA-F:.]+\]|[^:]+)(?::(\d{1,5}))?$/.exec(host) ?? [];
  if (name === undefined) return {};
  const standard = scheme === 'https' ? 443 : 80;
  return {
    'server.address': name.replace(/^\[|\]$/g, ''),
    'server.port': port === undefined ? standard : Number(port),
  };
}
