/** Escapes a quoted text as nginx does: `"`, `\` and all but printable ASCII become `\xHH`. */
export function escapedText(text: string): string {
  return plain.test(text) ? text : text.replace(notPrintable, octets);
}

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/;
const notPrintable = /[^\x20\x21\x23-\x5b\x5d-\x7e]/gu;

/** Header text has one character per octet (latin1); any other character is UTF-8. */
function octets(character: string): string {
  const bytes = Buffer.from(character, character > '\xff' ? 'utf8' : 'latin1');
  return bytes.reduce((text, byte) => `${text}\\x${hex(byte)}`, '');
}

function hex(byte: number): string {
  return byte.toString(16).toUpperCase().padStart(2, '0');
}

/** Text of a client as JSON, without line breaks and control sequences of terminals. */
export function quoted(text: string): string {
  return plain.test(text) ? `"${text}"` : withoutControls(JSON.stringify(text));
}

/** Text of a client without line breaks and control sequences of terminals. */
export function printable(text: string): string {
  return plain.test(text) ? text : quoted(text).slice(1, -1);
}

/**
 * A text with each control character and line break as JSON escapes it. JSON itself leaves some of
 * them as they are: DEL and C1, which terminals obey, U+2028 and U+2029, and those that turn the
 * direction of a text, so that it reads as another one. JSON that is escaped so has the same value.
 */
export function withoutControls(text: string): string {
  return text.replace(control, escaped);
}

/** The same for a text of several lines, which may have tabs. */
export function linesWithoutControls(text: string): string {
  return text.replace(controlInLines, escaped);
}

const control = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;
const controlInLines = /(?![\n\t])[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
