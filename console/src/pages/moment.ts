/** A moment as the fields of a form: `2026-12-01T08:00`, and a time zone. */
export interface MomentParts {
  readonly local: string;
  readonly zone: string;
}

const localForm = /^(\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)\[([^\]]*)\]$/;
/** The length of a stored moment without its time zone. */
const utcCharacters = '2026-12-01T07:00:00.000Z'.length;

/**
 * The parts of a moment of a page rule: as the server stores it, in UTC with its time zone in
 * brackets, or as textOfMoment writes it. Other texts have no parts.
 */
export function momentParts(text: string): MomentParts | undefined {
  const [, local, zone = ''] = localForm.exec(text) ?? [];
  if (local !== undefined) return { local, zone };
  const ms = Date.parse(text.slice(0, utcCharacters));
  if (Number.isNaN(ms)) return undefined;
  const named = text.slice(utcCharacters + 1, -1);
  const shown = named === '' ? undefined : localTime(ms, named);
  return shown === undefined
    ? { local: withoutZeros(new Date(ms).toISOString().slice(0, -1)), zone: 'UTC' }
    : { local: shown, zone: named };
}

/** The text of such parts for the server; empty without a time. */
export function textOfMoment({ local, zone }: MomentParts): string {
  return local === '' ? '' : `${local}[${zone}]`;
}

/** The time zone of this browser. */
export function ownZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** The local time at a moment; undefined in a time zone that this browser does not know. */
function localTime(ms: number, timeZone: string): string | undefined {
  try {
    const number = '2-digit';
    const format = new Intl.DateTimeFormat('en-US', {
      ...{ timeZone, calendar: 'iso8601', numberingSystem: 'latn', hourCycle: 'h23' },
      ...{ year: 'numeric', month: number, day: number },
      ...{ hour: number, minute: number, second: number, fractionalSecondDigits: 3 },
    });
    const shown = new Map(format.formatToParts(ms).map(({ type, value }) => [type, value]));
    const part = (type: Intl.DateTimeFormatPartTypes): string => shown.get(type) ?? '';
    const date = `${part('year').padStart(4, '0')}-${part('month')}-${part('day')}`;
    const time = `${part('hour')}:${part('minute')}:${part('second')}`;
    return withoutZeros(`${date}T${time}.${part('fractionalSecond')}`);
  } catch {
    return undefined;
  }
}

/** As an input of the type `datetime-local` writes it: seconds only if there are some. */
function withoutZeros(local: string): string {
  return local.replace(/\.000$/, '').replace(/^([^:]*:\d\d):00$/, '$1');
}
