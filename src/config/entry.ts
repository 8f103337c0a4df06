import { addedFieldName, fieldValue } from './headers.ts';
import { customHeadersMax } from './limits.ts';
import { shown, type LineProblem } from './problem.ts';
import type { Entry } from './scan.ts';
import { anyText, type ValueParser } from './values.ts';
import { substitute, type Environment, type Variables } from './variables.ts';

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

/** `[disk.<name>.headers]`: a flat list of name, value, name, value. */
export interface ParsedHeaders {
  readonly name: string;
  readonly line: number;
  readonly fields: readonly string[];
}

/** Parses the lines of a `[disk.<name>.headers]`; `name[]` gives a field several times. */
export function parseHeaders(
  section: { readonly name: string; readonly line: number; readonly entries: readonly Entry[] },
  { env, problems }: { readonly env: Environment; readonly problems: LineProblem[] },
): ParsedHeaders {
  const { name, line, entries } = section;
  const fields: string[] = [];
  const seen = new Map<string, number>();
  for (const entry of entries) {
    const lowerCase = entry.key.toLowerCase();
    const parsed = parseField(entry, seen.get(lowerCase), env);
    if ('value' in parsed) fields.push(entry.key, parsed.value);
    else problems.push({ line: entry.line, message: parsed.refused });
    if (!seen.has(lowerCase)) seen.set(lowerCase, entry.line);
  }
  if (fields.length / 2 > customHeadersMax) {
    const message = `[disk.${name}.headers] holds at most ${customHeadersMax} fields`;
    problems.push({ line, message });
  }
  return { name, line, fields };
}

function parseField(
  entry: Entry,
  earlierLine: number | undefined,
  env: Environment,
): { readonly value: string } | { readonly refused: string } {
  const name = addedFieldName(entry.key);
  if ('refused' in name) return { refused: `${shown(entry.key)}: ${name.refused}` };
  if (earlierLine !== undefined && !entry.repeated) {
    return { refused: twiceMessage(entry.key, { earlierLine, many: true }) };
  }
  return parseEntry(entry, fieldValue, env);
}

const variableName = /^[A-Za-z_]\w{0,63}$/;

/**
 * Parses the lines of `[variables]`: each gives a name a value, unless the environment has one. A
 * value may hold `${NAME}` of the environment.
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
      : { refused: `${shown(key)} is no name: write letters, digits and _` };
    if ('refused' in parsed) problems.push({ line, message: parsed.refused });
    else if (earlierLine !== undefined) {
      problems.push({ line, message: twiceMessage(key, { earlierLine, many: false }) });
    } else variables.set(key, env[key] ?? parsed.value);
  }
  return Object.fromEntries(variables);
}
