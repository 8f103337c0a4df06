import { Failure } from './failure.ts';
import type { Json } from './json/json.ts';
import { createLruCache } from './lru-cache.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** Time zones whose formatters are cached. */
const zonesRememberedMax = 64;

/** Minutes since midnight of a time such as `02:00`; undefined for other texts. */
export function minutesOfDay(text: string): number | undefined {
  const [, hour = '', minute = ''] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hour === '' ? undefined : Number(hour) * 60 + Number(minute);
}

/**
 * Whether a text is a time zone: a name of the IANA database, `UTC`, or an offset such as `+02:00`.
 */
export function isTimeZone(text: string): boolean {
  try {
    localClock(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The first moment after `afterMs` at which clocks in a time zone show one of the times of the day
 * in `minutes` since midnight, which must not be empty. If clocks skip the time, it is the moment
 * of the change; if they show it twice, the first one. In milliseconds since 1970.
 */
export function nextTimeOfDay(afterMs: number, minutes: readonly number[], zone: string): number {
  const local = localClock(zone);
  const today = Math.floor(local(afterMs) / dayMs) * dayMs;
  // A zone can skip a day, as Samoa did in 2011.
  for (let midnight = today - dayMs; ; midnight += dayMs) {
    const moments = minutes.map((at) => momentOf(midnight + at * minuteMs, local));
    const next = Math.min(...moments.filter((moment) => moment > afterMs));
    if (next !== Infinity) return next;
  }
}

/** The local time at a moment, as milliseconds since 1970 in a zone without an offset. */
type LocalClock = (ms: number) => number;

/** The first moment at which clocks show a local time, or at which they skip it. */
function momentOf(shownMs: number, local: LocalClock): number {
  const offsetAt = (ms: number): number => local(ms) - ms;
  // No zone changes its clocks twice within two days.
  const [before, after] = [offsetAt(shownMs - dayMs), offsetAt(shownMs + dayMs)];
  const shows = [shownMs - before, shownMs - after].filter((ms) => local(ms) === shownMs);
  if (shows.length > 0) return Math.min(...shows);
  let [early, late] = [shownMs - after, shownMs - before];
  while (late - early > 1) {
    const middle = Math.floor((early + late) / 2);
    if (offsetAt(middle) === before) early = middle;
    else late = middle;
  }
  return late;
}

const clocks = createLruCache<LocalClock>(zonesRememberedMax);

/** Throws a RangeError for a text that names no time zone. */
function localClock(zone: string): LocalClock {
  const known = clocks.get(zone);
  if (known !== undefined) return known;
  const number = 'numeric';
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone: zone, calendar: 'iso8601', numberingSystem: 'latn', hourCycle: 'h23' },
    ...{ year: number, month: number, day: number },
    ...{ hour: number, minute: number, second: number },
  });
  const clock: LocalClock = (ms) => {
    const shown = new Map(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const part = (type: Intl.DateTimeFormatPartTypes): number => shown.get(type) ?? 0;
    const seconds = Date.UTC(
      ...([part('year'), part('month') - 1, part('day')] as const),
      ...([part('hour'), part('minute'), part('second')] as const),
    );
    return seconds + (((ms % 1_000) + 1_000) % 1_000);
  };
  clocks.set(zone, clock);
  return clock;
}

const dateTime = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)(Z|z|[+-]\d\d:\d\d)?$/;

/** A second that clocks insert at the end of a day in UTC (RFC 3339 §5.7). */
const leapSecond = /(?<=:\d\d):60/;

/**
 * Parses an ISO 8601 date-time, which is in UTC if it has no offset, and returns it in UTC
 * (docs/design/page-rules.md#fields); a leap second becomes the first second of the next day.
 * Undefined for any other value.
 */
export function parseDateTime(value: Json): string | undefined {
  const match = typeof value === 'string' ? dateTime.exec(value) : null;
  if (match === null) return undefined;
  const [, date = '', time = '', offset = 'Z'] = match;
  const dayMs = Date.parse(`${date}T00:00:00Z`);
  // Date.parse reads 31 February as 3 March: a day that is formatted differently does not exist.
  if (Number.isNaN(dayMs) || new Date(dayMs).toISOString().slice(0, 10) !== date) return undefined;
  const isLeap = leapSecond.test(time);
  const usual = isLeap ? time.replace(leapSecond, ':59') : time;
  const timeMs = Date.parse(`${date}T${usual}${offset.toUpperCase()}`);
  // An offset can lead to a year outside 0000 to 9999.
  const iso = Number.isNaN(timeMs) ? '' : new Date(timeMs + (isLeap ? 1_000 : 0)).toISOString();
  if (isLeap && !iso.includes('T00:00:00')) return undefined;
  return /^\d/.test(iso) ? iso : undefined;
}

/**
 * An instant as a text whose order is that of time: an ISO 8601 date-time in UTC, to the last digit
 * that was sent, without a Z and without zeros at its end. Undefined for another text.
 */
export function instantText(text: string): string | undefined {
  const utc = parseDateTime(text);
  if (utc === undefined) return undefined;
  const second = utc.slice(0, secondCharacters);
  const fraction = withoutFinalZeros(fractionOf(text));
  return fraction === '' ? second : `${second}.${fraction}`;
}

