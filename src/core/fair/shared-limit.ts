import { addressNetwork } from '../values/network/cidr.ts';
import { type Cancellation, Failure } from '../values/failure.ts';
import type { LimitName } from '../values/limit.ts';

/**
 * Who takes a part of a limit: a caller, who counts by its key, or by its network without one; or
 * the name of something else, such as a receiver of webhooks.
 */
export type Sharer = { readonly keyId: string | undefined; readonly address: string } | string;

/** The sizes of a limit that all clients of a process share. */
export interface Shares {
  /** The limited things in the plural, for messages. */
  readonly what: string;
  /** The name of the limit in the log. */
  readonly limit?: LimitName;
  readonly max: number;
  /** For all callers without a key; the rest is for callers with a key. */
  readonly withoutKeyMax?: number;
  /** For callers without a key from one address, or IPv6 network of 64 bits. */
  readonly perAddressMax?: number;
  /**
   * How soon a client gives back what it takes. `long`: the client decides, so nobody may hold more
   * than is left for the others. `short`: the server does, so one client may hold all while nobody
   * else waits.
   */
  readonly held: 'long' | 'short';
  /** How many may wait for their turn, and how long; without it, nobody waits. */
  readonly waiting?: { readonly max: number; readonly ms: number };
  /** The least time for which `acquire` holds what it takes: it bounds the pace. */
  readonly heldMsMin?: number;
  /** What a refusal says, in whole seconds; 1 by default. */
  readonly retryAfterSeconds?: number;
}

/** Gives back what was taken; a second call does nothing. */
export type Release = () => void;

/** An AbortSignal, or another cancellation. */
type AbortingSignal = Cancellation & { readonly reason?: unknown };

/** A request that waits for its turn. */
interface Waiter {
  readonly amount: number;
  readonly grant: () => void;
  readonly refuse: (reason: Error) => void;
}

/** The requests of one client that wait, in their order. */
interface Line {
  readonly client: Sharer;
  readonly name: string;
  /** The wide network of the client; its name if it has none. */
  readonly wide: string;
  readonly waiters: Set<Waiter>;
  /** How often others were served first because the next request needs more than is free. */
  passedOver: number;
}

/**
 * What a wide network of IPv6 may hold of a limit, with all networks of 64 bits that it has: who
 * has a network of 48 bits has 65,536 of them.
 */
const wideShareMax = 0.75;

/** So often others may be served before a large request; then they wait until it has room. */
const passedOverMax = 100;

/** Clients whose turns are remembered while the limit is in use. */
const turnsRememberedMax = 10_000;

/**
 * A limit that clients share fairly (docs/design/fair-shares.md). Each client has a line of its
 * own, and the lines get turns by what their clients have taken before (start-time fair queuing):
 * while others wait, nobody gets more than an equal share. When too many wait, the newest of the
 * longest line is refused.
 */
export class SharedLimit {
  readonly #shares: Shares;
  readonly #held = new Map<string, number>();
  /** What wide networks hold, and how many of their requests wait. */
  readonly #heldByWide = new Map<string, number>();
  readonly #waitingByWide = new Map<string, number>();
  /** The lines by the names of their clients. */
  readonly #lines = new Map<string, Line>();
  /** What each client had been served when its next turn comes; it begins where the others are. */
  readonly #turns = new Map<string, number>();
  /** The turn of the client that was served last. */
  #turn = 0;
  #all = 0;
  #withoutKey = 0;
  #waiting = 0;

  constructor(shares: Shares) {
    this.#shares = shares;
  }

  /** The amount that all clients use together. */
  get size(): number {
    return this.#all;
  }

  /** The number of requests that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Creates an allocation of a client; it is empty at first. */
  allocation(client: Sharer): Allocation {
    return new Allocation(this, client);
  }

  /** Whether `take` would take an amount for a client. */
  hasRoom(client: Sharer, amount = 1): boolean {
    return this.#fits(client, clientName(client), amount);
  }

