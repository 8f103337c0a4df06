import { tokenSource, valueSource } from '../syntax.ts';

const chunkLine = new RegExp(`^([0-9A-Fa-f]{1,16})(?:;${tokenSource}(?:=${valueSource})?)*\\r\\n$`);
const fieldName = new RegExp(`^(${tokenSource}):`);

/**
 * Fields that a trailer section must not have (RFC 9110 §6.5.1): they change the framing, routing,
 * authentication or meaning of a request.
 */
const refusedNames: ReadonlySet<string> = new Set(
  (
    'apikey authorization cache-control connection content-encoding content-length ' +
    'content-location content-range content-type cookie expect forwarded host if-match ' +
    'if-modified-since if-none-match if-range if-unmodified-since keep-alive max-forwards ' +
    'proxy-authorization proxy-connection range set-cookie te trailer transfer-encoding upgrade ' +
    'via x-forwarded-for x-forwarded-host x-forwarded-proto'
  ).split(' '),
);

/**
 * Parses the line before a chunk, with its CR LF, and returns the size of the chunk in bytes;
 * undefined unless the line is a plain size with well-formed extensions (RFC 9112 §7.1).
 */
export function chunkSize(line: string): number | undefined {
  const [, digits] = chunkLine.exec(line) ?? [];
  if (digits === undefined) return undefined;
  const size = Number.parseInt(digits, 16);
  return Number.isSafeInteger(size) ? size : undefined;
}

/**
 * Returns the reason against a line of a trailer section, as a sentence; undefined if it is
 * allowed.
 */
export function trailerRefusal(line: string): string | undefined {
  if (line === '\r\n') return undefined;
  const [, name] = fieldName.exec(line) ?? [];
  if (name === undefined) return 'A trailer field is not a name, a colon and a value.';
  return refusedNames.has(name.toLowerCase())
    ? `The field ${name} is not allowed in a trailer section.`
    : undefined;
}
