import { withoutUsers } from '../values/url-user.ts';
import { placeOf } from './include.ts';
import { quoted, type LineProblem } from './problem.ts';
import type { Entry } from './scan.ts';
import { anyText, type ValueParser } from './values.ts';
import { substitute, type Environment, type Variables } from './variables.ts';

/** Parses the value of an entry; `refused` is a complete message about the line. */
export function parseEntry<T>(
  { key, text, isCut }: Entry,
  parse: ValueParser<T>,
  env: Environment,
): { readonly value: T } | { readonly refused: string } {
  if (isCut) {
    const why = 'ends at a ; or #, which begins a comment: put the value in quotes';
    return { refused: `the value of ${quoted(key)} ${why}` };
  }
  const whole = substitute(text, env);
  if ('refused' in whole) return { refused: `the value of ${quoted(key)}: ${whole.refused}` };
  const value = whole.value.trim() === '' ? '' : whole.value;
  const parsed = parse(value);
  if ('value' in parsed) return parsed;
  if (value === '') return { refused: `${quoted(key)} is empty: ${parsed.refused}` };
  const shown = quoted(withoutUsers(parsed.part ?? value));
  return { refused: `${quoted(key)} cannot be ${shown}: ${parsed.refused}` };
}

/** The message about a key that an earlier line has set already. */
export function duplicateMessage(
  key: string,
  { earlierLine, isList }: { readonly earlierLine: number; readonly isList: boolean },
): string {
  const hint = isList ? `; write ${quoted(`${key}[]`)} for several values` : '';
  // Only the lines of one file make a section.
  return `line ${placeOf(earlierLine).line} already sets ${quoted(key)}${hint}`;
}

const variableName = /^[A-Za-z_]\w{0,63}$/;

/**
 * Parses the lines of `[variables]`. A variable of the environment with the same name takes
 * precedence. A value may contain `${NAME}` of the environment.
 */
export function parseVariables(
  entries: readonly Entry[],
  { env, problems }: { readonly env: Environment; readonly problems: LineProblem[] },
): Variables {
  const variables = new Map<string, string>();
  const seen = new Map<string, number>();
  for (const entry of entries) {
    const { key, line } = entry;
    const earlierLine = seen.get(key);
    seen.set(key, earlierLine ?? line);
    const parsed = variableName.test(key)
      ? parseEntry(entry, anyText, env)
      : { refused: `${quoted(key)} is not a valid name: use letters, digits and _` };
    if ('refused' in parsed) problems.push({ line, message: parsed.refused });
    else if (earlierLine !== undefined) {
      problems.push({ line, message: duplicateMessage(key, { earlierLine, isList: false }) });
    } else variables.set(key, env[key] ?? parsed.value);
  }
  return Object.fromEntries(variables);
}
