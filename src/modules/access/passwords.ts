import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import { SharedLimit } from '../../core/fair/shared-limit.ts';
import {
  TokenBuckets,
  type TokenCounter,
  type TokenOrder,
  takeAll,
} from '../../core/fair/token-buckets.ts';
import { Failure } from '../../core/values/failure.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { addressNetwork } from '../../core/values/network/cidr.ts';
import { BcryptThread } from './bcrypt-thread.ts';
import { loginNameCharactersMax, passwordBytesMax } from './limits.ts';
import { type PasswordHash, scryptAs } from './password-hash.ts';

/** bcrypt ignores what comes after these bytes, so a longer password is none. */
const bcryptBytesMax = 72;

/** Slow checks at the same time, and those that wait for them, and how long. */
export const checksRunningMax = 2;
export const checksWaitingMax = 64;
const checkWaitMs = 10_000;

/** How long a right password is right without a slow check, and how many are in memory. */
const rememberedMs = 60_000;
const rememberedMax = 16_384;

/** Wrong passwords a minute from one address, or IPv6 network of 64 bits … */
export const wrongPerAddressMax = 10;

/** … and for one name, from addresses that it has never come from. */
export const wrongPerNameMax = 50;

/** Addresses and names whose tries are counted, and names with their known addresses. */
const triesCountedMax = 16_384;

/** A name and a password, as a client has sent them (RFC 7617). */
interface Credentials {
  readonly name: string;
  readonly password: string;
}

/** The name and password of a field `Authorization: Basic …`; undefined for any other value. */
export function basicCredentials(authorization: string | undefined): Credentials | undefined {
  const sent = /^basic +([A-Za-z0-9+/]{1,2048}={0,2})$/i.exec(authorization ?? '')?.[1];
  if (sent === undefined) return undefined;
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(sent, 'base64'));
  } catch {
    return undefined;
  }
  const colon = text.indexOf(':');
  if (colon === -1 || /\p{Cc}/u.test(text)) return undefined;
  const [name, password] = [text.slice(0, colon).normalize('NFC'), text.slice(colon + 1)];
  const isShort =
    name.length <= loginNameCharactersMax && Buffer.byteLength(password) <= passwordBytesMax;
  return isShort ? { name, password } : undefined;
}

const minuteMs = 60_000;

/**
 * Checks passwords against slow hashes in threads. It remembers right ones for a minute, limits
 * wrong ones by address and by name, and outlives a reload of the configuration. `monotonicMs`
 * measures durations: a correction of the clock opens nothing and locks nobody out.
 */
