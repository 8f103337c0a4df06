import type { Socket } from 'node:net';
import { Client, type buildConnector, type Dispatcher } from 'undici';
import { hasBrokenOff } from './connection-end.ts';

/** Who wants to know over which connection a request of theirs goes. */
export interface ConnectionAware {
  connection?: ConnectionInfo;
}

/** What is to be known of a connection, and told to it. */
export interface ConnectionInfo {
  /** Whether it has brought an answer before, or has been idle. */
  hasAnswered: boolean;
  /** Whether it ended in another way than a server ends one on purpose. */
  readonly hasBrokenOff: boolean;
  /** To be told before a request is written. */
  begin(): void;
}

/**
 * One place in a pool: a connection at a time, which knows whether it has carried an answer. One
 * that has may be ended by the other side at any moment (RFC 9112 §9.5), which then says nothing of
 * the request that met it.
 */
class Connection extends Client implements ConnectionInfo {
  hasAnswered = false;
  /** Whether what comes next is the beginning of an answer. */
  #awaitsAnswer = false;
  #socket: Socket | undefined;

  constructor(origin: URL, options: ConnectionOptions) {
    const { connect } = options;
    super(origin, {
      ...options,
      connect: (how, callback) => {
        connect(how, (...[error, socket]) => {
          if (error === null) {
            this.#socket = socket;
            callback(null, this.#withoutGoOn(socket));
          } else callback(error, null);
        });
      },
    });
    this.on('disconnect', () => {
      this.hasAnswered = false;
    });
  }

  get hasBrokenOff(): boolean {
    return this.#socket !== undefined && hasBrokenOff(this.#socket);
  }

  begin(): void {
    this.#awaitsAnswer = true;
  }

  /**
   * Leaves a 100 (Continue) out that comes ahead of an answer: nobody has asked for it, and undici
   * would take it for a broken answer (RFC 9110 §15.2: one has to be expected all the same).
   */
  #withoutGoOn<S extends Socket>(socket: S): S {
    const push = socket.push.bind(socket);
    socket.push = (chunk: Buffer | null) => {
      if (!this.#awaitsAnswer || chunk === null) return push(chunk);
      const answer = behindGoOn(chunk);
      if (answer.length === 0) return true;
      this.#awaitsAnswer = false;
      return push(answer);
    };
    return socket;
  }

  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler & ConnectionAware,
  ): boolean {
    handler.connection = this;
    return super.dispatch(options, handler);
  }
}

/** What a pool says of a connection, the way to it among that. */
type ConnectionOptions = Client.Options & { readonly connect: buildConnector.connector };

/** Makes a connection for a pool that was given a connector. */
export function newConnection(origin: URL, options: object): Connection {
  return new Connection(origin, options as ConnectionOptions);
}

/** What comes behind each 100 (Continue) that is whole. */
function behindGoOn(chunk: Buffer): Buffer {
  let rest = chunk;
  while (rest[statusAt] === one && goOn.test(rest.toString('latin1', 0, goOnCharacters))) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return rest;
    rest = rest.subarray(end + '\r\n\r\n'.length);
  }
  return rest;
}

const goOn = /^HTTP\/1\.[01] 100[ \r]/;
const goOnCharacters = 'HTTP/1.1 100 '.length;
const statusAt = 'HTTP/1.1 '.length;
const one = 0x31;
