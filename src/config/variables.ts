import { parseEntry, twiceMessage } from './entry.ts';
import { shown, type LineProblem } from './problem.ts';
import type { Entry } from './scan.ts';
import type { Environment } from './substitute.ts';
import { anyText } from './values.ts';

/** Values by the names that `${NAME}` stands for. */
export type Variables = Readonly<Record<string, string>>;

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

/** A text of JSON in which `${NAME}` of each variable is replaced by its value, in ASCII. */
export function withVariables(json: string, variables: Variables): string {
  return Object.entries(variables).reduce(
    (text, [name, value]) => text.replaceAll(`\${${name}}`, () => asciiJson(value).slice(1, -1)),
    json,
  );
}

function asciiJson(value: string): string {
  return JSON.stringify(value).replace(
    /[\x7f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
