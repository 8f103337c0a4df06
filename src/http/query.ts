import { isUtf8 } from 'node:buffer';

/** A parameter of a query or form. */
export interface QueryParameter {
  readonly name: string;
  readonly value: string;
  /** Whether name and value are UTF-8; if not, U+FFFD stands for what is not. */
  readonly isUtf8: boolean;
}

/**
 * The parameters of a query or form, in their order, as URLSearchParams reads them. In Node that
 * throws and catches an error for each text that decodeURIComponent does not take, such as `%ff`:
 * a form of 256 KiB takes it a second.
 */
export function parseQuery(text: string): readonly QueryParameter[] {
  const parameters: QueryParameter[] = [];
  for (const pair of text.split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const name = decode(at === -1 ? pair : pair.slice(0, at));
    const value = decode(at === -1 ? '' : pair.slice(at + 1));
    const isWhole = name.isUtf8 && value.isUtf8;
    parameters.push({ name: name.text, value: value.text, isUtf8: isWhole });
  }
  return parameters;
}

/** The first value of a parameter, and the query without all of that name; undefined for none. */
export function takeParameter(
  query: string,
  name: string,
): { readonly value: string; readonly rest: string } | undefined {
  const parameters = parseQuery(query);
  const found = parameters.find((one) => one.name === name);
  if (found === undefined) return undefined;
  const others = parameters.filter((one) => one.name !== name);
  const rest = new URLSearchParams(others.map((one): [string, string] => [one.name, one.value]));
  return { value: found.value, rest: rest.toString() };
}

function decode(encoded: string): { readonly text: string; readonly isUtf8: boolean } {
  const spaced = encoded.replaceAll('+', ' ');
  if (!spaced.includes('%')) return { text: spaced.toWellFormed(), isUtf8: true };
  const octets = percentDecoded(Buffer.from(spaced));
  return { text: octets.toString(), isUtf8: isUtf8(octets) };
}

/** Percent-decodes in place (RFC 3986 §2.1); a `%` without two hexadecimal digits stays. */
function percentDecoded(bytes: Buffer): Buffer {
  let length = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    const high = byte === percent ? hexDigit(bytes[at + 1]) : -1;
    const low = high === -1 ? -1 : hexDigit(bytes[at + 2]);
    bytes[length] = low === -1 ? byte : 16 * high + low;
    length += 1;
    if (low !== -1) at += 2;
  }
  return bytes.subarray(0, length);
}

const percent = 0x25;

/** The value of a hexadecimal digit in ASCII; -1 for anything else. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
