/** A value at the top level of a JSON text: where it stands, and how deep its containers nest. */
export interface JsonMember {
  readonly start: number;
  readonly end: number;
  /** 0 for a string, a number or a literal; 1 for an array or object without others in it. */
  readonly depth: number;
}

/** How a JSON text is built, as far as that can be told without making its values. */
export interface JsonOutline {
  /** How deep arrays and objects nest. */
  readonly depth: number;
  /** How many values there are, those in arrays and objects included. */
  readonly values: number;
  /** The members of the outermost object by name; of those with the same name the last one. */
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
 * Reads the outline of a JSON text in UTF-8, in one pass and without making its values: JSON.parse
 * of an untrusted text takes a second and a hundred times the memory where it nests deeply. `names`
 * are the members to look for, in ASCII. For a text that is not JSON the outline says nothing; that
 * is for JSON.parse to find out.
 */
export function outlineJson(bytes: Buffer, names: readonly string[]): JsonOutline {
  const members = new Map<string, JsonMember>();
  const nameBytesMax = escapedCharacters * Math.max(...names.map(({ length }) => length));
  let isObject = false;
  let depth = 0;
  let deepest = 0;
  let values = 1;
  // Of the member that is being read: the index behind its colon, 0 before that.
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
  return { depth: deepest, values, members };
}

/** The index behind the string that begins at an index. */
function endOfString(bytes: Buffer, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at + 1;
}

/** A name takes at most six characters for each of its own: `\u0061`. */
const escapedCharacters = 6;

/** The name that the JSON string between two indexes stands for, if it is one of those wanted. */
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
