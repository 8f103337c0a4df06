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
  return plain.test(text) ? `"${text}"` : JSON.stringify(text).replace(unescapedControls, escaped);
}

/** Text of a client without line breaks and control sequences of terminals. */
export function printable(text: string): string {
  return plain.test(text) ? text : quoted(text).slice(1, -1);
}

/** Control characters and line breaks that JSON does not escape: DEL, C1, U+2028, U+2029. */
const unescapedControls = /[\x7f-\x9f\u2028\u2029]/g;

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
