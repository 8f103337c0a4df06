import { V7Generator } from 'uuidv7';

/** Some weeks before the first year of five digits, so that times derived from it have four. */
const latestMs = Date.UTC(9999, 11, 1);

/**
 * The time of the system in milliseconds since 1970, from 1970 on and to the end of 9999: as long
 * as a clock is set to anything else, its nearest time. Dates are compared as texts, with years of
 * four digits, and a UUIDv7 has no earlier time (RFC 9562 §5.7).
 */
export function now(): number {
  return Math.min(Math.max(Date.now(), 0), latestMs);
}

const generator = new V7Generator();

/** A UUIDv7 of this moment (RFC 9562 §5.7). */
export function newId(): string {
  return generator.generateOrResetWithTs(now()).toString();
}

/**
 * Milliseconds since the machine started, whatever its clock is set to; the same for all processes.
 */
export function uptimeMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
