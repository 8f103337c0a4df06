import { isUtf8 } from 'node:buffer';
import { breadcrumbTokenPrefix } from '../values/key.ts';

/** A parameter of a query or form. */
export interface QueryParameter {
  readonly name: string;
  readonly value: string;
  /** Whether name and value are valid UTF-8; U+FFFD replaces invalid bytes. */
  readonly isUtf8: boolean;
}

/**
 * Parses the parameters of a query or form, in order, with the same result as URLSearchParams. In
 * Node, URLSearchParams throws and catches an error for each text that decodeURIComponent rejects,
 * such as `%ff`: a form of 256 KiB takes it a second.
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

/**
 * Returns the parameters of a query by name, a list for a name that occurs more than once, in one
 * pass: a client may send thousands of names.
 */
export function parametersOf(query: string): Record<string, string | string[]> {
  const parameters = new Map<string, string | string[]>();
  for (const { name, value } of parseQuery(query)) {
    const earlier = parameters.get(name);
    if (earlier === undefined) parameters.set(name, value);
    else if (typeof earlier === 'string') parameters.set(name, [earlier, value]);
    else earlier.push(value);
  }
  return Object.fromEntries(parameters);
}

/**
 * Returns the first value of a parameter, and the query without all parameters of that name;
 * undefined if there is none.
 */
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

/**
 * Returns the token of a breadcrumb in the parameter `t`, and the query without it, so that no
 * target gets it; undefined if there is none: other values of `t` are for the target.
 */
export function takeBreadcrumbToken(
  query: string,
): { readonly value: string; readonly rest: string } | undefined {
  if (!query.includes(breadcrumbTokenPrefix)) return undefined;
  const isToken = ({ name, value }: QueryParameter): boolean =>
    name === 't' && value.startsWith(breadcrumbTokenPrefix);
  const parameters = parseQuery(query);
  const found = parameters.find(isToken);
  if (found === undefined) return undefined;
  const others = parameters.filter((one) => !isToken(one));
  const rest = new URLSearchParams(others.map((one): [string, string] => [one.name, one.value]));
  return { value: found.value, rest: rest.toString() };
}

/** A parameter of a query as it was sent. */
interface QueryPair {
  readonly name: string;
  readonly value: string;
  /** Both together. */
  readonly pair: string;
}

/** Returns the parameters of a query as they were sent, percent-encoded. */
export function queryPairs(query: string): readonly QueryPair[] {
  if (query === '') return [];
  return query.split('&').map((pair) => {
    const at = pair.indexOf('=');
    return at === -1
      ? { name: pair, value: '', pair }
      : { name: pair.slice(0, at), value: pair.slice(at + 1), pair };
  });
}

/** A value of a query, as it was sent, as a part of a path. */
export function asPathValue(value: string): string {
  return value.replace(/[?\\"<>^`{|}]/g, encodeURIComponent);
}

function decode(encoded: string): { readonly text: string; readonly isUtf8: boolean } {
  const spaced = encoded.replaceAll('+', ' ');
  if (!spaced.includes('%')) return { text: spaced.toWellFormed(), isUtf8: true };
  const octets = percentDecoded(Buffer.from(spaced));
  return { text: octets.toString(), isUtf8: isUtf8(octets) };
}

/**
 * Percent-decodes in place (RFC 3986 §2.1); leaves a `%` without two hexadecimal digits unchanged.
 */
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

/** Returns the value of a hexadecimal digit in ASCII; -1 for any other byte. */
function hexDigit(byte = 0): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const letter = byte | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}
