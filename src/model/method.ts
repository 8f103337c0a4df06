/** Methods that change nothing (RFC 9110 §9.2.1 and the registry of its §16.1). */
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

/** Whether a method is known to change nothing. */
export function isSafe(method: string): boolean {
  return safe.has(method);
}

/** Whether a request may be sent again that may have been acted upon (RFC 9110 §9.2.2). */
export function isIdempotent(method: string): boolean {
  return safe.has(method) || method === 'PUT' || method === 'DELETE';
}

/**
 * The methods that a request may have, those that Node's parser reads: every other one is answered
 * with 501 (RFC 9110 §9.1), over HTTP/2 too.
 */
const implemented: ReadonlySet<string> = new Set(
  (
    'ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK M-SEARCH MERGE MKACTIVITY ' +
    'MKCALENDAR MKCOL MOVE NOTIFY OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT QUERY REBIND ' +
    'REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK UNSUBSCRIBE'
  ).split(' '),
);

/** Whether requests of that method are answered at all. */
export function isImplemented(method: string): boolean {
  return implemented.has(method);
}

/** Whether a text is what a method begins with whose requests are answered. */
export function beginsMethod(text: string): boolean {
  return [...implemented].some((method) => method.startsWith(text));
}
