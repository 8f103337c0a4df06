import { KIB } from '../values/units.ts';

/** Bytes of a message to syslog: receivers need not take more than 2 KiB (RFC 5426 §3.2). */
export const syslogMessageBytesMax = 8 * KIB;

/** The shortest time between two log lines about the same limit. */
export const limitLogMs = 60_000;

/** The distances of points of the time series, and how many of each it keeps. */
export const seriesTiers = [
  { stepMs: 60_000, pointsMax: 180 },
  { stepMs: 900_000, pointsMax: 288 },
  { stepMs: 3_600_000, pointsMax: 744 },
] as const;
