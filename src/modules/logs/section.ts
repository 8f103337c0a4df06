import { dirname } from 'node:path';
import { checkFolder } from '../../core/config/files.ts';
import {
  type FieldsOf,
  fileKey,
  flagKey,
  list,
  optional,
  single,
} from '../../core/config/ini-key.ts';
import { iniSection, type ParsedSection } from '../../core/config/ini-section.ts';
import { type LineProblem, quoted } from '../../core/config/problem.ts';
import {
  type Refused,
  type ValueParser,
  choice,
  duration,
  size,
  wholeNumber,
} from '../../core/config/values.ts';
import { nearestName } from '../../core/values/nearest.ts';
import { sizeText } from '../../core/values/units.ts';
import { pathPattern } from '../headers/section.ts';
import { type AccessField, accessFields, templateFields } from './access-fields.ts';
import type { SyslogAddress } from './syslog-message.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly log: FieldsOf<typeof logKeys> & {
      readonly paths: readonly (FieldsOf<typeof pathLogKeys> & { readonly name: string })[];
    };
  }
}

/** The name of a field of the access log. */
const accessField: ValueParser<AccessField> = (text) => {
  const value = accessFields.find((name) => name === text.toLowerCase());
  return value === undefined ? { refused: unknownField(text) } : { value };
};

/** A line of the access log with fields in braces. */
const lineTemplate: ValueParser<string> = (value) => {
  const names = templateFields(value);
  const unknown = names.find((name) => !accessFields.some((known) => known === name));
  if (unknown !== undefined)
    return { refused: `it has ${quoted(`{${unknown}}`)}: ${unknownField(unknown)}` };
  if (names.length > 0) return { value };
  return {
    refused: 'write a line with fields in braces, such as `{address} "{request}" {status}`',
  };
};

function unknownField(text: string): string {
  const nearest = nearestName(text, accessFields);
  if (nearest !== undefined) return `did you mean ${quoted(nearest)}?`;
  return `the fields are ${accessFields.join(', ')}`;
}

/** A size that holds some lines. */
const rotateSize: ValueParser<number> = (text) => {
  const parsed = size(text);
  if (!('value' in parsed) || parsed.value >= rotateBytesMin) return parsed;
  return { refused: `write a size of at least ${sizeText(rotateBytesMin)}` };
};

const rotateBytesMin = 4_096;

/** The name of a query parameter. */
const parameterName: ValueParser<string> = (value) =>
  /^[^\s&=#?]{1,64}$/.test(value) ? { value } : { refused: 'write the name of a query parameter' };

/** Where messages to syslog go: `udp://host:port`, `tcp://host:port` or `unix:/path`. */
const syslogAddress: ValueParser<SyslogAddress> = (text) => {
  const [, path] = /^unix:(\/[^\0]{1,106})$/.exec(text) ?? [];
  if (path !== undefined) return { value: { kind: 'unix', path } };
  const [, kind, written = '', digits = '514'] =
    /^(udp|tcp):\/\/(\[[\da-f:.]{2,45}\]|[\w.-]{1,253})(?::(\d{1,5}))?$/i.exec(text) ?? [];
  const port = Number(digits);
  if (kind === undefined || port < 1 || port > 65_535) {
    return { refused: 'write `udp://127.0.0.1:514`, `tcp://log.example:601` or `unix:/run/log`' };
  }
  const host = written.replace(/[[\]]/g, '').toLowerCase();
  return { value: { kind: kind.toLowerCase() === 'udp' ? 'udp' : 'tcp', host, port } };
};

function syslogText(address: SyslogAddress): string {
  if (address.kind === 'unix') return `unix:${address.path}`;
  const { kind, host, port } = address;
  return `${kind}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The keys of `[log]`. */
const logKeys = {
  level: single(choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), 'info', {
    about: 'The least important messages that the log has.',
    example: 'warn',
  }),
  access: flagKey('yes', { about: 'Whether each request has a line.' }),
  format: single(choice('pretty', 'json', 'combined'), 'pretty', {
    about: 'The format of the lines: see [the log](log.md).',
    example: 'json',
  }),
  fields: list(accessField, '', {
    about:
      'The [fields](log.md#all-fields) of a request: those of a line as `json`, and further ones ' +
      'at the end of a line as `combined` or `pretty`.',
    example: 'address, method, target, status, ms, tls, user_agent',
    since: '0.2',
  }),
  line: optional(lineTemplate, {
    about:
      'A template for the line of a request, in place of the format: its ' +
      '[fields](log.md#all-fields) are in braces.',
    example: '{address} {user} [{date}] \\"{request}\\" {status} {bytes} {ms}',
    since: '0.2',
  }),
  redact: list(parameterName, '', {
    about:
      'Names of query parameters whose values the access log shows as `redacted`, also in the ' +
      'Referer.',
    example: 'token, email',
    since: '0.2',
  }),
  file: fileKey({
    checkPath: checkLogFolder,
    holds: 'the access log',
    about: 'A file for the access log, in place of standard output.',
    example: '/var/log/waymark/access.log',
    since: '0.2',
  }),
  syslog: optional(syslogAddress, {
    write: syslogText,
    about:
      'A syslog that gets the log in place of standard output (RFC 5424): `udp://host:port`, ' +
      '`tcp://host:port`, or `unix:/path` of a socket of streams.',
    example: 'udp://127.0.0.1:514',
    since: '0.2',
  }),
  rotate_size: optional(rotateSize, {
    field: 'rotateBytes',
    about:
      'The size after which the file of the access log is renamed to `NAME.1`, and the earlier ' +
      'ones to `NAME.2` and so on.',
    example: '100MiB',
    since: '0.2',
    beside: { file: '/var/log/waymark/access.log' },
  }),
  rotate_age: optional(duration('1m', '3650d'), {
    field: 'rotateAgeMs',
    about: 'The age after which the file is renamed in the same way.',
    example: '1d',
    since: '0.2',
    beside: { file: '/var/log/waymark/access.log' },
  }),
  rotate_keep: single(wholeNumber(1, 1_000), '7', {
    about: 'How many renamed files are kept.',
    example: '30',
    since: '0.2',
    beside: { file: '/var/log/waymark/access.log', rotate_age: '1d' },
  }),
  explain: flagKey('no', { about: 'Whether every answer names its source in Server-Timing.' }),
};