  /** Throws as `take` would, and takes nothing. */
  require(client: Sharer, amount = 1): void {
    const name = clientName(client);
    if (!this.#fits(client, name, amount)) throw this.#refusal(client, name, amount);
  }

  /**
   * Takes an amount for a client, without a wait. Throws `rate_limited` if the client exceeds its
   * share, and `unavailable` if all clients together exceed the limit.
   */
  take(client: Sharer, amount: number): void {
    const name = clientName(client);
    if (!this.#fits(client, name, amount)) throw this.#refusal(client, name, amount);
    this.#add(client, name, amount);
  }

  /** Releases an amount of a client. */
  giveBack(client: Sharer, amount: number): void {
    this.#add(client, clientName(client), -amount);
    this.#serve();
  }

  /** Takes an amount for a client at once; undefined if it is not the client's turn. */
  tryAcquire(client: Sharer, amount = 1): Release | undefined {
    const name = clientName(client);
    if (this.#lines.size === 0) {
      if (!this.#fits(client, name, amount)) return undefined;
      this.#add(client, name, amount);
      return this.#placeOf(client, amount)();
    }
    let taken: Release | undefined;
    const leave = this.wait(client, amount, (release) => {
      taken = release;
    });
    leave();
    return taken;
  }

  /**
   * Puts a request into the client's line, without a time limit; `granted` is called when it is its
   * turn, which may be at once. Returns a function that takes it out of the line. Only for limits
   * whose clients bound their requests themselves.
   */
  wait(client: Sharer, amount: number, granted: (release: Release) => void): () => void {
    const name = clientName(client);
    const begin = this.#placeOf(client, amount);
    const leave = (): void => {
      this.#leave(name, waiter);
    };
    const waiter: Waiter = {
      amount,
      refuse: leave,
      grant: () => {
        leave();
        this.#add(client, name, amount);
        granted(begin());
      },
    };
    this.#join(client, name, waiter);
    this.#serve();
    return leave;
  }

  /**
   * Takes an amount when it is the client's turn. Rejects with the reason of the signal if that
   * aborts first; with `rate_limited` or `unavailable` as `take` if the limit has no lines, too
   * many wait, or the turn does not come in time.
   */
  acquire(client: Sharer, amount = 1, signal?: AbortingSignal): Promise<Release> {
    const { waiting } = this.#shares;
    const name = clientName(client);
    if (signal?.aborted === true) return Promise.reject(abortReason(signal));
    const taken = this.tryAcquire(client, amount);
    if (taken !== undefined) return Promise.resolve(taken);
    const begin = this.#placeOf(client, amount);
    if (waiting === undefined || amount > this.#shares.max || !this.#makeRoom(client, name)) {
      return Promise.reject(this.#refusal(client, name, amount));
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
        this.#leave(name, waiter);
      };
      const refuse = (reason: Error): void => {
        leave();
        reject(reason);
      };
      const abort = (): void => {
        refuse(abortReason(signal));
        this.#serve();
      };
      const grant = (): void => {
        leave();
        this.#add(client, name, amount);
        resolve(begin());
      };
      const waiter: Waiter = { amount, grant, refuse };
      const timer = setTimeout(() => {
        refuse(this.#refusal(client, name, amount));
        this.#serve();
      }, waiting.ms).unref();
      signal?.addEventListener('abort', abort, { once: true });
      this.#join(client, name, waiter);
      this.#serve();
    });
  }

  /** Runs a task when it is the client's turn; rejects as `acquire` and the task do. */
  async run<T>(client: Sharer, act: () => Promise<T>, signal?: AbortingSignal): Promise<T> {
    const release = await this.acquire(client, 1, signal);
    try {
      return await act();
    } finally {
      release();
    }
  }

  /** Refuses all that wait. */
  refuseWaiting(reason: Failure): void {
    for (const { waiters } of [...this.#lines.values()]) {
      for (const { refuse } of [...waiters]) refuse(reason);
    }
  }

  /** Whether a client may take an amount now. */
  #fits(client: Sharer, name: string, amount: number): boolean {
    const { max, withoutKeyMax = Infinity, held: duration } = this.#shares;
    const held = this.#held.get(name) ?? 0;
    if (this.#all + amount > max || held + amount > this.#capOf(client)) return false;
    if (!this.#fitsWide(client, name, amount)) return false;
    if (isWithoutKey(client) && this.#withoutKey + amount > withoutKeyMax) return false;
    return duration === 'short' || leavesRoom({ held, all: this.#all, max }, amount);
  }

  /** Whether the wide network of a client leaves something to others. */
  #fitsWide(client: Sharer, name: string, amount: number): boolean {
    const wide = wideNameOf(client, name);
    const held = wide === undefined ? 0 : (this.#heldByWide.get(wide) ?? 0);
    return held === 0 || held + amount <= this.#shares.max * wideShareMax;
  }

  #capOf(client: Sharer): number {
    const { perAddressMax = Infinity } = this.#shares;
    return isWithoutKey(client) ? perAddressMax : Infinity;
  }

  #refusal(client: Sharer, name: string, amount: number): Failure {
    const { what, limit, max, withoutKeyMax = Infinity, retryAfterSeconds = 1 } = this.#shares;
    const detail = { retryAfterSeconds, ...(limit !== undefined && { limit }) };
    const held = this.#held.get(name) ?? 0;
    const isFull =
      this.#all + amount > max ||
      (isWithoutKey(client) && this.#withoutKey + amount > withoutKeyMax);
    if (held + amount <= this.#capOf(client) && (isFull || held === 0)) {
      return new Failure('unavailable', `The server has too many ${what} at the moment.`, detail);
    }
    const holder = isWithoutKey(client) ? 'address' : 'key';
    const message = `This ${holder} has too many ${what} at the same time.`;
    return new Failure('rate_limited', message, detail);
  }

  /** Makes the function that begins the time of a place, and returns its release. */
  #placeOf(client: Sharer, amount: number): () => Release {
    const { heldMsMin = 0 } = this.#shares;
    let isReleased = false;
    let takenMs = 0;
    const giveBack = (): void => {
      this.giveBack(client, amount);
    };
    const release = (): void => {
      if (isReleased) return;
      isReleased = true;
      const leftMs = heldMsMin === 0 ? 0 : takenMs + heldMsMin - performance.now();
      if (leftMs <= 0) giveBack();
      else setTimeout(giveBack, leftMs).unref();
    };
    const begin = (): Release => {
      if (heldMsMin > 0) takenMs = performance.now();
      return release;
    };
    return begin;
  }

  #add(client: Sharer, name: string, amount: number): void {
    addTo(this.#held, name, amount);
    this.#all += amount;
    if (isWithoutKey(client)) this.#withoutKey += amount;
    const wide = wideNameOf(client, name);
    if (wide !== undefined) addTo(this.#heldByWide, wide, amount);
    if (this.#shares.waiting !== undefined) this.#count(name, wide ?? name, amount);
  }

  /**
   * Moves the next turn of a client, and of its wide network, behind those of others who have been
   * served less.
   */
  #count(name: string, wide: string, amount: number): void {
    if (this.#all === 0 && this.#waiting === 0) {
      this.#turns.clear();
      this.#turn = 0;
    }
    if (amount <= 0) return;
    this.#turn = this.#turnOf(wide);
    this.#turns.set(wide, this.#turn + amount);
    if (wide !== name) this.#turns.set(name, this.#turn + amount);
    if (this.#turns.size <= turnsRememberedMax) return;
    for (const [other, turn] of this.#turns) if (turn <= this.#turn) this.#turns.delete(other);
    if (this.#turns.size <= turnsRememberedMax) return;
    this.#turn = Math.max(...this.#turns.values());
    this.#turns.clear();
  }

  #turnOf(name: string): number {
    return Math.max(this.#turn, this.#turns.get(name) ?? 0);
  }

  #join(client: Sharer, name: string, waiter: Waiter): void {
    const wide = turnsName(client);
    const line = this.#lines.get(name) ?? { client, name, wide, waiters: new Set(), passedOver: 0 };
    line.waiters.add(waiter);
    this.#lines.set(name, line);
    this.#waiting += 1;
    if (this.#shares.waiting !== undefined) addTo(this.#waitingByWide, wide, 1);
  }

  #leave(name: string, waiter: Waiter): void {
    const line = this.#lines.get(name);
    if (line?.waiters.delete(waiter) !== true) return;
    this.#waiting -= 1;
    if (this.#shares.waiting !== undefined) addTo(this.#waitingByWide, line.wide, -1);
    if (line.waiters.size === 0) this.#lines.delete(name);
  }

  /**
   * Makes room for one more that waits: refuses the newest of the longest line in the wide network
   * with most requests, unless those are the client's own. Returns whether there is room.
   */
  #makeRoom(client: Sharer, name: string): boolean {
    const { waiting = { max: 0 } } = this.#shares;
    if (this.#waiting < waiting.max) return true;
    const own = wideNameOf(client, name) ?? name;
    let fullest = own;
    let most = (this.#waitingByWide.get(own) ?? 0) + 1;
    for (const [wide, count] of this.#waitingByWide) {
      if (count > most) [fullest, most] = [wide, count];
    }
    let longest: Line | undefined;
    const ownLine = fullest === own ? (this.#lines.get(name)?.waiters.size ?? 0) + 1 : 0;
    for (const line of this.#lines.values()) {
      const { size } = line.waiters;
      if (line.wide !== fullest || size <= ownLine) continue;
      if (size >= (longest?.waiters.size ?? 0)) longest = line;
    }
    const newest = longest === undefined ? undefined : [...longest.waiters].at(-1);
    if (longest === undefined || newest === undefined) return false;
    newest.refuse(this.#refusal(longest.client, longest.name, newest.amount));
    return true;
  }

  /** Serves those who wait, as long as there is room. */
  #serve(): void {
    for (let line = this.#nextLine(); line !== undefined; line = this.#nextLine()) {
      const [waiter] = line.waiters;
      line.passedOver = 0;
      waiter?.grant();
    }
  }

  /** The line whose turn it is: of those with room, first those within their share. */
  #nextLine(): Line | undefined {
    if (this.#lines.size === 0 || this.#all >= this.#shares.max) return undefined;
    let share: number | undefined;
    const passedOver: Line[] = [];
    let within: Line | undefined;
    let other: Line | undefined;
    for (const [name, line] of this.#lines) {
      const [{ amount } = { amount: 0 }] = line.waiters;
      const held = this.#held.get(name) ?? 0;
      const hasRoom = this.#fits(line.client, name, amount);
      if (!hasRoom && held === 0) {
        if (line.passedOver >= passedOverMax) return undefined;
        passedOver.push(line);
      }
      if (!hasRoom) continue;
      // No other line can have an earlier turn.
      if (held === 0 && this.#isNext(line)) {
        within = line;
        break;
      }
      if (held === 0 || held + amount <= (share ??= this.#share()))
        within = this.#sooner(line, within);
      else other = this.#sooner(line, other);
    }
    const next = within ?? other;
    if (next !== undefined) for (const one of passedOver) one.passedOver += 1;
    return next;
  }

  #isNext({ name, wide }: Line): boolean {
    return this.#turnOf(wide) <= this.#turn && this.#turnOf(name) <= this.#turn;
  }

  /** Of two lines, the one that has been served less: first its wide network, then itself. */
  #sooner(line: Line, other: Line | undefined): Line {
    if (other === undefined) return line;
    const earlier =
      this.#turnOf(line.wide) - this.#turnOf(other.wide) ||
      this.#turnOf(line.name) - this.#turnOf(other.name);
    return earlier < 0 ? line : other;
  }

  /** An equal part for each client that holds something or waits. */
  #share(): number {
    let clients = this.#held.size;
    for (const name of this.#lines.keys()) if (!this.#held.has(name)) clients += 1;
    return this.#shares.max / clients;
  }
}

/**
 * Whether a client that holds a part of a limit may take more: only if it leaves as much to
 * others. One that holds nothing may take what is left.
 */
export function leavesRoom(
  { held, all, max }: { readonly held: number; readonly all: number; readonly max: number },
  amount = 1,
): boolean {
  return all + amount <= max && (held === 0 || held + amount <= max - all - amount);
}

function abortReason(signal: AbortingSignal | undefined): Error {
  const reason: unknown = signal?.reason;
  return reason instanceof Error ? reason : new Error('the request has ended', { cause: reason });
}

function isWithoutKey(client: Sharer): client is Exclude<Sharer, string> {
  return typeof client !== 'string' && client.keyId === undefined;
}

/** The name by which the turns of a client are counted: its wide network, or itself. */
export function turnsName(client: Sharer): string {
  const name = clientName(client);
  return wideNameOf(client, name) ?? name;
}

/** The wide network of a client over IPv6 without a key: 6 of the 8 bytes in its name. */
function wideNameOf(client: Sharer, name: string): string | undefined {
  if (!isWithoutKey(client) || !name.includes(':')) return undefined;
  return name.split(':', 6).join(':');
}

/** Adds to one of the counts, which has no entries of 0. */
function addTo(counts: Map<string, number>, name: string, amount: number): void {
  const count = (counts.get(name) ?? 0) + amount;
  if (count > 0) counts.set(name, count);
  else counts.delete(name);
}

/** The name by which a client is counted; equal for all addresses of a network. */
export function clientName(client: Sharer): string {
  if (typeof client === 'string') return `name ${client}`;
  const { keyId, address } = client;
  return keyId === undefined ? addressNetwork(address) : `key ${keyId}`;
}

/** The amount that one client uses of a shared limit, for one purpose. */
export class Allocation {
  readonly #limit: SharedLimit;
  readonly #client: Sharer;
  #amount = 0;

  constructor(limit: SharedLimit, client: Sharer) {
    this.#limit = limit;
    this.#client = client;
  }

  /** Takes more; throws as SharedLimit.take does. */
  grow(amount: number): void {
    this.#limit.take(this.#client, amount);
    this.#amount += amount;
  }

  /** Releases the whole amount. */
  free(): void {
    const amount = this.#amount;
    this.#amount = 0;
    if (amount > 0) this.#limit.giveBack(this.#client, amount);
  }
}
