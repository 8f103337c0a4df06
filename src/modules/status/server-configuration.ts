import type { Config } from '../../core/config/config.ts';
import { effectiveConfig } from './effective-configuration.ts';
import { ineffectiveSettings } from '../../core/config/warnings.ts';
import { defineOperation } from '../../core/operations/operation.ts';
import type { ConfigurationState } from './server-status.ts';

/** The parts of server.configuration. */
interface ConfigurationParts {
  readonly config: Config;
  readonly status: { readonly configuration: () => ConfigurationState };
}

const text = { type: 'string' } as const;
const texts = { type: 'array', items: text } as const;
const line = { type: ['integer', 'null'] } as const;

const sectionSchema = {
  title: 'ConfigurationSection',
  type: 'object',
  required: ['section', 'file', 'line', 'keys'],
  properties: {
    section: text,
    file: { type: ['string', 'null'], description: 'The file that has it; null for none.' },
    line: { ...line, description: 'Null for a section that no file has.' },
    keys: {
      type: 'array',
      items: {
        title: 'ConfigurationKey',
        type: 'object',
        required: ['key', 'values', 'line'],
        properties: {
          key: text,
          values: { ...texts, description: 'Empty without a value; a variable stays ${NAME}.' },
          line: { ...line, description: 'The line that sets it; null for a default.' },
        },
      },
    },
  },
} as const;

/**
 * server.configuration: the configuration in use, with the lines of the ini file that set it, its
 * problems and warnings. Passwords do not appear (effectiveConfig).
 */
export const serverConfiguration = defineOperation({
  name: 'svc1.server.configuration',
  scope: 'admin',
  effect: 'reads',
  summary: 'The configuration in use with its defaults, and the line of the ini file of each key.',
  input: { type: 'object' },
  output: {
    title: 'ServerConfiguration',
    type: 'object',
    required: ['file', 'since', 'state', 'restart_needed', 'problems', 'warnings', 'sections'],
    properties: {
      file: { ...text, description: 'The path of the ini file, or of the folder served.' },
      since: { ...text, format: 'date-time', description: 'When it was read.' },
      state: {
        ...text,
        enum: ['current', 'broken'],
        description: 'broken if the file has changed and cannot be used.',
      },
      restart_needed: { ...texts, description: 'Changed settings that need a restart.' },
      problems: {
        type: 'array',
        description: 'Why the present file cannot be used.',
        items: {
          type: 'object',
          required: ['file', 'line', 'message'],
          properties: { file: text, line: { type: 'integer' }, message: text },
        },
      },
      warnings: { ...texts, description: 'Settings that have no effect.' },
      sections: { type: 'array', items: sectionSchema },
    },
  },
  run:
    ({ config, status }: ConfigurationParts) =>
    async () => {
      const sections = await effectiveConfig(config);
      const warnings = ineffectiveSettings(config);
      const data = { file: config.file, ...status.configuration(), warnings, sections };
      return { kind: 'data', data };
    },
});
