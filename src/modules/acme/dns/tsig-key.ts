import { readText } from '../../../core/config/files.ts';
import type { Refused } from '../../../core/config/values.ts';

const tsigKeyFileBytesMax = 16 * 1024;

/** A key that signs changes of records (TSIG, RFC 8945), for HMAC-SHA256. */
export interface TsigKey {
  readonly name: string;
  readonly secret: Buffer;
}

/** How to make a key, as the end of a sentence. */
const makeKey = 'make one with `tsig-keygen -a hmac-sha256 waymark`';

/**
 * Reads a file as tsig-keygen of BIND writes it: `key "name" { algorithm hmac-sha256; secret "…";
 * };`.
 */
export async function readTsigKey(file: string): Promise<TsigKey | Refused> {
  const read = await readText(file, { bytesMax: tsigKeyFileBytesMax });
  return 'refused' in read ? { refused: read.refused } : parseTsigKey(read.text);
}

function parseTsigKey(text: string): TsigKey | Refused {
  const lines = text.split('\n').filter((line) => !/^(?:#|\/\/)/.test(line.trim()));
  const words = lines.join('\n').split(/[\s{};"]+/);
  const after = (word: string): string => words[words.indexOf(word) + 1] ?? '';
  const [name, algorithm] = [after('key'), after('algorithm')];
  const secret = Buffer.from(after('secret'), 'base64');
  if (!/^[\w.-]{1,255}$/.test(name) || secret.length < secretBytesMin) {
    return { refused: `has no key \`key "name" { algorithm hmac-sha256; … };\`: ${makeKey}` };
  }
  if (!/^hmac-sha256\.?$/i.test(algorithm)) {
    return { refused: `has a key for another algorithm than hmac-sha256: ${makeKey}` };
  }
  return { name: name.toLowerCase().replace(/\.$/, ''), secret };
}

const secretBytesMin = 16;
