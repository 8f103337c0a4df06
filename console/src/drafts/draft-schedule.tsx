import { shownMoment } from '../../../src/core/values/time.ts';
import { call } from '../api/api.ts';
import { useAction } from '../components/loading.ts';
import { Fault, When } from '../components/ui.tsx';
import { MomentField, TimeZones } from '../pages/moment-field.tsx';
import { ownZone, textOfMoment } from '../pages/moment.ts';
import { texts } from '../texts.ts';
import type { Draft } from './draft-record.ts';

const t = texts.drafts;

/** The choice between now and a later time, as publish takes it; empty for now. */
export function PublishTime({ at, onAt }: { at: string; onAt: (at: string) => void }) {
  if (at === '') {
    return (
      <button
        type="button"
        class="text-button"
        onClick={() => {
          onAt(textOfMoment({ local: tomorrowAtEight(new Date()), zone: ownZone() }));
        }}
      >
        {t.later}
      </button>
    );
  }
  return (
    <div class="publish-time">
      <MomentField label={t.at} zoneLabel={t.atZone} text={at} onText={onAt} problems={[]} />
      <TimeZones />
      <button
        type="button"
        class="text-button"
        onClick={() => {
          onAt('');
        }}
      >
        {t.nowInstead}
      </button>
    </div>
  );
}

/** Tomorrow at eight in the time zone of this browser, as a field for local times has it. */
function tomorrowAtEight(now: Date): string {
  const day = new Date(now.getFullYear(), now.getMonth(), now.getDate() + 1);
  const part = (number: number): string => String(number).padStart(2, '0');
  return `${day.getFullYear()}-${part(day.getMonth() + 1)}-${part(day.getDate())}T08:00`;
}

/** When a draft goes live, or why that has failed; a button cancels it. */
export function Scheduled({ draft, onDone }: { draft: Draft; onDone: () => void }) {
  const { error, isRunning, run } = useAction(onDone);
  const { id, schedule } = draft;
  if (schedule === undefined) return null;
  const { failed } = schedule;
  const cancel = async (): Promise<string> => {
    await call('draft.unschedule', { draft: id });
    return '';
  };
  return (
    <div class="publish-time">
      <Fault error={error} />
      <ScheduleLine draft={draft} />
      {failed === undefined ? <p class="note">{t.scheduledHint}</p> : null}
      <button type="button" disabled={isRunning} onClick={() => void run(cancel)}>
        {t.unschedule}
      </button>
    </div>
  );
}

/** When an open draft goes live, or why that has failed; nothing without a schedule. */
export function ScheduleLine({ draft: { state, schedule } }: { draft: Draft }) {
  if (state !== 'open' || schedule === undefined) return null;
  const { failed } = schedule;
  if (failed === undefined) {
    return (
      <p>
        <b>{t.goesLive(shownMoment(schedule))}</b> <When time={schedule.at} />
      </p>
    );
  }
  return (
    <p class="bad-text">
      {t.failed} <When time={failed.at} />: {failed.reason}
    </p>
  );
}
