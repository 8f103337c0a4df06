import type { Failure, FailureCode } from '../values/failure.ts';

/** The HTTP status of each failure code: the only such table (docs/design/failures.md#failures). */
export const statusOf: Readonly<Record<FailureCode, number>> = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  too_large: 413,
  unprocessable: 422,
  rate_limited: 429,
  internal: 500,
  bad_gateway: 502,
  gateway_timeout: 504,
  unavailable: 503,
  storage_full: 507,
};

/** Returns the HTTP status of a failure. */
export function statusFor({ code, status }: Failure): number {
  return status ?? statusOf[code];
}
