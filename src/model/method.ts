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
