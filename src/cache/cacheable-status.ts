/** Statuses that a cache may keep without being told how long (RFC 9110 §15.1). */
const heuristic: ReadonlySet<number> = new Set([
  200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501,
]);

/** Final statuses with a meaning for caches that this one knows (RFC 9110 §15, RFC 6585, …). */
const understood: ReadonlySet<number> = new Set([
  ...[200, 201, 202, 203, 204, 205, 206, 207, 208, 226],
  ...[300, 301, 302, 303, 305, 307, 308],
  ...[400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416, 417],
  ...[421, 422, 423, 424, 425, 426, 428, 429, 431, 451],
  ...[500, 501, 502, 503, 504, 505, 506, 507, 508, 511],
]);

/** Whether answers of a status may be kept for a time that is guessed (RFC 9111 §4.2.2). */
export function isHeuristicallyCacheable(status: number): boolean {
  return heuristic.has(status);
}

/**
 * Final statuses that say something of one request, or its sender, and are never an answer to
 * others: RFC 6585 forbids to keep its own, and what does not fit a condition or a range fits who
 * has sent none.
 */
const ofOneRequest: ReadonlySet<number> = new Set([412, 416, 428, 429, 431, 511]);

/** Whether answers of a status may be kept where the source says how long. */
export function isStorable(status: number): boolean {
  return status >= 200 && status !== 304 && !ofOneRequest.has(status);
}

/** Whether it is known what a status means for a cache (RFC 9111 §5.2.2.3). */
export function isUnderstood(status: number): boolean {
  return understood.has(status);
}

/** Whether a status is one for which a stale answer may stand in (RFC 5861 §4). */
export function isSourceError(status: number): boolean {
  return status === 500 || status === 502 || status === 503 || status === 504;
}
