import { tokenSource, valueSource } from './syntax.ts';

const chunkLine = new RegExp(`^([0-9A-Fa-f]{1,16})(?:;${tokenSource}(?:=${valueSource})?)*\\r\\n$`);
const fieldName = new RegExp(`^(${tokenSource}):`);

/**
 * Fields that change how a request is framed, routed, authenticated or read, and so mean nothing
 * behind its content (RFC 9110 §6.5.1).
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
 * The size of a chunk in bytes, from the line before it with its CR LF; undefined where the line is
 * not a plain size with well-formed extensions (RFC 9112 §7.1).
 */
export function chunkSize(line: string): number | undefined {
  const [, digits] = chunkLine.exec(line) ?? [];
  if (digits === undefined) return undefined;
  const size = Number.parseInt(digits, 16);
  return Number.isSafeInteger(size) ? size : undefined;
}

/** Why a line of a trailer section cannot stand there, as a sentence; undefined where it can. */
export function refusedTrailer(line: string): string | undefined {
  if (line === '\r\n') return undefined;
  const [, name] = fieldName.exec(line) ?? [];
  if (name === undefined) return 'A trailer field is not a name, a colon and a value.';
  return refusedNames.has(name.toLowerCase())
    ? `The field ${name} may not come behind the content.`
    : undefined;
}
