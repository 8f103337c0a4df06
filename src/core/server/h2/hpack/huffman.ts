/** The static table (RFC 7541 Appendix A), flat: name, value, …; the first entry has index 1. */
export const staticTable: readonly string[] = [
  ...[':authority', '', ':method', 'GET', ':method', 'POST', ':path', '/', ':path', '/index.html'],
  ...[':scheme', 'http', ':scheme', 'https', ':status', '200', ':status', '204', ':status', '206'],
  ...[':status', '304', ':status', '400', ':status', '404', ':status', '500', 'accept-charset', ''],
  ...['accept-encoding', 'gzip, deflate', 'accept-language', '', 'accept-ranges', '', 'accept', ''],
  ...['access-control-allow-origin', '', 'age', '', 'allow', '', 'authorization', ''],
  ...['cache-control', '', 'content-disposition', '', 'content-encoding', ''],
  ...['content-language', '', 'content-length', '', 'content-location', '', 'content-range', ''],
  ...['content-type', '', 'cookie', '', 'date', '', 'etag', '', 'expect', '', 'expires', ''],
  ...['from', '', 'host', '', 'if-match', '', 'if-modified-since', '', 'if-none-match', ''],
  ...['if-range', '', 'if-unmodified-since', '', 'last-modified', '', 'link', '', 'location', ''],
  ...['max-forwards', '', 'proxy-authenticate', '', 'proxy-authorization', '', 'range', ''],
  ...['referer', '', 'refresh', '', 'retry-after', '', 'server', '', 'set-cookie', ''],
  ...['strict-transport-security', '', 'transfer-encoding', '', 'user-agent', '', 'vary', ''],
  ...['via', '', 'www-authenticate', ''],
];

/** The number of entries of the static table; the dynamic table follows it. */
export const staticEntries = staticTable.length / 2;

/**
 * The Huffman code of HPACK (RFC 7541 Appendix B). It is canonical: codes of one length follow each
 * other in the order of their symbols, so the lengths alone define it.
 */

/** The symbols by the length of their codes, in bits; 256 is the end of a text (EOS). */
const symbolsByLength: readonly (readonly [bits: number, symbols: readonly number[]])[] = [
  [5, [48, 49, 50, 97, 99, 101, 105, 111, 115, 116]],
  [6, [32, 37, 45, 46, 47, ...range(51, 57), 61, 65, 95, 98, 100, 102, 103, 104]],
  [6, [108, 109, 110, 112, 114, 117]],
  [7, [58, ...range(66, 87), 89, 106, 107, 113, 118, 119, 120, 121, 122]],
  [8, [38, 42, 44, 59, 88, 90]],
  [10, [33, 34, 40, 41, 63]],
  [11, [39, 43, 124]],
  [12, [35, 62]],
  [13, [0, 36, 64, 91, 93, 126]],
  [14, [94, 125]],
  [15, [60, 96, 123]],
  [19, [92, 195, 208]],
  [20, [128, 130, 131, 162, 184, 194, 224, 226]],
  [21, [153, 161, 167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230]],
  [22, [129, 132, 133, 134, 136, 146, 154, 156, 160, 163, 164, 169, 170, 173, 178, 181]],
  [22, [185, 186, 187, 189, 190, 196, 198, 228, 232, 233]],
  [23, [1, 135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166]],
  [23, [168, 174, 175, 180, 182, 183, 188, 191, 197, 231, 239]],
  [24, [9, 142, 144, 145, 148, 159, 171, 206, 215, 225, 236, 237]],
  [25, [199, 207, 234, 235]],
  [26, [192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242, 243, 255]],
  [27, [203, 204, 211, 212, 214, 221, 222, 223, 241, ...range(244, 248), ...range(250, 254)]],
  [28, [...range(2, 8), 11, 12, ...range(14, 21), ...range(23, 31), 127, 220, 249]],
  [30, [10, 13, 22, 256]],
];

const eos = 256;
const codes = new Uint32Array(eos + 1);
const lengths = new Uint8Array(eos + 1);

/** For each state and half byte: the next state, and the symbol that it ends, or one of these. */
const noSymbol = -1;
const nextStates = new Uint16Array(eos * 16);
const endedSymbols = new Int16Array(eos * 16).fill(noSymbol);
/** Whether a text may end in a state: the bits since its last symbol are ones (§5.2). */
const mayEnd = new Uint8Array(eos);

buildTables();

