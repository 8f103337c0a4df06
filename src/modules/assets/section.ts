import { type FieldsOf, single } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';
import { duration, size } from '../../core/config/values.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly asset: FieldsOf<typeof assetKeys>;
  }
}

const assetKeys = {
  max: single(size, '256MiB', {
    field: 'bytesMax',
    about: 'The longest file that can be uploaded as an [asset](../how-to/assets.md).',
    example: '1GiB',
  }),
  retention: single(duration('1s', '3650d'), '30d', {
    field: 'retentionMs',
    about:
      'How long the file of an asset stays after the last asset that refers to it is deleted or ' +
      'replaced: an undo within this time finds it.',
    example: '90d',
  }),
  variants: single(size, '1GiB', {
    field: 'variantsBytesMax',
    about:
      'The room on the disk for [pictures in other sizes and ' +
      'formats](../how-to/assets.md#pictures-in-other-sizes); those that were not used for the ' +
      'longest time go. With 0, every picture is sent as it was uploaded.',
    example: '5GiB',
  }),
};

/** `[asset]`: files that are uploaded. */
export const assetSection = iniSection({
  header: 'asset',
  keys: assetKeys,
  place: 'asset',
  since: '0.2',
});
