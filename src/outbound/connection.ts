import { Client, type Dispatcher } from 'undici';

/** Who wants to know over which connection a request of theirs goes. */
export interface Travelling {
  connection?: Connection;
}

/**
 * One place in a pool: a connection at a time, which knows whether it has carried an answer. One
 * that has may be ended by the other side at any moment (RFC 9112 §9.5), which then says nothing of
 * the request that met it.
 */
export class Connection extends Client {
  hasAnswered = false;

  constructor(...[origin, options]: ConstructorParameters<typeof Client>) {
    super(origin, options);
    this.on('disconnect', () => {
      this.hasAnswered = false;
    });
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler & Travelling,
  ): boolean {
    handler.connection = this;
    return super.dispatch(options, handler);
  }
}

/** Makes a connection for a pool. */
export function newConnection(origin: URL, options: object): Connection {
  return new Connection(origin, options);
}
