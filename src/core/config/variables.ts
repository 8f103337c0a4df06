import { quoted } from './problem.ts';
import type { Parsed } from './values.ts';

/** The names and values of `[variables]`. */
export type Variables = Readonly<Record<string, string>>;

/** Replaces `${NAME}` in a JSON text by the values of variables, as JSON escapes in ASCII. */
export function substituteInJson(json: string, variables: Variables): string {
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

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** C0 and DEL, except tab. */
const notInValue = /[^\t\x20-\x7e\x80-\uffff]/;

/**
 * Replaces each `${NAME}` in a value by the variable NAME, without replacing again in the result;
 * `$${` is a literal `${`. Refuses variables that are not set, and control characters in the
 * result.
 */
export function substitute(text: string, env: Environment): Parsed<string> {
  return replaceVariables(text, env, (value) => value, noneKept);
}

/**
 * As substitute, but leaves the variables of requests for which `isKept` holds, and `$${`, as they
 * are: the result is a template, and the values in it are escaped.
 */
export function substituteInTemplate(
  text: string,
  env: Environment,
  isKept: (name: string) => boolean,
): Parsed<string> {
  return replaceVariables(text, env, escapeVariables, isKept);
}

const noneKept = (): boolean => false;

function replaceVariables(
  text: string,
  env: Environment,
  write: (value: string) => string,
  isKept: (name: string) => boolean,
): Parsed<string> {
  let missing: string | undefined;
  const value = text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (whole, name: string | undefined) => {
    if (name === undefined) return isKept === noneKept ? '${' : whole;
    if (!whole.endsWith('}')) missing ??= whole;
    else if (isKept(name)) return whole;
    const replacement = Object.hasOwn(env, name) ? env[name] : undefined;
    if (replacement === undefined) missing ??= whole;
    return write(replacement ?? '');
  });
  if (missing !== undefined) {
    return {
      refused: `${quoted(missing)} is not set: add it to [variables] or to the environment`,
    };
  }
  if (notInValue.test(value)) return { refused: 'it contains a control character' };
  if (!value.isWellFormed()) return { refused: 'it contains half a character (a lone surrogate)' };
  return { value };
}

/** Escapes a text so that substitute returns it unchanged. */
export function escapeVariables(text: string): string {
  // A function, because `$$` in a replacement text means one `$`.
  return text.replaceAll('${', () => '$${');
}
