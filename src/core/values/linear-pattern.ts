import { setFlagsFromString } from 'node:v8';

const patternCharactersMax = 1_000;

let isEnabled = false;

/**
 * Compiles a `pattern` of a schema or of the ini file with V8's engine that matches in linear time:
 * a schema comes from outside, and with the usual engine a pattern such as `(a+)+$` could block the
 * server. Throws a SyntaxError for a pattern that has no such form.
 */
export function linearPattern(pattern: string): Pick<RegExp, 'test' | 'exec'> {
  return compile(pattern, '');
}

/** Compiles a pattern that is sought again and again in lines. Throws as linearPattern does. */
export function linearSearch(pattern: string): RegExp {
  return compile(pattern, 'gm');
}

function compile(pattern: string, flags: string): RegExp {
  if (pattern.length > patternCharactersMax) {
    throw new SyntaxError(`a pattern has at most ${patternCharactersMax} characters`);
  }
  if (!isEnabled) setFlagsFromString('--enable-experimental-regexp-engine');
  isEnabled = true;
  try {
    // oxlint-disable-next-line eslint/no-invalid-regexp -- V8 has the flag, ECMAScript does not
    return new RegExp(pattern, `${flags}l`);
  } catch (error) {
    if (!(error instanceof SyntaxError) || !error.message.includes('linear time')) throw error;
    throw new SyntaxError(
      `${pattern.slice(0, shownCharacters)} cannot be matched in linear time: leave out ` +
        'lookaround, back-references, \\p{…} and large repetitions',
      { cause: error },
    );
  }
}

/** Compiles a pattern for paths, most of which it does not match. Throws as linearPattern does. */
export function pathPattern(pattern: string): Pick<RegExp, 'exec'> {
  const compiled = linearPattern(pattern);
  const prefix = literalPrefix(pattern);
  // A comparison of texts takes a tenth of the time.
  return { exec: (path) => (path.startsWith(prefix) ? compiled.exec(path) : null) };
}

/** Characters that every match begins with. */
function literalPrefix(pattern: string): string {
  if (pattern.includes('|')) return '';
  const [, literal = '', next = ''] = /^\^([\w/-]*)(.?)/.exec(pattern) ?? [];
  // A quantifier belongs to the last character.
  return /[*+?{]/.test(next) ? literal.slice(0, -1) : literal;
}

const shownCharacters = 80;
