import { V7Generator } from 'uuidv7';

/** Some weeks before the year 10000, so that times derived from it have years of four digits. */
const latestMs = Date.UTC(9999, 11, 1);

/**
 * The system time in milliseconds since 1970, limited to the years 1970 to 9999: dates are compared
 * as texts with years of four digits, and a UUIDv7 cannot have an earlier time (RFC 9562 §5.7).
 */
export function now(): number {
  return Math.min(Math.max(Date.now(), 0), latestMs);
}

/** Random numbers in advance: the generator alone calls the system for eight at a time. */
const random = new Uint32Array(256);
let used = random.length;

const generator = new V7Generator({
  nextUint32() {
    if (used === random.length) {
      crypto.getRandomValues(random);
      used = 0;
    }
    used += 1;
    return random[used - 1] ?? 0;
  },
});

/** A UUIDv7 of this moment (RFC 9562 §5.7). */
export function newId(): string {
  return generator.generateOrResetWithTs(now()).toString();
}

/** Milliseconds since the machine started, independent of its clock; equal for all processes. */
export function uptimeMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1000 + nanoseconds / 1e6;
}
