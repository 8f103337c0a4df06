import { Failure } from '../failure.ts';
import { type JsonOutline, outlineJson } from './json-outline.ts';
import {
  isExactNumber,
  numberDigitsMax,
  numberExponentMax,
  numberOf,
  parseNumbers,
} from './exact-number.ts';

/**
 * Parses JSON; numbers that doubles do not hold become an ExactNumber. Throws a SyntaxError, or
 * `invalid` with the path of a number that has too many digits.
 */
export function parseJson(text: string): unknown {
  const refused: string[] = [];
  const value = parseNumbers(text, (number) => refused.push(number));
  if (refused.length > 0) throw refusedNumber(value);
  return value;
}

/**
 * Parses JSON of a caller, whose outline has been read before; otherwise as parseJson. Throws
 * `invalid` with the path of a member that occurs twice in one object (RFC 7493 §2.3): parsers
 * differ in the value that they take, so that what one has checked is not what another one uses.
 */
export function parseDistinct(
  text: string,
  { names }: Pick<JsonOutline, 'names'> = outlineJson(Buffer.from(text), []),
): unknown {
  const value = parseJson(text);
  requireDistinct(value, { names }, () => text);
  return value;
}

/** Throws as parseDistinct, for a value, the outline of its text, and the text itself. */
export function requireDistinct(
  value: unknown,
  { names }: Pick<JsonOutline, 'names'>,
  text: () => string,
): void {
  if (membersIn(value) === names) return;
  const field = readablePath(repeatedMember(text()));
  throw new Failure('invalid', `${field} is twice in one object. Send each member once.`, {
    field,
  });
}

/** The number of members of all objects in a value. */
function membersIn(value: unknown): number {
  if (typeof value !== 'object' || value === null || isExactNumber(value)) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const one of value) count += membersIn(one);
    return count;
  }
  for (const name in value) count += 1 + membersIn((value as Record<string, unknown>)[name]);
  return count;
}

/** An array or object that a scan of a JSON text is in. */
interface OpenValue {
  /** The names in an object so far; undefined for an array. */
  readonly names: Set<string> | undefined;
  /** The name or index of the current member. */
  member: string | number;
  isBeforeName: boolean;
}

/** The path of the first member of a valid JSON text whose object has another one of its name. */
function repeatedMember(text: string): string {
  const open: OpenValue[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const inside = open.at(-1);
    switch (text.charAt(at)) {
      case '"': {
        const end = endOfString(text, at);
        if (inside?.isBeforeName === true && inside.names !== undefined) {
          inside.member = JSON.parse(text.slice(at, end)) as string;
          inside.isBeforeName = false;
          if (inside.names.has(inside.member)) return open.map(({ member }) => member).join('.');
          inside.names.add(inside.member);
        }
        at = end - 1;
        break;
      }
      case '{':
        open.push({ names: new Set(), member: '', isBeforeName: true });
        break;
      case '[':
        open.push({ names: undefined, member: 0, isBeforeName: false });
        break;
      case ',':
        if (typeof inside?.member === 'number') inside.member += 1;
        else if (inside !== undefined) inside.isBeforeName = true;
        break;
      case '}':
      case ']':
        open.pop();
        break;
    }
  }
  return '';
}

/** The index after the string that begins at an index. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/** The path of a member below the input of an operation, for a message. */
function readablePath(path: string): string {
  return path.replace(/^v\./, '').slice(0, 200).toWellFormed();
}

/** The failure for the first number in a value that is too long to be kept. */
export function refusedNumber(value: unknown): Failure {
  const waiting: { readonly path: string; readonly value: unknown }[] = [{ path: '', value }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path, value: member } = next;
    if (isExactNumber(member)) {
      if (numberOf(member.rawJSON) !== undefined) continue;
      return tooManyDigits(readablePath(path));
    }
    if (typeof member !== 'object' || member === null) continue;
    for (const [name, one] of Object.entries(member)) {
      waiting.push({ path: path === '' ? name : `${path}.${name}`, value: one });
    }
  }
  return tooManyDigits('');
}

/** The failure for a number with more digits than are kept. */
function tooManyDigits(field: string): Failure {
  const message =
    `${field === '' ? 'The JSON' : field} has a number with more than ${numberDigitsMax} digits, ` +
    `or with an exponent beyond ${numberExponentMax}. Send it as a text.`;
  return new Failure('invalid', message, field === '' ? {} : { field });
}
