import { shown } from './problem.ts';
import type { Entry } from './scan.ts';
import { substitute, type Environment } from './substitute.ts';
import type { ValueParser } from './values.ts';

/** The value of an entry, or as `refused` a whole message about it. */
export function parseEntry<T>(
  { key, text, cut }: Entry,
  parse: ValueParser<T>,
  env: Environment,
): { readonly value: T } | { readonly refused: string } {
  if (cut) {
    const where = 'ends where a ; or # begins a comment: put the value in quotes';
    return { refused: `the value of ${shown(key)} ${where}` };
  }
  const whole = substitute(text, env);
  if ('refused' in whole) return { refused: `the value of ${shown(key)}: ${whole.refused}` };
  const value = whole.value.trim() === '' ? '' : whole.value;
  const parsed = parse(value);
  if ('value' in parsed) return parsed;
  if (value === '') return { refused: `${shown(key)} is empty: ${parsed.refused}` };
  return {
    refused: `${shown(key)} cannot be ${shown(parsed.part ?? value)}: ${parsed.refused}`,
  };
}

/** The message about a key that was there before, in another line. */
export function twiceMessage(
  key: string,
  { earlierLine, many }: { readonly earlierLine: number; readonly many: boolean },
): string {
  const hint = many ? `; write ${shown(`${key}[]`)} to give several` : '';
  return `${shown(key)} is there already, in line ${earlierLine}${hint}`;
}