/** Returns the length of a latin1 text as Huffman code, in bytes. */
export function huffmanLength(text: string): number {
  let bits = 0;
  for (let at = 0; at < text.length; at += 1) bits += lengths[text.charCodeAt(at)] ?? 0;
  return (bits + 7) >>> 3;
}

/** Writes a latin1 text as Huffman code into a buffer; returns the position after it. */
export function writeHuffman(text: string, into: Uint8Array, start: number): number {
  let at = start;
  // At most 7 bits wait between two symbols; a code has up to 30 bits, so two steps write one.
  let waiting = 0;
  let waitingBits = 0;
  for (let index = 0; index < text.length; index += 1) {
    const symbol = text.charCodeAt(index);
    let bits = lengths[symbol] ?? 0;
    const code = codes[symbol] ?? 0;
    while (bits > 0) {
      const taken = Math.min(bits, 8 - waitingBits);
      bits -= taken;
      waiting = (waiting << taken) | ((code >>> bits) & ((1 << taken) - 1));
      waitingBits += taken;
      if (waitingBits === 8) {
        into[at] = waiting;
        at += 1;
        waiting = 0;
        waitingBits = 0;
      }
    }
  }
  if (waitingBits > 0) {
    into[at] = (waiting << (8 - waitingBits)) | (0xff >>> waitingBits);
    at += 1;
  }
  return at;
}

/** Decoded text; a code has at least 5 bits. */
let decoded = Buffer.alloc(1_024);

/**
 * Decodes a part of a buffer; the result is latin1. Undefined if it contains EOS, or its padding is
 * longer than 7 bits or not ones (§5.2).
 */
export function readHuffman(from: Uint8Array, start: number, end: number): string | undefined {
  const longest = Math.ceil(((end - start) * 8) / 5);
  if (decoded.length < longest) decoded = Buffer.alloc(2 * longest);
  const into = decoded;
  let length = 0;
  let state = 0;
  for (let at = start; at < end; at += 1) {
    const byte = from[at] ?? 0;
    for (const half of [byte >>> 4, byte & 15]) {
      const step = (state << 4) | half;
      const symbol = endedSymbols[step] ?? noSymbol;
      if (symbol === eos) return undefined;
      if (symbol !== noSymbol) {
        into[length] = symbol;
        length += 1;
      }
      state = nextStates[step] ?? 0;
    }
  }
  return mayEnd[state] === 1 ? into.toString('latin1', 0, length) : undefined;
}

function range(first: number, last: number): readonly number[] {
  return Array.from({ length: last - first + 1 }, (_, at) => first + at);
}

/** A node of the tree of codes: a symbol, or the nodes of a further 0 and 1. */
type Node = number | { readonly id: number; readonly children: [Node?, Node?] };

function buildTables(): void {
  let nodes = 0;
  const inner = (): Exclude<Node, number> => ({ id: nodes++, children: [] });
  const root = inner();
  const all = [root];
  let code = 0;
  let lastLength = 0;
  for (const [length, symbols] of symbolsByLength) {
    for (const symbol of symbols) {
      code *= 2 ** (length - lastLength);
      lastLength = length;
      codes[symbol] = code;
      lengths[symbol] = length;
      let node = root;
      for (let bit = length - 1; bit > 0; bit -= 1) {
        const side = (code / 2 ** bit) & 1;
        const next = node.children[side] ?? (node.children[side] = inner());
        if (typeof next === 'number') throw new Error('The code is not free of prefixes.');
        if (next.children.length === 0 && !all.includes(next)) all.push(next);
        node = next;
      }
      node.children[code & 1] = symbol;
      code += 1;
    }
  }
  for (const node of all) {
    for (let half = 0; half < 16; half += 1) buildStep(root, node, half);
  }
  // EOS is all ones: the nodes on its way, up to 7 bits deep, may end a text.
  let node: Node | undefined = root;
  for (let depth = 0; depth < 8 && typeof node === 'object'; depth += 1) {
    mayEnd[node.id] = 1;
    node = node.children[1];
  }
}

function buildStep(root: Exclude<Node, number>, from: Exclude<Node, number>, half: number): void {
  let node = from;
  let ended = noSymbol;
  for (let bit = 3; bit >= 0; bit -= 1) {
    const next: Node | undefined = node.children[(half >>> bit) & 1];
    if (typeof next === 'object') node = next;
    else {
      ended = next ?? eos;
      node = root;
    }
  }
  const step = (from.id << 4) | half;
  nextStates[step] = node.id;
  endedSymbols[step] = ended;
}
