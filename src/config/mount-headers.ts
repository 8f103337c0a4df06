import { customHeadersMax } from './limits.ts';
import { parseEntry, twiceMessage } from './entry.ts';
import { addedFieldName, fieldValue } from './headers.ts';
import { shown, type LineProblem } from './problem.ts';
import type { Entry } from './scan.ts';
import type { Environment } from './substitute.ts';

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
