import { randomBytes } from 'node:crypto';
import { type Task, afterIntervals } from '../../background/tasks.ts';

/** How long a key of session tickets is in use. */
const ticketKeyMs = 12 * 3_600_000;

/** A name and two secrets, as `setTicketKeys` of node:tls takes them. */
const keyBytes = 48;

/**
 * The key that encrypts session tickets (RFC 8446 §4.6.1, RFC 5077), in memory only: a client that
 * comes back with a ticket of it continues its session with a shorter handshake. All processes on
 * the same ports have the same key, so that any of them can continue a session.
 */
export class TicketKey {
  readonly #uses: ((key: Buffer) => void)[] = [];
  #current = randomBytes(keyBytes);

  /** Calls `use` with the key at once, and with each later one. */
  follow(use: (key: Buffer) => void): void {
    this.#uses.push(use);
    use(this.#current);
  }

  /** Replaces the key. Node knows one key at a time: older tickets lead to a full handshake. */
  replace(key = randomBytes(keyBytes)): void {
    this.#current = key;
    for (const use of this.#uses) use(key);
  }

  get current(): Buffer {
    return this.#current;
  }

  /**
   * Replaces the key at intervals from now on: who learns a key can read no sessions from before
   * it.
   */
  rotation(everyMs = ticketKeyMs): Task {
    return {
      name: 'ticket_key',
      title: 'The rotation of the key of session tickets',
      run: afterIntervals(everyMs, () => {
        this.replace();
        return undefined;
      }),
    };
  }
}
