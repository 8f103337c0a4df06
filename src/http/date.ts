const weekdays = 'Mon|Tue|Wed|Thu|Fri|Sat|Sun';
const longWeekdays = 'Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday';
const months = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec';
const time = '(?<hour>[01]\\d|2[0-3]):(?<minute>[0-5]\\d):(?<second>[0-5]\\d|60)';

/** IMF-fixdate (RFC 9110 §5.6.7). */
const fixdate = new RegExp(`^(?:${weekdays}), \\d\\d (?:${months}) \\d{4} ${time} GMT$`);

/** The forms of RFC 850 and of asctime, which a recipient has to read too. */
const obsoleteForms = [
  new RegExp(
    `^(?:${longWeekdays}), (?<day>\\d\\d)-(?<month>${months})-(?<year>\\d\\d) ${time} GMT$`,
  ),
  new RegExp(`^(?:${weekdays}) (?<month>${months}) (?<day>\\d\\d| \\d) ${time} (?<year>\\d{4})$`),
];

const lastMs = Date.UTC(9999, 11, 31, 23, 59, 59);

/**
 * An IMF-fixdate (RFC 9110 §5.6.7) of milliseconds since 1970, cut to the second and to the years
 * 1970 to 9999.
 */
export function formatHttpDate(ms: number): string {
  return new Date(Math.min(Math.max(ms, 0), lastMs)).toUTCString();
}

/** The IMF-fixdate that was read last: whatever is answered within a second has the same Date. */
let newest: { readonly text: string; readonly ms: number | undefined } = {
  text: '',
  ms: undefined,
};

/**
 * Milliseconds since 1970 of an HTTP-date in any of the three forms of RFC 9110 §5.6.7; undefined
 * when it is none. A two-digit year is the newest that lies at most 50 years after the reference,
 * milliseconds since 1970 as well.
 */
export function parseHttpDate(text: string, referenceMs: number): number | undefined {
  if (text === newest.text) return newest.ms;
  if (fixdate.test(text)) {
    newest = { text, ms: fixdateMs(text) };
    return newest.ms;
  }
  for (const form of obsoleteForms) {
    const parts = form.exec(text)?.groups;
    if (parts !== undefined) return momentOf(parts, referenceMs);
  }
  return undefined;
}

/** Of an IMF-fixdate, whose parts stand in fixed places. */
function fixdateMs(text: string): number | undefined {
  const day = Number(text.slice(5, 7));
  const moment = new Date(0);
  moment.setUTCFullYear(Number(text.slice(12, 16)), monthIndex(text.slice(8, 11)), day);
  // 31 February has become a day of March by now: such a day does not exist.
  if (moment.getUTCDate() !== day) return undefined;
  const [hour, minute, second] = [text.slice(17, 19), text.slice(20, 22), text.slice(23, 25)];
  return moment.getTime() + ((Number(hour) * 60 + Number(minute)) * 60 + Number(second)) * 1000;
}

function monthIndex(month: string): number {
  return months.indexOf(month) / 4;
}

function momentOf(
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
  const newest = new Date(referenceMs).getUTCFullYear() + 50;
  return newest - ((((newest - twoDigits) % 100) + 100) % 100);
}