/** An expression would take quadratic time for many zeros before another digit. */
function withoutFinalZeros(digits: string): string {
  let end = digits.length;
  while (digits[end - 1] === '0') end -= 1;
  return digits.slice(0, end);
}

/** As parseDateTime, with all digits of the second that were sent, and at least three of them. */
export function parseExactDateTime(value: Json): string | undefined {
  const utc = parseDateTime(value);
  if (utc === undefined || typeof value !== 'string') return utc;
  const more = withoutFinalZeros(fractionOf(value).slice(3));
  return more === '' ? utc : utc.replace(/Z$/, `${more}Z`);
}

/** The instant of a date-time in milliseconds since 1970, with their fraction. */
export function instantMs(text: string): number {
  const digits = fractionOf(text).slice(3);
  return Date.parse(parseDateTime(text) ?? '') + (digits === '' ? 0 : Number(`0.${digits}`));
}

/** The digits of a fraction of a second. */
function fractionOf(text: string): string {
  return /\.(\d+)/.exec(text)?.[1] ?? '';
}

const secondCharacters = '2026-12-01T07:00:00'.length;

/** A moment as ISO 8601 UTC, and the time zone in which somebody has named it. */
export interface NamedMoment {
  readonly at: string;
  readonly time_zone?: string;
}

/**
 * Parses a moment of the input field `at`: a date-time with an offset, or the local time of a time
 * zone, which is `zone` or stands behind it in brackets, as in `2026-12-01T08:00[Europe/Berlin]`
 * (RFC 9557). If clocks show the time twice, it is the first one. Throws `invalid` for
 * another text, and for a local time that does not exist because clocks are put forward.
 */
export function parseNamedMoment(text: string, zone: string | undefined): NamedMoment {
  const [, stated = text, bracketed] = /^([^[]*)\[([^\]]*)\]$/.exec(text) ?? [];
  if (zone !== undefined && bracketed !== undefined && zone !== bracketed) {
    throw invalidMoment('The time zones in at and in time_zone differ.');
  }
  const named = bracketed ?? zone;
  if (named !== undefined && !isTimeZone(named)) throw noSuchZone(named);
  const iso = parseDateTime(stated);
  if (iso === undefined) {
    throw invalidMoment(`${quoted(text)} is no date-time such as 2026-12-01T08:00.`);
  }
  const [offset] = /(?:Z|[+-]\d\d:\d\d)$/i.exec(stated) ?? [];
  if (named === undefined) {
    if (offset !== undefined) return { at: iso };
    throw invalidMoment(`Which time zone is ${text} in? Add time_zone, or an offset such as Z.`);
  }
  if (offset === undefined) return { at: localMoment(iso, named), time_zone: named };
  const shown = parseDateTime(stated.slice(0, -offset.length)) ?? '';
  // An offset of Z says nothing about the time zone (RFC 9557, section 2).
  const isLocal = /^z$/i.test(offset) || localClock(named)(Date.parse(iso)) === Date.parse(shown);
  if (isLocal) return { at: iso, time_zone: named };
  throw invalidMoment(`${named} does not have the offset ${offset} at that time.`);
}

/** A moment in UTC, with its time zone in brackets (RFC 9557): the form of a stored field. */
export function storedMoment({ at, time_zone: zone }: NamedMoment): string {
  return zone === undefined ? at : `${at}[${zone}]`;
}

/** The moment of such a text. */
export function namedMoment(stored: string): NamedMoment {
  const at = stored.slice(0, utcCharacters);
  const zone = stored.slice(utcCharacters + 1, -1);
  return zone === '' ? { at } : { at, time_zone: zone };
}

/** The moment of such a text in milliseconds since 1970. */
export function storedMomentMs(stored: string): number {
  return Date.parse(stored.slice(0, utcCharacters));
}

const utcCharacters = '2026-12-01T07:00:00.000Z'.length;

/** The first moment at which clocks in a zone show a local time. */
function localMoment(shown: string, zone: string): string {
  const [local, shownMs] = [localClock(zone), Date.parse(shown)];
  // Clocks of the first century, and those after 9999, would be shown as other years.
  if (shownMs < 0) throw invalidMoment(`${shown.slice(0, 16)} is before 1970.`);
  const ms = momentOf(shownMs, local);
  const iso = new Date(ms).toISOString();
  if (!/^\d/.test(iso)) throw invalidMoment(`${shown.slice(0, 16)} is no time before 10000.`);
  if (local(ms) === shownMs) return iso;
  const [skipped, next] = [shownMs, local(ms)].map((one) => new Date(one).toISOString());
  throw invalidMoment(
    `Clocks in ${zone} skip ${skipped?.slice(0, 16) ?? ''}: ` +
      `${next?.slice(11, 16) ?? ''} is the next time that they show.`,
  );
}

/** A moment as people read it: the local time of its zone, and that; or in UTC. */
export function shownMoment({ at, time_zone: zone = 'UTC' }: NamedMoment): string {
  const local = new Date(localClock(zone)(Date.parse(at))).toISOString();
  return `${local.slice(0, 10)} ${local.slice(11, 16)} ${zone}`;
}

function noSuchZone(zone: string): Failure {
  const message = `There is no time zone ${quoted(zone)}. Names are such as Europe/Berlin or UTC.`;
  return new Failure('invalid', message, { field: 'time_zone' });
}

function invalidMoment(message: string): Failure {
  return new Failure('invalid', message, { field: 'at' });
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, 80));
}