/** The keys of `[log.<name>]`. */
const pathLogKeys = {
  path: list(pathPattern, '', {
    about: 'The paths; each `*` stands for any text.',
    example: '/health, /assets/*',
    beside: { access: 'no' },
  }),
  access: flagKey('yes', { about: 'Whether requests for these paths have a line.' }),
  sample: single(wholeNumber(1, 1_000_000), '1', {
    about:
      'One of how many requests has a line, chosen at random. An answer with a status of 500 or ' +
      'more always has one.',
    example: '100',
  }),
};

/** `[log]`: the log and the access log. */
export const logSection = iniSection({
  header: 'log',
  keys: logKeys,
  place: 'log',
  since: '0.1',
  check: ([log]) => (log === undefined ? [] : logProblems(log)),
  warnings: ({ log: { file, access } }) =>
    file === undefined || access
      ? []
      : ['[log] file has no effect: it is the file of the access log, and `access` is no.'],
});

/** `[log.<name>]`: the lines of some paths in the access log. */
export const pathLogSection = iniSection({
  header: 'log.<name>',
  keys: pathLogKeys,
  place: 'log.paths',
  since: '0.2',
  about:
    'The lines of some paths in the access log. The first section of the file whose path matches ' +
    'decides.',
  example: { name: 'assets', lines: { path: '/assets/*' } },
  check: (logs) =>
    logs.flatMap(({ name, line, isValid, values }) => {
      const title = `[log.${name}]`;
      if (isValid && values.path.length === 0) {
        return [{ line, message: `${title} needs \`path\`, such as \`path = /health\`` }];
      }
      if (!isValid || !values.access || values.sample !== 1) return [];
      const message = `${title} has no effect: add \`access = no\` or \`sample = 100\``;
      return [{ line, message }];
    }),
});

/** Finds settings of the log that exclude each other. */
function logProblems(log: ParsedSection<typeof logKeys>): readonly LineProblem[] {
  const { file, line, fields } = log.values;
  const at = (key: string, message: string): readonly LineProblem[] =>
    (log.lines.get(key) ?? []).slice(0, 1).map((where) => ({ line: where, message }));
  return [
    ...(line !== undefined && fields.length > 0
      ? at('fields', '`fields` has no effect with `line`: remove one of them')
      : []),
    ...(['rotate_size', 'rotate_age'] as const).flatMap((key) =>
      file === undefined && log.values[key] !== undefined
        ? at(key, `\`${key}\` needs \`file\`, too: standard output has no file to rotate`)
        : [],
    ),
  ];
}

/** The server creates the file of the access log, but not its folder. */
async function checkLogFolder(path: string): Promise<Refused | undefined> {
  const refused = await checkFolder(dirname(path));
  return refused && { refused: `is in a folder that ${refused.refused}` };
}
