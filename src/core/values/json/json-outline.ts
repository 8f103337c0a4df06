/** A member of the outermost object of a JSON text: the position and depth of its value. */
export interface JsonMember {
  readonly start: number;
  readonly end: number;
  /** 0 for a string, a number or a literal; 1 for an array or object without nested ones. */
  readonly depth: number;
}

/** The structure of a JSON text, found without creating its values. */
export interface JsonOutline {
  /** How deep arrays and objects nest. */
  readonly depth: number;
  /** The number of values, including those in arrays and objects. */
  readonly values: number;
  /** The number of names of members in all objects. */
  readonly names: number;
  /** The members of the outermost object by name; of several with one name, the last. */
  readonly members: ReadonlyMap<string, JsonMember>;
}

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/**
 * Reads the outline of a JSON text in UTF-8 in one pass, without creating its values: JSON.parse
 * can take a second, and a hundred times the memory, for a text that nests deeply. `names` are the
 * members to find, in ASCII. It does not validate the text: for invalid JSON, the result has no
 * meaning, and JSON.parse reports the error.
 */
export function outlineJson(bytes: Buffer, names: readonly string[]): JsonOutline {
  const members = new Map<string, JsonMember>();
  const nameBytesMax = escapedCharacters * Math.max(...names.map(({ length }) => length));
  let isObject = false;
  let depth = 0;
  let deepest = 0;
  let values = 1;
  let namesFound = 0;
  // The index after the colon of the current member; 0 before the colon.
  let start = 0;
  let name: string | undefined;
  let memberDepth = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === quote) {
      const end = endOfString(bytes, at);
      if (depth === 1 && isObject && start === 0 && end - at - 2 <= nameBytesMax) {
        name = wantedName(bytes, at, end, names);
      }
      at = end - 1;
    } else if (byte === openBracket || byte === openBrace) {
      if (depth === 0) isObject = byte === openBrace;
      else if (depth > memberDepth) memberDepth = depth;
      depth += 1;
      values += 1;
      if (depth > deepest) deepest = depth;
    } else if (byte === colon) {
      namesFound += 1;
      if (depth === 1) start = at + 1;
    } else if (byte === comma || byte === closeBracket || byte === closeBrace) {
      if (depth === 1) {
        if (name !== undefined) members.set(name, { start, end: at, depth: memberDepth });
        [name, start, memberDepth] = [undefined, 0, 0];
      }
      if (byte === comma) values += 1;
      else depth -= 1;
    }
  }
  return { depth: deepest, values, names: namesFound, members };
}

/** The index after the string that begins at an index. */
export function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at + 1;
}

/** JSON can write one character as six: `\u0061`. */
const escapedCharacters = 6;

/** The name in the JSON string between two indexes, if it is one of `names`. */
function wantedName(
  bytes: Buffer,
  start: number,
  end: number,
  names: readonly string[],
): string | undefined {
  for (let at = start; at < end; at += 1) {
    if (bytes[at] === backslash) return unescapedName(bytes.toString('utf8', start, end), names);
  }
  return names.find((name) => {
    if (name.length !== end - start - 2) return false;
    for (let at = 0; at < name.length; at += 1) {
      if (name.charCodeAt(at) !== bytes[start + 1 + at]) return false;
    }
    return true;
  });
}

function unescapedName(text: string, names: readonly string[]): string | undefined {
  try {
    return names.find((name) => name === JSON.parse(text));
  } catch {
    return undefined;
  }
}
