const weekdays = 'Mon|Tue|Wed|Thu|Fri|Sat|Sun';
const longWeekdays = 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday';
const months = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
const time = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)';

/** IMF-fixdate, the preferred form (RFC 9110 §5.6.7). */
const fixdate = new RegExp(`^(?:${weekdays}), \\d\\d (?:${months}) \\d{4} ${time} GMT$`);

/** The forms of RFC 850 and of asctime: a recipient must accept both. */
const obsoleteForms = [
  new RegExp(
    `^(?:${longWeekdays}), (?<day>\\d\\d)-(?<month>${months})-(?<year>\\d\\d) ${time} GMT$`,
  ),
  new RegExp(`^(?:${weekdays}) (?<month>${months}) (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})$`),
];

const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59);

/**
 * Returns the IMF-fixdate (RFC 9110 §5.6.7) of milliseconds since 1970, rounded down to a second
 * and clamped to the years 1970 to 9999.
 */
export function formatHttpDate(ms: number): string {
  return new Date(Math.min(Math.max(ms, 0), lastMs)).toUTCString();
}

/** The last IMF-fixdate that was parsed: all answers of one second have the same Date. */
let lastParsed: { readonly text: string; readonly ms: number | undefined } = {
  text: '',
  ms: undefined,
};

/**
 * Parses an HTTP-date in any of the three forms of RFC 9110 §5.6.7. Returns milliseconds since
 * 1970, or undefined for other text. A two-digit year becomes the latest year that is at most 50
 * years after `referenceMs`, also in milliseconds since 1970.
 */
export function parseHttpDate(text: string, referenceMs: number): number | undefined {
  if (text === lastParsed.text) return lastParsed.ms;
  if (fixdate.test(text)) {
    lastParsed = { text, ms: fixdateMs(text) };
    return lastParsed.ms;
  }
  for (const form of obsoleteForms) {
    const parts = form.exec(text)?.groups;
    if (parts !== undefined) return obsoleteFormMs(parts, referenceMs);
  }
  return undefined;
}

/** Reads the parts of an IMF-fixdate, which have fixed positions. */
function fixdateMs(text: string): number | undefined {
  const day = Number(text.slice(5, 7));
  const moment = new Date(0);
  moment.setUTCFullYear(Number(text.slice(12, 16)), monthIndex(text.slice(8, 11)), day);
  // For 31 February the result is a day in March: no such date exists.
  if (moment.getUTCDate() !== day) return undefined;
  const [hour, minute, second] = [text.slice(17, 19), text.slice(20, 22), text.slice(23, 25)];
  return moment.getTime() + ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
}

function monthIndex(month: string): number {
  return months.indexOf(month) / 4;
}

function obsoleteFormMs(
  parts: Readonly<Record<string, string | undefined>>,
  referenceMs: number,
): number | undefined {
  const { day = '', month = '', year = '', hour, minute, second } = parts;
  const fullYear = year.length === 4 ? Number(year) : nearestYear(Number(year), referenceMs);
  const moment = new Date(0);
  moment.setUTCFullYear(fullYear, monthIndex(month), Number(day));
  if (moment.getUTCDate() !== Number(day)) return undefined;
  return moment.setUTCHours(Number(hour), Number(minute), Number(second));
}

function nearestYear(twoDigits: number, referenceMs: number): number {
  const latest = new Date(referenceMs).getUTCFullYear() + 50;
  return latest - ((((latest - twoDigits) % 100) + 100) % 100);
}

/**
 * Parses Retry-After (RFC 9110 §10.2.3) into milliseconds to wait, at most `msMax`; undefined if it
 * is missing or malformed. A date counts from `nowMs`, milliseconds since 1970.
 */
export function readRetryAfter(
  field: string | undefined,
  { nowMs, msMax }: { readonly nowMs: number; readonly msMax: number },
): number | undefined {
  if (field === undefined) return undefined;
  const text = field.trim();
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1000
    : (parseHttpDate(text, nowMs) ?? NaN) - nowMs;
  return Number.isNaN(waitMs) ? undefined : Math.min(Math.max(waitMs, 0), msMax);
}
