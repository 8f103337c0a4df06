import {
  type KeyText,
  type ParsedKeys,
  list,
  optional,
  single,
} from '../../core/config/ini-key.ts';
import { type LineProblem, quoted } from '../../core/config/problem.ts';
import {
  type ValueParser,
  anyText,
  choice,
  duration,
  size,
  wholeNumber,
  yesNo,
} from '../../core/config/values.ts';
import { nearestName } from '../../core/values/nearest.ts';
import { durationText, sizeText } from '../../core/values/units.ts';
import { pathPattern } from '../headers/section.ts';
import { type AccessField, accessFields, templateFields } from './access-fields.ts';
import type { SyslogAddress } from './syslog-message.ts';

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
export const logKeys = {
  level: single(choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), 'info'),
  access: single(yesNo, 'yes'),
  format: single(choice('pretty', 'json', 'combined'), 'pretty'),
  fields: list(accessField, ''),
  line: optional(lineTemplate),
  redact: list(parameterName, ''),
  /** The file of the access log; by default, standard output. */
  file: optional(anyText, { isPath: true, holds: 'the access log' }),
  syslog: optional(syslogAddress, { write: syslogText }),
  rotate_size: optional(rotateSize, {
    field: 'rotateBytes',
    write: sizeText,
  }),
  rotate_age: optional(duration('1m', '3650d'), {
    field: 'rotateAgeMs',
    write: durationText,
  }),
  rotate_keep: single(wholeNumber(1, 1_000), '7'),
  /** Whether answers name their source in Server-Timing (docs/design/requests.md#precedence). */
  explain: single(yesNo, 'no'),
};

/** The keys of `[log.<name>]`. */
export const pathLogKeys = {
  path: list(pathPattern, ''),
  access: single(yesNo, 'yes'),
  sample: single(wholeNumber(1, 1_000_000), '1'),
};

/** What the reference says about each key of `[log]`. */
export const logTexts: Readonly<Record<keyof typeof logKeys, KeyText>> = {
  level: { about: 'The least important messages that the log has.', example: 'warn' },
  access: { about: 'Whether each request has a line.', example: 'no' },
  format: { about: 'The format of the lines: see [the log](log.md).', example: 'json' },
  fields: {
    about:
      'The [fields](log.md#all-fields) of a request: those of a line as `json`, and further ones ' +
      'at the end of a line as `combined` or `pretty`.',
    example: 'address, method, target, status, ms, tls, user_agent',
  },
  line: {
    about:
      'A template for the line of a request, in place of the format: its ' +
      '[fields](log.md#all-fields) are in braces.',
    example: '{address} {user} [{date}] \\"{request}\\" {status} {bytes} {ms}',
  },
  redact: {
    about:
      'Names of query parameters whose values the access log shows as `redacted`, also in the ' +
      'Referer.',
    example: 'token, email',
  },
  file: {
    about: 'A file for the access log, in place of standard output.',
    example: '/var/log/waymark/access.log',
  },
  syslog: {
    about:
      'A syslog that gets the log in place of standard output (RFC 5424): `udp://host:port`, ' +
      '`tcp://host:port`, or `unix:/path` of a socket of streams.',
    example: 'udp://127.0.0.1:514',
  },
  rotate_size: {
    about:
      'The size after which the file of the access log is renamed to `NAME.1`, and the earlier ' +
      'ones to `NAME.2` and so on.',
    example: '100MiB',
  },
  rotate_age: { about: 'The age after which the file is renamed in the same way.', example: '1d' },
  rotate_keep: { about: 'How many renamed files are kept.', example: '30' },
  explain: { about: 'Whether every answer names its source in Server-Timing.', example: 'yes' },
};

/** What the reference says about each key of `[log.<name>]`. */
export const pathLogTexts: Readonly<Record<keyof typeof pathLogKeys, KeyText>> = {
  path: {
    about: 'The paths; each `*` stands for any text.',
    example: '/health, /assets/*',
  },
  access: { about: 'Whether requests for these paths have a line.', example: 'no' },
  sample: {
    about:
      'One of how many requests has a line, chosen at random. An answer with a status of 500 or ' +
      'more always has one.',
    example: '100',
  },
};

/** Finds settings of the log that exclude each other, and sections without an effect. */
export function logProblems({
  log,
  pathLogs,
}: {
  readonly log: ParsedKeys<typeof logKeys>;
  readonly pathLogs: readonly ParsedKeys<typeof pathLogKeys>[];
}): readonly LineProblem[] {
  const problems: LineProblem[] = [];
  const at = (key: string, message: string): void => {
    const line = log.lines.get(key)?.[0];
    if (line !== undefined) problems.push({ line, message });
  };
  if (log.values.line !== undefined && log.values.fields.length > 0) {
    at('fields', '`fields` has no effect with `line`: remove one of them');
  }
  const { file } = log.values;
  for (const key of ['rotate_size', 'rotate_age'] as const) {
    if (file === undefined && log.values[key] !== undefined) {
      at(key, `\`${key}\` needs \`file\`, too: standard output has no file to rotate`);
    }
  }
  for (const { name, line, isValid, values } of pathLogs) {
    if (!isValid) continue;
    const title = `[log.${name}]`;
    if (values.path.length === 0) {
      problems.push({ line, message: `${title} needs \`path\`, such as \`path = /health\`` });
    } else if (values.access && values.sample === 1) {
      const message = `${title} has no effect: add \`access = no\` or \`sample = 100\``;
      problems.push({ line, message });
    }
  }
  return problems;
}
