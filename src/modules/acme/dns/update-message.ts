import { createHmac, timingSafeEqual } from 'node:crypto';
import type { TsigKey } from './tsig-key.ts';

/*
 * Messages that change a zone (DNS UPDATE, RFC 2136), signed with TSIG (RFC 8945) and HMAC-SHA256.
 * No maintained package signs DNS messages.
 */

const types = { SOA: 6, TXT: 16, TSIG: 250 } as const;
const classes = { IN: 1, NONE: 254, ANY: 255 } as const;
const opcodeUpdate = 5;
const headerBytes = 12;
const algorithm = 'hmac-sha256';
/** Seconds that the clocks may differ (RFC 8945 §10). */
const fudgeSeconds = 300;
/** Seconds that resolvers keep the record. */
const ttlSeconds = 60;

/** A signed message, and what its answer has to be signed with. */
interface SignedUpdate {
  readonly bytes: Buffer;
  readonly id: number;
  readonly mac: Buffer;
}

/** Makes the message that adds a record to a zone, or removes it. */
export function updateMessage(
  action: 'add' | 'remove',
  { name, value }: DnsRecord,
  { zone, key, id, nowMs }: UpdateParts,
): SignedUpdate {
  const text = Buffer.from(value);
  const data = Buffer.concat([Buffer.of(text.length), text]);
  const isAdded = action === 'add';
  const message = Buffer.concat([
    numbers([id, 2], [opcodeUpdate << 11, 2], [1, 2], [0, 2], [1, 2], [0, 2]),
    encodeName(zone),
    numbers([types.SOA, 2], [classes.IN, 2]),
    encodeName(name),
    // A record of the class NONE removes the same one (RFC 2136 §2.5.4).
    numbers([types.TXT, 2], [isAdded ? classes.IN : classes.NONE, 2]),
    numbers([isAdded ? ttlSeconds : 0, 4], [data.length, 2]),
    data,
  ]);
  const time = numbers([Math.floor(nowMs / 1_000), 6], [fudgeSeconds, 2]);
  const none = numbers([0, 2], [0, 2]);
  const mac = macOf(key, [message, variables(key, { time, rest: none })]);
  const signature = Buffer.concat([
    encodeName(algorithm),
    time,
    numbers([mac.length, 2]),
    mac,
    numbers([id, 2]),
    none,
  ]);
  const bytes = Buffer.concat([
    message,
    encodeName(key.name),
    numbers([types.TSIG, 2], [classes.ANY, 2], [0, 4], [signature.length, 2]),
    signature,
  ]);
  bytes.writeUInt16BE(1, additionalCountAt);
  return { bytes, id, mac };
}

