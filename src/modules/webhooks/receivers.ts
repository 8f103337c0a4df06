import { LRUCache } from 'lru-cache';
import { withheldValue } from '../../core/log/former-headers.ts';
import type { Reads } from '../../core/log/store.ts';
import { MIB } from '../../core/values/units.ts';
import { type Hook, type HookSecret, isDelivered } from './hook.ts';
import type { QueueKey } from './log/deliveries.ts';
import { type SigningKey, parseSecret } from './sign.ts';
import { storedHooks } from './log/family.ts';

/** Characters of the hooks in the cache of receivers, and the overhead of each entry. */
const receiversCharactersMax = 32 * MIB;
const foundReceiverCharacters = 512;

/** An active hook, with the keys that sign its messages. */
export interface Receiver {
  readonly hook: Hook;
  /** Version of the hook; each change of the hook gives it a new one. */
  readonly seq: number;
  /** The signing keys at a time in milliseconds since 1970, newest first. */
  readonly keys: (nowMs: number) => readonly [SigningKey, ...SigningKey[]];
}

interface FoundReceiver {
  /** Undefined for a hook that is paused, deleted or not complete. */
  readonly receiver: Receiver | undefined;
  /** Length of the hook as JSON. */
  readonly characters: number;
}

/** Finds the receiver of a queue in the current state of the store. */
export class Receivers {
  readonly #reads: Pick<Reads, 'change' | 'of'>;
  readonly #known = new LRUCache<QueueKey, FoundReceiver>({
    maxSize: receiversCharactersMax,
    sizeCalculation: ({ characters }) => characters,
  });
  #stamp: string | undefined;

  constructor(reads: Pick<Reads, 'change' | 'of'>) {
    this.#reads = reads;
  }

  /** The receiver of a queue; undefined if its hook is paused, deleted or not complete. */
  find(queue: QueueKey): Receiver | undefined {
    const stamp = this.#reads.of(storedHooks).hooksStamp();
    if (stamp !== this.#stamp) {
      this.#stamp = stamp;
      this.#known.clear();
    }
    const known = this.#known.get(queue);
    if (known !== undefined) return known.receiver;
    const receiver = this.#read(queue);
    const characters = receiver === undefined ? 0 : JSON.stringify(receiver.hook).length;
    this.#known.set(queue, { receiver, characters: characters + foundReceiverCharacters });
    return receiver;
  }

  /** The id of the hook that owns a queue. */
  hookId(queue: QueueKey): string {
    const change = this.#reads.change(queue);
    if (change === undefined) throw new Error(`no hook was inserted by change ${queue}`);
    return change.id;
  }

  #read(queue: QueueKey): Receiver | undefined {
    const id = this.hookId(queue);
    const stored = this.#reads.of(storedHooks).hook(id);
    const secret = this.#reads.of(storedHooks).hookSecret(id);
    if (stored === undefined || secret === undefined || !isDelivered(stored.hook)) return undefined;
    const { hook, seq } = stored;
    // They come soon after the row of the hook.
    if (Object.values(hook.headers).includes(withheldValue)) return undefined;
    return { hook, seq, keys: keysOf(secret) };
  }
}

function keysOf({ secret, previous, until = '' }: HookSecret): Receiver['keys'] {
  const newest = signingKey(secret);
  if (previous === undefined) return () => [newest];
  const [former, untilMs] = [signingKey(previous), Date.parse(until)];
  return (nowMs) => (nowMs < untilMs ? [newest, former] : [newest]);
}

function signingKey(secret: string): SigningKey {
  const key = parseSecret(secret);
  if (key === undefined) throw new Error('a stored webhook secret is malformed');
  return key;
}
