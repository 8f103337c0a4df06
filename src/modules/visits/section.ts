import { type FieldsOf, single } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';
import { duration, type ValueParser } from '../../core/config/values.ts';
import { durationText } from '../../core/values/units.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly stats: FieldsOf<typeof statsKeys>;
  }
}

/** A time of days, up to ten years, in milliseconds; 0 for `no` and `0`. */
const retention: ValueParser<number> = (text) => {
  if (/^(?:no|0d?)$/i.test(text)) return { value: 0 };
  const parsed = duration('1d', '3650d')(text);
  return 'value' in parsed ? parsed : { refused: `${parsed.refused}, or \`no\`` };
};

const statsKeys = {
  retention: single(retention, '90d', {
    field: 'retentionMs',
    write: (ms: number) => (ms === 0 ? 'no' : durationText(ms)),
    about:
      'How many days the [visits](../how-to/visits.md) of pages and breadcrumbs are stored; `no` ' +
      'counts none.',
    example: '400d',
  }),
};

/** `[stats]`: counts of visits. */
export const statsSection = iniSection({
  header: 'stats',
  keys: statsKeys,
  place: 'stats',
  since: '0.2',
});
