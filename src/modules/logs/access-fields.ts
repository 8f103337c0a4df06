import type { AccessEntry } from '../../core/report/access-entry.ts';
import { escapedText } from '../../core/report/escape.ts';

/** The time of a line, as ISO 8601 and as Apache and nginx write it. */
export interface LineTime {
  readonly iso: string;
  readonly combined: string;
}

type FieldValue = string | number | undefined;

/** The value of each field of the access log; undefined for one that the request does not have. */
const values = {
  time: (_entry, { iso }) => iso,
  date: (_entry, { combined }) => combined,
  address: ({ address }) => address,
  user: ({ details }) => details?.user,
  key: ({ keyId }) => keyId,
  method: ({ method }) => method,
  host: ({ host }) => host,
  target: ({ target }) => target,
  path: ({ target }) => target.split('?', 1)[0],
  query: ({ target }) => (target.includes('?') ? target.slice(target.indexOf('?') + 1) : undefined),
  protocol: ({ httpVersion }) => (httpVersion === '' ? undefined : `HTTP/${httpVersion}`),
  request: requestLine,
  tls: ({ details }) => details?.tls,
  status: ({ status }) => status,
  bytes: ({ bytes }) => bytes,
  bytes_in: ({ details }) => details?.bytesIn,
  ms: ({ durationMs }) => rounded(durationMs),
  source: ({ source }) => source,
  source_ms: ({ details }) => details?.sourceMs && rounded(details.sourceMs),
  rule: ({ source }) => (source.startsWith('rule:') ? source.slice('rule:'.length) : undefined),
  cache: ({ cache }) => cache,
  user_agent: ({ userAgent }) => userAgent,
  referer: ({ referer }) => referer,
  accept: ({ accept }) => accept,
  accept_language: ({ acceptLanguage }) => acceptLanguage,
  purpose: ({ purpose }) => purpose,
  reason: ({ reason }) => reason,
  id: ({ failureId }) => failureId,
  trace: ({ traceId }) => traceId,
  cut: ({ cut }) => (cut ? 'cut' : undefined),
} as const satisfies Readonly<Record<string, (entry: AccessEntry, time: LineTime) => FieldValue>>;

/** The name of a field of the access log. */
export type AccessField = keyof typeof values;

/** The names of all fields, in the order of the reference. */
export const accessFields = Object.keys(values) as readonly AccessField[];

/** The fields that are found only if they are wanted, since that costs more. */
const detailFields: readonly AccessField[] = ['user', 'tls', 'bytes_in', 'source_ms'];

/** Whether one of the fields is in `AccessEntry.details`. */
export function wantsDetails(fields: readonly AccessField[]): boolean {
  return fields.some((name) => detailFields.includes(name));
}

/** A line as a template: its fields in braces, such as `{address} "{request}" {status}`. */
type LineTemplate = string;

const placeholder = /\{([a-z_]{1,32})\}/g;

/** The names in the braces of a template, known or not. */
export function templateFields(template: LineTemplate): readonly string[] {
  return [...template.matchAll(placeholder)].map(([, name = '']) => name);
}

/**
 * Makes the function that writes the line of a template. Values are escaped as those of the format
 * `combined`; an empty one is `-`.
 */
export function templateLine(
  template: LineTemplate,
): (entry: AccessEntry, time: LineTime) => string {
  const parts = template.split(placeholder);
  const readers = parts.map((part, at) => (at % 2 === 1 ? readerOf(part) : undefined));
  return (entry, time) => {
    let line = '';
    for (const [at, part] of parts.entries()) {
      const read = readers[at];
      line += read === undefined ? part : shown(read(entry, time));
    }
    return `${line}\n`;
  };
}

/** The named values of an entry, without those that are undefined or empty. */
export function namedValues(
  fields: readonly AccessField[],
): (entry: AccessEntry, time: LineTime) => readonly (readonly [AccessField, string | number])[] {
  const readers = fields.map((name) => [name, readerOf(name)] as const);
  return (entry, time) =>
    readers.flatMap(([name, read]) => {
      const value = read(entry, time);
      return value === undefined || value === '' ? [] : [[name, value] as const];
    });
}

/** The value of a field in a line of text: escaped, and `-` for an empty one. */
export function shown(value: FieldValue): string {
  if (value === undefined || value === '') return '-';
  return typeof value === 'number' ? String(value) : escapedText(value);
}

function readerOf(name: string): (entry: AccessEntry, time: LineTime) => FieldValue {
  if (!Object.hasOwn(values, name)) throw new TypeError(`no field ${name}`);
  return values[name as AccessField];
}

/** The request line. A malformed one is that which was sent, as far as it is known. */
export function requestLine({ method, target, httpVersion }: AccessEntry): string {
  const sent = method === '-' ? target : `${method} ${target}`;
  return httpVersion === '' ? sent : `${sent} HTTP/${httpVersion}`;
}

function rounded(ms: number): number {
  return Math.round(ms * 100) / 100;
}
