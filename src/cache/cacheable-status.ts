/** Heuristically cacheable statuses (RFC 9110 §15.1). */
const heuristic: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
]);

/** Final statuses whose caching rules are implemented (RFC 9110 §15, RFC 6585, …). */
const understood: ReadonlySet<number> = new Set([
  ...[200, 201, 202, 203, 204, 205, 206, 207, 208, 226],
  ...[300, 301, 302, 303, 305, 307, 308],
  ...[400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417],
  ...[421, 422, 423, 424, 425, 426, 428, 429, 431, 451],
  ...[500, 501, 502, 503, 504, 505, 506, 507, 508, 511],
]);

/** Whether responses of a status may have a heuristic lifetime (RFC 9111 §4.2.2). */
export function isHeuristicallyCacheable(status: number): boolean {
  return heuristic.has(status);
}

/**
 * Final statuses that concern one request or client. RFC 6585 forbids storing its statuses; 412 and
 * 416 depend on the preconditions and range of the request.
 */
const ofOneRequest: ReadonlySet<number> = new Set([412, 416, 428, 429, 431, 511]);

/** Whether responses of a status may be stored with an explicit lifetime. */
export function isStorable(status: number): boolean {
  return status >= 200 && status !== 304 && !ofOneRequest.has(status);
}

/** Whether the cache understands a status (`must-understand`, RFC 9111 §5.2.2.3). */
export function isUnderstood(status: number): boolean {
  return understood.has(status);
}

/** Whether `stale-if-error` applies to a status (RFC 5861 §4). */
export function isSourceError(status: number): boolean {
  return status === 500 || status === 502 || status === 503 || status === 504;
}
