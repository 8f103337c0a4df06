import { type FieldsOf, flagKey } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly review: FieldsOf<typeof reviewKeys>;
  }
}

const reviewKeys = {
  required: flagKey('no', {
    about:
      'Whether a [draft](../how-to/drafts.md) is published only after an approval by a key that ' +
      'has not changed it.',
  }),
};

/** `[review]`: approvals of drafts. */
export const reviewSection = iniSection({
  header: 'review',
  keys: reviewKeys,
  place: 'review',
  since: '0.2',
});
