/** A token of RFC 9110 §5.6.2, as the source of a regular expression. */
export const tokenSource = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

const quotedSource =
  '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t \\x21-\\x7e\\x80-\\xff])*"';

/** A token or quoted-string (RFC 9110 §5.6.4), as the source of a regular expression. */
export const valueSource = `(?:${tokenSource}|${quotedSource})`;

/**
 * Removes the spaces and tabs around a text (OWS, RFC 9110 §5.6.3) in linear time, unlike `/\s+$/`.
 */
export function trimOws(text: string): string {
  let first = 0;
  let end = text.length;
  while (first < end && isOws(text.charCodeAt(first))) first += 1;
  while (end > first && isOws(text.charCodeAt(end - 1))) end -= 1;
  return first === 0 && end === text.length ? text : text.slice(first, end);
}

/**
 * Splits a list (RFC 9110 §5.6.1) into its trimmed elements, without empty ones; ignores separators
 * in quoted-strings. Returns undefined if a quoted-string does not end.
 */
export function splitList(text: string, separator: ',' | ';'): readonly string[] | undefined {
  const elements = text.includes('"') ? splitQuoted(text, separator) : text.split(separator);
  return elements?.map(trimOws).filter((element) => element !== '');
}

/** Returns the text of a token or quoted-string. */
export function unquote(value: string): string {
  return value.startsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}

function splitQuoted(text: string, separator: string): string[] | undefined {
  const elements: string[] = [];
  let start = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') quoted = !quoted;
    else if (quoted && character === '\\') at += 1;
    else if (!quoted && character === separator) {
      elements.push(text.slice(start, at));
      start = at + 1;
    }
  }
  if (quoted) return undefined;
  elements.push(text.slice(start));
  return elements;
}

function isOws(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
