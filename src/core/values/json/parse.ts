import { Failure } from '../failure.ts';
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

/** The failure for the first number in a value that is too long to be kept. */
export function refusedNumber(value: unknown): Failure {
  const waiting: { readonly path: string; readonly value: unknown }[] = [{ path: '', value }];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path, value: member } = next;
    if (isExactNumber(member)) {
      if (numberOf(member.rawJSON) !== undefined) continue;
      return tooManyDigits(path.replace(/^v\./, '').slice(0, 200).toWellFormed());
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
