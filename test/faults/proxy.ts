import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP proxy that a test can cut or stall. */
export class FaultyProxy {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isCut = false;
  #isStalled = false;
  readonly #target: number;

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
  }

  /** Listens on a port of the loopback and forwards connections to the port `target`. */
  static async start(target: number): Promise<FaultyProxy> {
    const server = createServer();
    const proxy = new FaultyProxy(server, target);
    server.on('connection', (client) => {
      proxy.#accept(client);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  #accept(client: Socket): void {
    client.on('error', () => undefined);
    if (this.#isCut) {
      client.destroy();
      return;
    }
    const server = connect(this.#target, '127.0.0.1');
    server.on('error', () => undefined);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    const end = (): void => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    client.on('close', end);
    server.on('close', end);
    client.pipe(server).pipe(client);
    if (this.#isStalled) for (const socket of pair) socket.pause();
  }

  /** Ends all connections, and refuses new ones until `heal`. */
  cut(): void {
    this.#isCut = true;
    for (const [client, server] of this.#pairs) {
      client.destroy();
      server.destroy();
    }
  }

  /** Forwards no bytes until `heal`; connections stay open. */
  stall(): void {
    this.#isStalled = true;
    for (const pair of this.#pairs) {
      for (const socket of pair) {
        socket.unpipe();
        socket.pause();
      }
    }
  }

  heal(): void {
    this.#isCut = false;
    if (!this.#isStalled) return;
    this.#isStalled = false;
    for (const [client, server] of this.#pairs) client.pipe(server).pipe(client);
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}
