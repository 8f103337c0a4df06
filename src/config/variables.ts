import { shown } from './problem.ts';
import type { Parsed } from './values.ts';

/** Values by the names that `${NAME}` stands for. */
export type Variables = Readonly<Record<string, string>>;

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

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** C0 and DEL, but not tab. */
const notInValue = /[^\t\x20-\x7e\x80-\uffff]/;

/**
 * The text of a value with each `${NAME}` replaced by the environment's NAME, once, and `$${`
 * standing for a literal `${`. Refused when a variable is not set, or when what comes out is not
 * one line of text.
 */
export function substitute(text: string, env: Environment): Parsed<string> {
  let missing: string | undefined;
  const value = text.replace(/\$\$\{|\$\{([^}]*)\}?/g, (whole, name: string | undefined) => {
    if (name === undefined) return '${';
    const replacement = whole.endsWith('}') && Object.hasOwn(env, name) ? env[name] : undefined;
    if (replacement === undefined) missing ??= whole;
    return replacement ?? '';
  });
  if (missing !== undefined) {
    return { refused: `there is no environment variable for ${shown(missing)}` };
  }
  if (notInValue.test(value)) return { refused: 'it holds a control character' };
  if (!value.isWellFormed()) return { refused: 'it holds half a character (a lone surrogate)' };
  return { value };
}

/** A text written so that nothing in it is taken for a variable. */
export function unsubstituted(text: string): string {
  // A function, as `$$` in a replacement text would stand for one `$`.
  return text.replaceAll('${', () => '$${');
}