interface UpdateParts {
  readonly zone: string;
  readonly key: TsigKey;
  /** 16 random bits. */
  readonly id: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/**
 * Why a name server refuses a change, in words that follow "the name server"; undefined if it has
 * made it. A signature that is missing or wrong counts as a refusal.
 */
export function updateRefusal(
  answer: Buffer,
  { id, mac }: Pick<SignedUpdate, 'id' | 'mac'>,
  key: TsigKey,
): string | undefined {
  try {
    if (answer.readUInt16BE(0) !== id || (answer.readUInt16BE(2) & 0x8000) === 0) return malformed;
    const code = answer.readUInt16BE(2) & 0xf;
    const signature = signatureOf(answer);
    const why = signature === undefined ? undefined : signatureErrors.get(signature.error);
    if (why !== undefined) return why;
    if (code !== 0) return `refuses the change: ${codes.get(code) ?? `code ${code}`}`;
    const isSigned = signature !== undefined && isSignedBy(key, mac, signature);
    return isSigned ? undefined : 'does not sign its answer with the key of `acme_dns_key`';
  } catch {
    return malformed;
  }
}

const malformed = 'answers with something that is no answer';

/** The codes of answers (RFC 2136 §2.2). */
const codes: ReadonlyMap<number, string> = new Map([
  [1, 'it does not understand it (FORMERR)'],
  [2, 'it has failed (SERVFAIL)'],
  [4, 'it takes no changes (NOTIMP)'],
  [5, 'the key may not change the record (REFUSED)'],
  [9, 'it is not the primary server of the zone, or knows no such key (NOTAUTH)'],
  [10, 'the name is not in the zone (NOTZONE)'],
]);

/** The errors of signatures (RFC 8945 §3). */
const signatureErrors: ReadonlyMap<number, string> = new Map([
  [16, 'has another secret for the key of `acme_dns_key` (BADSIG)'],
  [17, 'does not know the key of `acme_dns_key` (BADKEY)'],
  [18, 'has a clock that differs by more than 5 minutes (BADTIME)'],
]);

interface Signature {
  /** The message before it, as it was signed. */
  readonly message: Buffer;
  readonly time: Buffer;
  readonly mac: Buffer;
  readonly error: number;
  /** Error and other data. */
  readonly rest: Buffer;
}

/** The TSIG record at the end of an answer; undefined without one. */
function signatureOf(answer: Buffer): Signature | undefined {
  const [questions, ...counts] = [4, 6, 8, additionalCountAt].map((at) => answer.readUInt16BE(at));
  let at = headerBytes;
  for (let left = questions ?? 0; left > 0; left -= 1) at = afterName(answer, at) + 4;
  let last: number | undefined;
  for (let left = counts.reduce((sum, one) => sum + one, 0); left > 0; left -= 1) {
    last = at;
    const data = afterName(answer, at) + 10;
    at = data + answer.readUInt16BE(data - 2);
  }
  if (last === undefined || answer.readUInt16BE(afterName(answer, last)) !== types.TSIG) {
    return undefined;
  }
  const begin = afterName(answer, afterName(answer, last) + 10);
  const macAt = begin + 10;
  const macEnd = macAt + answer.readUInt16BE(macAt - 2);
  const message = Buffer.from(answer.subarray(0, last));
  message.writeUInt16BE(answer.readUInt16BE(macEnd), 0);
  message.writeUInt16BE(message.readUInt16BE(additionalCountAt) - 1, additionalCountAt);
  return {
    message,
    time: answer.subarray(begin, begin + 8),
    mac: answer.subarray(macAt, macEnd),
    error: answer.readUInt16BE(macEnd + 2),
    rest: answer.subarray(macEnd + 2, at),
  };
}

const additionalCountAt = 10;

/** Whether an answer has the signature of a key, and answers a request with a MAC. */
function isSignedBy(key: TsigKey, request: Buffer, signature: Signature): boolean {
  const { message, mac } = signature;
  const wanted = macOf(key, [
    numbers([request.length, 2]),
    request,
    message,
    variables(key, signature),
  ]);
  return mac.length === wanted.length && timingSafeEqual(mac, wanted);
}

/** What a signature covers besides the message (RFC 8945 §4.3.3). */
function variables(key: TsigKey, { time, rest }: Pick<Signature, 'time' | 'rest'>): Buffer {
  const head = [encodeName(key.name), numbers([classes.ANY, 2], [0, 4]), encodeName(algorithm)];
  return Buffer.concat([...head, time, rest]);
}

function macOf({ secret }: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac('sha256', secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest();
}

/** The position behind a name, which may end with a pointer (RFC 1035 §4.1.4). */
function afterName(message: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const length = message.readUInt8(at);
    if (length === 0) return at + 1;
    if (length >= 0xc0) return at + 2;
    at += 1 + length;
  }
}

/** A name in wire form, lower case. Throws for one that is no domain name. */
function encodeName(name: string): Buffer {
  const labels = name.toLowerCase().split('.');
  const parts = labels.flatMap((label) => {
    const bytes = Buffer.from(label, 'latin1');
    if (bytes.length === 0 || bytes.length > 63) throw new Error(`${name} is no domain name.`);
    return [Buffer.of(bytes.length), bytes];
  });
  return Buffer.concat([...parts, Buffer.of(0)]);
}

/** Unsigned integers in network order, each with its number of bytes. */
function numbers(...given: readonly (readonly [value: number, bytes: number])[]): Buffer {
  const all = given.map(([value, bytes]) => {
    const part = Buffer.alloc(bytes);
    part.writeUIntBE(value, 0, bytes);
    return part;
  });
  return Buffer.concat(all);
}

/** A TXT record that proves control of a domain (dns-01, RFC 8555 §8.4). */
export interface DnsRecord {
  /** Such as `_acme-challenge.example.com`, without a final dot. */
  readonly name: string;
  readonly value: string;
}

/** Changes the records of a domain. Both functions reject with an Error for the operator. */
export interface DnsRecords {
  /** Adds a record; resolves once the ACME server can find it. */
  present(record: DnsRecord, signal: AbortSignal): Promise<void>;
  /** Removes it. */
  cleanup(record: DnsRecord, signal: AbortSignal): Promise<void>;
}
