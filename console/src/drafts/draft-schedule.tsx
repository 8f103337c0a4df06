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
  const { at, time_zone: zone, failed } = schedule;
  const cancel = async (): Promise<string> => {
    await call('draft.unschedule', { draft: id });
    return '';
  };
  return (
    <div class="publish-time">
      <Fault error={error} />
      {failed === undefined ? (
        <p>
          <b>
            {t.goesLive} <When time={at} />
          </b>{' '}
          {zone === undefined ? null : <span class="note">{t.inZone(zone)}</span>}
          <br />
          <span class="note">{t.scheduledHint}</span>
        </p>
      ) : (
        <p class="bad-text">
          {t.failed} <When time={failed.at} />: {failed.reason}
        </p>
      )}
      <button type="button" disabled={isRunning} onClick={() => void run(cancel)}>
        {t.unschedule}
      </button>
    </div>
  );
}
