/** Safe methods (RFC 9110 §9.2.1 and the registry of §16.1). */
const safe: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'PROPFIND',
  'QUERY',
  'REPORT',
  'SEARCH',
  'TRACE',
]);

/** Whether a method is safe (RFC 9110 §9.2.1). */
export function isSafe(method: string): boolean {
  return safe.has(method);
}

/** Whether a method is idempotent, so that a request may be repeated (RFC 9110 §9.2.2). */
export function isIdempotent(method: string): boolean {
  return safe.has(method) || method === 'PUT' || method === 'DELETE';
}

/**
 * The methods of Node's parser. Other methods are answered with 501 (RFC 9110 §9.1), also over
 * HTTP/2.
 */
const implemented: ReadonlySet<string> = new Set(
  (
    'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY ' +
    'MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND ' +
    'REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'
  ).split(' '),
);

/** Whether the server implements a method. */
export function isImplemented(method: string): boolean {
  return implemented.has(method);
}

/** Whether a text is the beginning of an implemented method. */
export function beginsMethod(text: string): boolean {
  return [...implemented].some((method) => method.startsWith(text));
}
