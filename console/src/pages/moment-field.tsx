import { useState } from 'preact/hooks';
import { Field } from '../components/ui.tsx';
import { momentParts, ownZone, textOfMoment } from './moment.ts';

/** The fields of a moment: the local time, and its time zone, by default that of the browser. */
export function MomentField({
  label,
  zoneLabel,
  text,
  onText,
  problems,
}: {
  label: string;
  zoneLabel: string;
  text: string;
  onText: (text: string) => void;
  problems: readonly string[];
}) {
  const [lastZone, setZone] = useState(ownZone);
  const { local, zone } = momentParts(text) ?? { local: '', zone: lastZone };
  return (
    <div class="wide-field moment">
      <Field label={label} problems={problems}>
        <input
          type="datetime-local"
          step={local.length > '2026-12-01T08:00'.length ? '0.001' : undefined}
          value={local}
          onInput={({ currentTarget }) => {
            setZone(zone);
            onText(textOfMoment({ local: currentTarget.value, zone }));
          }}
        />
      </Field>
      <Field label={zoneLabel}>
        <input
          type="text"
          list="time-zones"
          spellcheck={false}
          value={zone}
          onInput={({ currentTarget }) => {
            setZone(currentTarget.value);
            onText(textOfMoment({ local, zone: currentTarget.value }));
          }}
        />
      </Field>
    </div>
  );
}

/** The names of time zones that the fields of moments suggest. */
export function TimeZones() {
  return (
    <datalist id="time-zones">
      {['UTC', ...Intl.supportedValuesOf('timeZone')].map((one) => (
        <option key={one} value={one} />
      ))}
    </datalist>
  );
}
