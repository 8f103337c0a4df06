import { remembered } from './remembered.ts';

const minuteMs = 60_000;
const dayMs = 86_400_000;
/** Time zones whose rules are kept at hand. */
const zonesRememberedMax = 64;

/** Minutes since midnight of a time such as `02:00`; undefined for other texts. */
export function minutesOfDay(text: string): number | undefined {
  const [, hour = '', minute = ''] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text) ?? [];
  return hour === '' ? undefined : Number(hour) * 60 + Number(minute);
}

/** Whether a text names a time zone: of the IANA database, `UTC`, or an offset such as `+02:00`. */
export function isTimeZone(text: string): boolean {
  try {
    localClock(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The first moment after another at which clocks in a time zone show one of some times of the day,
 * given in minutes since midnight, of which there is at least one. Where clocks are put forward
 * over that time, it is the moment at which they are; where they show it twice, the first time.
 * Milliseconds since 1970.
 */
export function nextTimeOfDay(afterMs: number, minutes: readonly number[], zone: string): number {
  const local = localClock(zone);
  const today = Math.floor(local(afterMs) / dayMs) * dayMs;
  // A zone can skip a day: Samoa did so in 2011.
  for (let midnight = today - dayMs; ; midnight += dayMs) {
    const moments = minutes.map((at) => momentOf(midnight + at * minuteMs, local));
    const next = Math.min(...moments.filter((moment) => moment > afterMs));
    if (next !== Infinity) return next;
  }
}

/** What clocks show at a moment, as the milliseconds since 1970 of a zone without an offset. */
type LocalClock = (ms: number) => number;

/** The first moment at which clocks show a time, or have just been put forward over it. */
function momentOf(shownMs: number, local: LocalClock): number {
  const offsetAt = (ms: number): number => local(ms) - ms;
  // Clocks are not changed twice within two days.
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

const clocks = remembered<LocalClock>(zonesRememberedMax);

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
