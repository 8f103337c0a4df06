import { Failure } from '../../values/failure.ts';
import { headerFieldsMax } from '../limits.ts';
import type { FieldList } from '../reply.ts';
import type { Fields } from '../request.ts';
import { tokenSource } from '../syntax.ts';

const namePattern = new RegExp(`^${tokenSource}$`);
/** Visible characters, space, tab and obs-text (RFC 9110 §5.5). */
const valuePattern = /^[\t\x20-\x7e\x80-\xff]*$/;

/** Fields that must not occur twice, not even with equal values (RFC 9112 §3.2, §6.3). */
const onceOnly: ReadonlySet<string> = new Set(['host', 'content-length', 'transfer-encoding']);

/** The usual spellings of common names; `lowerCaseName` neither checks nor converts these. */
const commonNames: ReadonlyMap<string, string> = new Map(
  (
    'Host Connection User-Agent Accept Accept-Encoding Accept-Language Cache-Control Cookie ' +
    'Origin Pragma Referer Content-Type Content-Length Transfer-Encoding Authorization ' +
    'If-None-Match If-Modified-Since If-Range Range Upgrade-Insecure-Requests Sec-Fetch-Dest ' +
    'Sec-Fetch-Mode Sec-Fetch-Site Sec-Fetch-User Sec-CH-UA Sec-CH-UA-Mobile Sec-GPC Priority ' +
    'Sec-CH-UA-Platform X-Forwarded-For X-Forwarded-Proto X-Forwarded-Host X-Real-IP Forwarded ' +
    'Via DNT apikey'
  )
    .split(' ')
    .flatMap((name) => [
      [name, name.toLowerCase()],
      [name.toLowerCase(), name.toLowerCase()],
    ]),
);

/**
 * Parses a flat list of name, value, … into fields by lower-case name (RFC 9110 §5.1 to §5.3).
 * Throws `invalid` for a name that is not a token, a value with a control character, or a second
 * Host, Content-Length or Transfer-Encoding; `too_large` for more than headerFieldsMax.
 */
export function readFields(rawFields: readonly string[]): Fields {
  if (rawFields.length > 2 * headerFieldsMax) {
    throw new Failure('too_large', `The request has more than ${headerFieldsMax} header fields.`, {
      status: 431,
      limit: 'header_size',
    });
  }
  const fields = Object.create(null) as Record<string, string | undefined>;
  for (let at = 0; at < rawFields.length; at += 2) {
    const name = lowerCaseName(rawFields[at] ?? '');
    const value = rawFields[at + 1] ?? '';
    if (!valuePattern.test(value)) {
      throw new Failure('invalid', `The field ${name} contains a control character.`, {
        field: name,
      });
    }
    const before = fields[name];
    fields[name] = before === undefined ? value : joined(name, before, value);
  }
  return fields;
}

/**
 * Throws `invalid` for a request whose length two recipients could read differently (RFC 9112 §6):
 * Content-Length together with Transfer-Encoding, a Content-Length that is not a plain number, a
 * transfer coding other than exactly `chunked`, and any transfer coding in HTTP/1.0.
 */
export function requireFraming(fields: Fields, httpVersion: string): void {
  const length = fields['content-length'];
  const coding = fields['transfer-encoding'];
  if (
    length !== undefined &&
    (!/^(?:0|[1-9]\d*)$/.test(length) || !Number.isSafeInteger(Number(length)))
  ) {
    throw new Failure('invalid', 'Content-Length is not a number of bytes.', {
      field: 'content-length',
    });
  }
  if (coding === undefined) return;
  const field = 'transfer-encoding';
  if (length !== undefined) {
    throw new Failure('invalid', 'Content-Length and Transfer-Encoding exclude each other.', {
      field,
    });
  }
  if (coding.toLowerCase() !== 'chunked') {
    throw new Failure('invalid', 'Transfer-Encoding may only be chunked.', { field });
  }
  if (httpVersion === '1.0') {
    throw new Failure('invalid', 'HTTP/1.0 has no Transfer-Encoding.', { field });
  }
}

/**
 * Throws `invalid` for an expectation that the server does not support (RFC 9110 §10.1.1). HTTP/1.0
 * has no expectations.
 */
export function requireExpectation({ expect }: Fields, httpVersion: string): void {
  if (expect === undefined || httpVersion === '1.0' || /^100-continue$/i.test(expect)) return;
  throw new Failure('invalid', 'The server supports no expectation but 100-continue.', {
    field: 'expect',
    status: 417,
  });
}

/**
 * Returns a lower-case field name with `_` for each character that CGI, WSGI and PHP map to `_` in
 * variable names (RFC 3875 §4.1.18): they cannot distinguish `x-user`, `x_user` and `x.user`.
 */
export function cgiName(name: string): string {
  return name.replaceAll(/[^a-z0-9]/g, '_');
}

/** Returns a list of fields without some names, in any spelling that CGI does not distinguish. */
export function withoutSpellings(fields: FieldList, names: readonly string[]): FieldList {
  if (names.length === 0) return fields;
  const left = new Set(names.map(cgiName));
  return fields.filter((_, at) => !left.has(cgiName((fields[at - (at % 2)] ?? '').toLowerCase())));
}

function lowerCaseName(name: string): string {
  const common = commonNames.get(name);
  if (common !== undefined) return common;
  if (!namePattern.test(name)) {
    throw new Failure('invalid', 'A header field has a name that is not a token.');
  }
  return name.toLowerCase();
}

function joined(name: string, before: string, value: string): string {
  if (onceOnly.has(name)) {
    throw new Failure('invalid', `The field ${name} must not occur more than once.`, {
      field: name,
    });
  }
  return before + (name === 'cookie' ? '; ' : ', ') + value;
}
