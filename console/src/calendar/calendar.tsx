import { call } from '../api/api.ts';
import { useLive } from '../api/live.ts';
import { useLoad, usePages } from '../components/loading.ts';
import { Busy, Fault, ScreenHead, StaleList } from '../components/ui.tsx';
import { ownZone } from '../pages/moment.ts';
import { texts } from '../texts.ts';
import { daysOf, type Day, type Entry, type RuleTime, type ScheduledDraft } from './entries.ts';
import './calendar.css';

const t = texts.calendar;

/** What begins, ends and is published, day by day. */
export function Calendar() {
  const live = useLive(['changes', 'times']);
  const zone = ownZone();
  const { rows, isEnd, isLoading, error, more, ...stale } = usePages<RuleTime, string>(
    (after, limit) => call('userinterface.times', { limit, ...(after !== undefined && { after }) }),
    live,
  );
  const drafts = useLoad(scheduledDrafts, [], live);
  const days = daysOf({ rules: rows, drafts: drafts.data ?? [], isEnd }, zone);
  const isEmpty = isEnd && drafts.data !== undefined && days.length === 0;
  return (
    <>
      <ScreenHead title={t.title} lead={t.lead} shown={['userinterface.times', {}]} />
      <p class="note">{t.zone(zone)}</p>
      <Fault
        error={error ?? drafts.error}
        onRetry={error === undefined ? drafts.reload : stale.reload}
      />
      <StaleList {...stale} />
      {(isLoading && rows.length === 0) || drafts.data === undefined ? <Busy /> : null}
      {isEmpty ? (
        <div class="empty">
          <h2>{t.empty}</h2>
          <p>{t.emptyHint}</p>
        </div>
      ) : null}
      {days.map((day) => (
        <DaySection key={day.date} day={day} zone={zone} />
      ))}
      {isEnd ? null : (
        <button type="button" onClick={more}>
          {texts.states.more}
        </button>
      )}
    </>
  );
}

async function scheduledDrafts(signal: AbortSignal): Promise<readonly ScheduledDraft[]> {
  const drafts: ScheduledDraft[] = [];
  let after: string | null = '';
  while (after !== null) {
    const page: { rows: readonly ScheduledDraft[]; next: string | null } = await call(
      'draft.list',
      { scheduled: true, ...(after !== '' && { after }) },
      { signal },
    );
    drafts.push(...page.rows);
    after = page.next;
  }
  return drafts;
}

const dayName = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeZone: 'UTC' });

function DaySection({ day: { date, entries }, zone }: { day: Day; zone: string }) {
  return (
    <section class="calendar-day" aria-label={dayName.format(new Date(date))}>
      <h2>{dayName.format(new Date(date))}</h2>
      <ul>
        {entries.map((entry) => (
          <EntryLine key={`${entry.what} ${entry.href}`} entry={entry} zone={zone} />
        ))}
      </ul>
    </section>
  );
}

function EntryLine({ entry, zone }: { entry: Entry; zone: string }) {
  const { at, what, name, more, href } = entry;
  const other = entry.zone === undefined || entry.zone === zone ? undefined : entry.zone;
  return (
    <li class={what}>
      <time dateTime={at}>{timeIn(at, zone)}</time>
      <span>
        <span class="tag">{t.what[what]}</span> <a href={href}>{name}</a>
        {more === undefined ? null : <span class="note">{more}</span>}
        {other === undefined ? null : <span class="note">{t.named(timeIn(at, other), other)}</span>}
      </span>
    </li>
  );
}

/** The time of the day in a time zone, or in UTC if this browser does not know it. */
function timeIn(at: string, timeZone: string): string {
  const format = { timeStyle: at.endsWith(':00.000Z') ? 'short' : 'medium' } as const;
  try {
    return new Intl.DateTimeFormat('en-GB', { ...format, timeZone }).format(new Date(at));
  } catch {
    return `${at.slice(11, 19)} UTC`;
  }
}
