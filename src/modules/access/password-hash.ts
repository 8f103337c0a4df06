import { type ScryptOptions, randomBytes, scrypt } from 'node:crypto';
import type { Config } from '../../core/config/config.ts';
import { readText } from '../../core/config/files.ts';
import { LoadedFile } from '../../core/config/loaded-file.ts';
import { type Log, reasonOf } from '../../core/report/log.ts';
import { MIB } from '../../core/values/units.ts';

/** The largest password file. */
const passwordFileBytesMax = 4 * MIB;
const nobody: ReadonlyMap<string, PasswordHash> = new Map();

/** The highest costs of a hash in a password file: scrypt's memory and rounds, bcrypt's cost. */
const scryptBytesMax = 128 * MIB;
const scryptParallelMax = 16;
const bcryptCostMax = 15;

/** A hash of scrypt (RFC 7914) with its parameters. */
interface ScryptHash {
  readonly kind: 'scrypt';
  readonly options: ScryptOptions;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/** A hash of a password in a password file; `text` is how it is written there. */
export type PasswordHash = { readonly text: string } & (
  | ScryptHash
  | { readonly kind: 'bcrypt'; readonly cost: number }
);

/** The users of a password file, and its lines that name none, a sentence each. */
interface PasswordUsers {
  readonly hashes: ReadonlyMap<string, PasswordHash>;
  readonly problems: readonly string[];
}

/** 2^15 blocks of 1 KiB, three times: about a quarter of a second (OWASP Password Storage). */
const written = { ln: 15, r: 8, p: 3 } as const;
const saltBytes = 16;
const hashBytes = 32;

/**
 * Hashes a password with a new salt: `$scrypt$ln=15,r=8,p=3$salt$hash`, the form of the PHC string
 * format, with base64 without padding.
 */
export async function hashPassword(password: string): Promise<string> {
  const { ln, r, p } = written;
  const salt = randomBytes(saltBytes);
  const options = scryptOptions(ln, r, p);
  const hash = await derive(password, { salt, bytes: hashBytes, options });
  return `$scrypt$ln=${ln},r=${r},p=${p}$${base64(salt)}$${base64(hash)}`;
}

/** The scrypt hash of a password with the salt and parameters of another one, in a thread. */
export function scryptAs(password: string, { salt, hash, options }: ScryptHash): Promise<Buffer> {
  return derive(password, { salt, bytes: hash.length, options });
}

/**
 * Reads a password file: a line `name:hash` for each user; empty lines and those that begin with
 * `#` are ignored. A line that is broken, or has a hash that is neither scrypt nor bcrypt, names
 * nobody, and so does each of two lines with the same name.
 */
export function parsePasswordFile(text: string): PasswordUsers {
  const hashes = new Map<string, PasswordHash>();
  const seen = new Map<string, number>();
  const problems: string[] = [];
  for (const [at, line] of text
    .replace(/^\ufeff/, '')
    .split(/\r\n|\n|\r/)
    .entries()) {
    if (line.trim() === '' || line.startsWith('#')) continue;
    const colon = line.indexOf(':');
    const name = line.slice(0, Math.max(colon, 0)).normalize('NFC');
    const hash = parseHash(line.slice(colon + 1).trim());
    const earlier = seen.get(name);
    if (name === '' || hash === undefined) {
      const wanted = 'a name, a colon and a hash of scrypt or bcrypt';
      problems.push(`line ${at + 1} is not ${wanted}: \`waymark password NAME\` prints one`);
    } else if (earlier !== undefined) {
      problems.push(`line ${at + 1} has the name of line ${earlier}: neither may sign in`);
      hashes.delete(name);
    } else hashes.set(name, hash);
    if (name !== '' && earlier === undefined) seen.set(name, at + 1);
  }
  return { hashes, problems };
}

/** Parses a hash of scrypt or bcrypt; undefined for any other text, and for too high a cost. */
function parseHash(text: string): PasswordHash | undefined {
  const [, cost = ''] = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/.exec(text) ?? [];
  if (cost !== '') {
    const isPossible = Number(cost) >= 4 && Number(cost) <= bcryptCostMax;
    return isPossible ? { kind: 'bcrypt', text, cost: Number(cost) } : undefined;
  }
  const [start, name, parameters = '', salt = '', hash = '', rest] = text.split('$');
  const [, ln, r, p] = /^ln=(\d{1,2}),r=(\d{1,3}),p=(\d{1,3})$/.exec(parameters) ?? [];
  // 12 to 64 and 32 to 64 bytes, in base64 without padding.
  const isWritten = /^[A-Za-z0-9+/]{16,86}$/.test(salt) && /^[A-Za-z0-9+/]{43,86}$/.test(hash);
  if (start !== '' || name !== 'scrypt' || !isWritten || rest !== undefined) return undefined;
  const [blocks, size, parallel] = [Number(ln), Number(r), Number(p)];
  if (!(blocks >= 10 && size >= 1 && parallel >= 1 && parallel <= scryptParallelMax)) {
    return undefined;
  }
  if (128 * 2 ** blocks * size > scryptBytesMax) return undefined;
  return {
    ...{ kind: 'scrypt', text, options: scryptOptions(blocks, size, parallel) },
    ...{ salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') },
  };
}

function scryptOptions(ln: number, r: number, p: number): ScryptOptions {
  return { N: 2 ** ln, r, p, maxmem: 2 * scryptBytesMax };
}

function derive(
  password: string,
  {
    salt,
    bytes,
    options,
  }: { readonly salt: Buffer; readonly bytes: number; readonly options: ScryptOptions },
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(password, salt, bytes, options, (error, hash) => {
      if (error === null) resolve(hash);
      else reject(error);
    });
  });
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}

/** The users of a password file as it is now. */
export interface PasswordFile {
  /** Looks for a change of the file; undefined if that was done a moment ago. Never rejects. */
  prepare(): Promise<void> | undefined;
  /** The hashes by name; none while the file cannot be read. */
  hashes(): ReadonlyMap<string, PasswordHash>;
}

/** Opens a password file. The log names its broken lines, once for each version of the file. */
export function openPasswordFile(
  file: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): PasswordFile {
  let isReadable = false;
  const loaded = new LoadedFile<PasswordUsers>({
    ...{ file, bytesMax: passwordFileBytesMax, now },
    read: (bytes) => {
      const users = parsePasswordFile(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
      isReadable = true;
      for (const problem of users.problems) log.warn({ file }, `password file: ${problem}`);
      return users;
    },
    failed: (error) => {
      isReadable = false;
      const reason = reasonOf(error);
      log.error({ file, reason }, 'the password file cannot be read: nobody gets in by it');
    },
  });
  return {
    prepare: () => loaded.prepare(),
    hashes: () => (isReadable ? (loaded.value?.hashes ?? nobody) : nobody),
  };
}

/** What is wrong with the password files of a configuration, a sentence each. */
export async function passwordFileWarnings({
  access,
}: Pick<Config, 'access'>): Promise<readonly string[]> {
  const files = [...new Set(access.flatMap(({ passwordFile }) => passwordFile ?? []))];
  const warnings = files.map(async (file) => {
    const read = await readText(file, { bytesMax: passwordFileBytesMax });
    if ('refused' in read) return [`${file} ${read.refused}: nobody gets in by it.`];
    return parsePasswordFile(read.text).problems.map((problem) => `${file}: ${problem}.`);
  });
  return (await Promise.all(warnings)).flat();
}
