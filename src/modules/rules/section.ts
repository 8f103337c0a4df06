import { link, sitePath } from '../../core/config/addresses.ts';
import { type FieldsOf, optional } from '../../core/config/ini-key.ts';
import { iniSection } from '../../core/config/ini-section.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly engines: readonly EngineConfig[];
  }
  /** `[engine.<name>]`: an engine added to the built-in ones. */
  interface EngineConfig extends FieldsOf<typeof engineKeys> {
    readonly name: string;
  }
}

const engineKeys = {
  page: optional(sitePath, {
    about: 'The path of the generic page that shows the engine.',
    example: '/frame.html',
  }),
  script: optional(link, {
    about: 'A module that exports `render`.',
    example: '/assets/engine.js',
  }),
  reference: optional(link, {
    about: 'The address of its documentation.',
    example: '/docs/engine',
  }),
};

/** `[engine.<name>]`: an engine added to the built-in ones. */
export const engineSection = iniSection({
  header: 'engine.<name>',
  keys: engineKeys,
  place: 'engines',
  since: '0.1',
  about: 'An engine of your own for generic pages.',
  example: { name: 'letter', lines: { script: '/assets/engine.js' } },
});
