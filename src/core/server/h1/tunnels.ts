import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SwitchedProtocol } from '../../pipeline/source.ts';
import type { SharedLimit } from '../../fair/shared-limit.ts';
import { countPassedBytes } from '../../outbound/connection.ts';
import { fieldText, statusLine } from '../../pipeline/response-head.ts';
import type { ClientAddress } from '../../values/network/peer.ts';
import { linger } from './refusal.ts';

/** The longest silence, in both directions, of a websocket to a source. */
export const tunnelIdleMs = 600_000;

/** The interval between two checks for that silence. */
export const tunnelCheckMs = 60_000;

/** A reserved tunnel; to be released if it is not opened. */
interface TunnelPlace {
  /**
   * Sends the 101 to the client and joins the two connections; `head` is data that the client has
   * sent already.
   */
  open(client: Duplex, head: Buffer, opened: SwitchedProtocol): void;
  release(): void;
}

/**
 * The connections to sources that have switched protocols, such as websockets. Bytes pass both
 * ways, at the pace of the slower side. They belong to the port and survive a reload.
 */
export class Tunnels {
  readonly #open = new Set<Tunnel>();
  readonly #checking: NodeJS.Timeout;
  readonly #now: () => number;
  readonly #limit: SharedLimit;

  /** `now` gives milliseconds since 1970; `limit` limits the number of tunnels. */
  constructor({ now, limit }: { readonly now: () => number; readonly limit: SharedLimit }) {
    this.#now = now;
    this.#limit = limit;
    this.#checking = setInterval(() => {
      for (const tunnel of this.#open) tunnel.check();
    }, tunnelCheckMs);
    this.#checking.unref();
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Reserves a tunnel for a client before the request to the source. Throws `rate_limited` if its
   * address has too many, and `unavailable` if all clients together have.
   */
  take(address: ClientAddress): TunnelPlace {
    const allocation = this.#limit.allocation({ keyId: undefined, address });
    allocation.grow(1);
    let isOpen = false;
    return {
      open: (client, head, opened) => {
        isOpen = true;
        const tunnel = new Tunnel(client, opened.connection);
        this.#open.add(tunnel);
        void tunnel.closed.then(() => {
          this.#open.delete(tunnel);
          allocation.free();
        });
        client.write(switchingHead(opened, this.#now()), 'latin1');
        tunnel.join(head);
      },
      release: () => {
        if (!isOpen) allocation.free();
      },
    };
  }

  /**
   * Closes every tunnel on both sides. Resolves when all are closed; after `graceMs` it cuts them.
   */
  async close(graceMs: number): Promise<void> {
    clearInterval(this.#checking);
    const tunnels = [...this.#open];
    for (const tunnel of tunnels) tunnel.end();
    const timer = setTimeout(() => {
      for (const tunnel of tunnels) tunnel.cut();
    }, graceMs);
    await Promise.all(tunnels.map(({ closed }) => closed));
    clearTimeout(timer);
  }
}

/** Two connections, each of which gets the bytes of the other. */
class Tunnel {
  /** Resolves when both sides are closed. */
  readonly closed: Promise<unknown>;
  readonly #client: Duplex;
  readonly #source: Duplex;
  #silentMs = 0;

  constructor(client: Duplex, source: Duplex) {
    this.#client = client;
    this.#source = source;
    this.closed = Promise.all([untilClosed(client), untilClosed(source)]);
  }

  join(head: Buffer): void {
    const [client, source] = [this.#client, this.#source];
    const isAlive = (bytes: Buffer): void => {
      this.#silentMs = 0;
      countPassedBytes(bytes.length);
    };
    for (const side of [client, source]) {
      if (!(side instanceof Socket)) continue;
      side.setTimeout(0);
      side.setNoDelay(true);
    }
    if (head.length > 0) client.unshift(head);
    client.on('data', isAlive).pipe(source);
    source.on('data', isAlive).pipe(client);
    // The other side closes after the rest of its bytes.
    client.once('close', () => {
      linger(source);
    });
    source.once('close', () => {
      linger(client);
    });
  }

  /** Cuts the tunnel after too long a silence; to be called at intervals. */
  check(): void {
    if (this.#silentMs >= tunnelIdleMs) this.cut();
    this.#silentMs += tunnelCheckMs;
  }

  end(): void {
    for (const [from, to] of [
      [this.#client, this.#source],
      [this.#source, this.#client],
    ] as const) {
      from.unpipe(to);
      linger(to);
    }
  }

  cut(): void {
    this.#client.destroy();
    this.#source.destroy();
  }
}

function untilClosed(side: Duplex): Promise<void> {
  return new Promise((resolve) => {
    if (side.closed) resolve();
    else {
      side.once('close', () => {
        resolve();
      });
    }
  });
}

function switchingHead({ protocol, fields }: SwitchedProtocol, nowMs: number): string {
  const upgraded = `Upgrade: ${protocol}\r\nConnection: Upgrade\r\n`;
  return `${statusLine(101)}${upgraded}${fieldText(fields, nowMs)}\r\n`;
}