export class Passwords {
  readonly #monotonicMs: () => number;
  readonly #bcrypt = new BcryptThread();
  /** Memory has no password: only a keyed hash of name, password and the hash it is checked by. */
  readonly #secret = randomBytes(32).toString('base64');
  readonly #right = createLruCache<number>(rememberedMax);
  readonly #pending = new Map<string, Promise<boolean>>();
  readonly #counter: TokenCounter;
  /** Names with the addresses that they have come from: nobody else can lock those out. */
  readonly #known = createLruCache<true>(triesCountedMax);
  readonly #checks = new SharedLimit({
    what: 'passwords to check',
    limit: 'password_checks',
    held: 'short',
    max: checksRunningMax,
    waiting: { max: checksWaitingMax, ms: checkWaitMs },
    retryAfterSeconds: 2,
  });

  constructor({
    monotonicMs,
    counter = new TokenBuckets({ monotonicMs }),
  }: {
    readonly monotonicMs: () => number;
    readonly counter?: TokenCounter;
  }) {
    this.#monotonicMs = monotonicMs;
    this.#counter = counter;
  }

  /**
   * Whether a password is that of a user, at once if it was right within the last minute. A name
   * without a hash takes the time of one with a hash. Throws or rejects with `rate_limited` after
   * too many wrong tries of the address or for the name, with `unavailable` if too many wait.
   */
  isRight(
    { name, password }: Credentials,
    hashes: ReadonlyMap<string, PasswordHash>,
    address: string,
  ): boolean | Promise<boolean> {
    const own = hashes.get(name);
    const key = this.#keyOf({ name, password }, own);
    if ((this.#right.get(key) ?? 0) > this.#monotonicMs()) return true;
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const check = this.#check({ name, password }, own ?? someHash(hashes), {
      address,
      isUser: own !== undefined,
    });
    const checked = check
      .then((isRight) => {
        if (isRight) this.#right.set(key, this.#monotonicMs() + rememberedMs);
        return isRight;
      })
      .finally(() => this.#pending.delete(key));
    this.#pending.set(key, checked);
    return checked;
  }

  /** Whether a field Authorization has a password that was right within the last minute. */
  isRemembered(
    authorization: string | undefined,
    hashes: ReadonlyMap<string, PasswordHash>,
  ): boolean {
    const sent = basicCredentials(authorization);
    const own = sent === undefined ? undefined : hashes.get(sent.name);
    if (sent === undefined || own === undefined) return false;
    return (this.#right.get(this.#keyOf(sent, own)) ?? 0) > this.#monotonicMs();
  }

  #keyOf({ name, password }: Credentials, found: PasswordHash | undefined): string {
    return hash('sha256', `${this.#secret}\n${found?.text ?? ''}\n${name}\n${password}`, 'base64');
  }

  async #check(
    { name, password }: Credentials,
    slow: PasswordHash | undefined,
    { address, isUser }: { readonly address: string; readonly isUser: boolean },
  ): Promise<boolean> {
    const network = addressNetwork(address);
    const client = `${name}\n${network}`;
    const isKnown = this.#known.get(client) === true;
    // Counted before it is known to be wrong, or many tries at once would not count.
    const tries = [
      ordered('passwords of an address', { client: network, max: wrongPerAddressMax }),
      ...(isKnown ? [] : [triesOfName({ name, isUser, network })]),
    ];
    const waitSeconds = takeAll(this.#counter, tries);
    if (waitSeconds > 0) throw tooManyTries(waitSeconds);
    const turn = { keyId: undefined, address };
    const isRight =
      slow !== undefined && (await this.#checks.run(turn, () => this.#has(password, slow)));
    if (!isRight || !isUser) return false;
    for (const one of tries) this.#counter.giveBack(one);
    this.#known.set(client, true);
    return true;
  }

  async #has(password: string, slow: PasswordHash): Promise<boolean> {
    if (slow.kind === 'scrypt') {
      return timingSafeEqual(await scryptAs(password, slow), slow.hash);
    }
    const isRight = await this.#bcrypt.isRight(password, slow.text);
    return isRight && Buffer.byteLength(password) <= bcryptBytesMax;
  }
}

/** Tries for names that no user has: however many, they push out none of a user. */
function triesOfName({
  name,
  isUser,
  network,
}: {
  readonly name: string;
  readonly isUser: boolean;
  readonly network: string;
}): TokenOrder {
  const rate = isUser ? 'passwords of a user' : 'passwords of another name';
  return { ...ordered(rate, { client: name, max: wrongPerNameMax }), from: network };
}

function ordered(
  rate: string,
  { client, max }: { readonly client: string; readonly max: number },
): TokenOrder {
  return { rate, client, intervalMs: minuteMs / max, burst: max };
}

/** A hash of some other user, so that an unknown name takes as long as a known one. */
function someHash(hashes: ReadonlyMap<string, PasswordHash>): PasswordHash | undefined {
  return hashes.values().next().value;
}

function tooManyTries(retryAfterSeconds: number): Failure {
  return new Failure('rate_limited', 'Too many wrong passwords. Wait before the next try.', {
    retryAfterSeconds,
    limit: 'wrong_passwords',
  });
}
