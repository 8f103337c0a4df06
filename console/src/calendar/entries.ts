/** A time at which a page rule begins or ceases to answer, as userinterface.times returns it. */
export interface RuleTime {
  readonly at: string;
  readonly time_zone?: string;
  readonly what: 'begins' | 'ends';
  readonly id: string;
  readonly origin: string;
  readonly path: string;
}

/** A draft with a schedule, as draft.list returns it. */
export interface ScheduledDraft {
  readonly id: string;
  readonly name: string;
  readonly schedule?: {
    readonly at: string;
    readonly time_zone?: string;
    readonly failed?: { readonly at: string; readonly reason: string };
  };
}

/** Something that happens at a time (ISO 8601 UTC). */
export interface Entry {
  readonly at: string;
  readonly zone: string | undefined;
  readonly what: 'begins' | 'ends' | 'publish' | 'failed';
  readonly name: string;
  /** What a person can read further: why a draft has failed, or the origin of a rule. */
  readonly more: string | undefined;
  readonly href: string;
}

/** The entries of one day, in the order of time. */
export interface Day {
  /** The date of the local time, `2026-12-01`. */
  readonly date: string;
  readonly entries: readonly Entry[];
}

/**
 * The days of page rules and drafts, in a time zone. While further rules are not loaded (`isEnd`),
 * drafts after the last loaded one wait for them.
 */
export function daysOf(
  {
    rules,
    drafts,
    isEnd,
  }: {
    readonly rules: readonly RuleTime[];
    readonly drafts: readonly ScheduledDraft[];
    readonly isEnd: boolean;
  },
  zone: string,
): readonly Day[] {
  const last = rules.at(-1)?.at ?? '';
  const scheduled = drafts.flatMap(draftEntry).filter(({ at }) => isEnd || at <= last);
  const entries = [...rules.map(ruleEntry), ...scheduled];
  const sorted = entries.toSorted((one, other) =>
    one.at < other.at ? -1 : Number(one.at > other.at),
  );
  const format = new Intl.DateTimeFormat('en-CA', { timeZone: zone, dateStyle: 'short' });
  const byDate = Map.groupBy(sorted, ({ at }) => format.format(new Date(at)));
  return [...byDate].map(([date, found]) => ({ date, entries: found }));
}

function ruleEntry({ at, time_zone: zone, what, id, origin, path }: RuleTime): Entry {
  const more = origin === '*' ? undefined : origin;
  return { at, zone, what, name: path, more, href: `#/pages/${id}` };
}

function draftEntry({ id, name, schedule }: ScheduledDraft): readonly Entry[] {
  if (schedule === undefined) return [];
  const { at, time_zone: zone, failed } = schedule;
  const what = failed === undefined ? 'publish' : 'failed';
  return [{ at, zone, what, name, more: failed?.reason, href: `#/drafts/${id}` }];
}
