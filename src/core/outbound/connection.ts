import type { Socket } from 'node:net';
import type { buildConnector, Client, Dispatcher } from 'undici';
import type { HttpVersion } from '../http/request.ts';
import { loadUndici } from '../values/lazy-packages.ts';
import { hasBrokenOff } from './connection-end.ts';

/** A handler of undici that gets the connection of its request. */
export interface ConnectionAware {
  connection?: ConnectionInfo;
}

/** The connection of a request. */
export interface ConnectionInfo {
  /** Whether the connection was used before: it has carried a response, or was idle. */
  hasAnswered: boolean;
  /** Whether it ended incompletely, see connection-end.ts. */
  readonly hasBrokenOff: boolean;
  /** The version of HTTP of its last response, for clients that do not tell it themselves. */
  readonly httpVersion?: HttpVersion;
  /** Called before a request is written. */
  begin(): void;
}

/**
 * A client of a pool, with one connection at a time. It records whether the connection was used
 * before: the other side may close such a connection at any moment (RFC 9112 §9.5), which is no
 * failure of the request that was sent at that moment.
 */
function defineConnection({ Client }: ReturnType<typeof loadUndici>) {
  return class Connection extends Client implements ConnectionInfo {
    hasAnswered = false;
    httpVersion: HttpVersion = '1.1';
    /** Whether the next bytes are the beginning of a response. */
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
              callback(null, this.#withoutContinue(socket));
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
     * Removes a 100 (Continue) before a response. undici treats one as an error if the request did
     * not expect it, but a client must be able to parse it at any time (RFC 9110 §15.2).
     */
    #withoutContinue<S extends Socket>(socket: S): S {
      const push = socket.push.bind(socket);
      socket.push = (chunk: Buffer | null) => {
        if (!this.#awaitsAnswer || chunk === null) return push(chunk);
        const answer = afterContinue(chunk);
        if (answer.length === 0) return true;
        this.#awaitsAnswer = false;
        this.httpVersion = answer[minorAt] === digitZero ? '1.0' : '1.1';
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
  };
}

/** The options that a pool passes to a client. */
type ConnectionOptions = Client.Options & { readonly connect: buildConnector.connector };

let Connection: ReturnType<typeof defineConnection> | undefined;

/** Makes a client for a pool that has a connector. */
export function newConnection(origin: URL, options: object): Client {
  Connection ??= defineConnection(loadUndici());
  return new Connection(origin, options as ConnectionOptions);
}

/** The bytes after the complete 100 (Continue) responses at the beginning of a chunk. */
function afterContinue(chunk: Buffer): Buffer {
  let rest = chunk;
  while (rest[statusAt] === digitOne && isContinue(rest)) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) return rest;
    rest = rest.subarray(end + '\r\n\r\n'.length);
  }
  return rest;
}

function isContinue(chunk: Buffer): boolean {
  return continueLine.test(chunk.toString('latin1', 0, continueLineCharacters));
}

const continueLine = /^HTTP\/1\.[01] 100[ \r]/;
const continueLineCharacters = 'HTTP/1.1 100 '.length;
const statusAt = 'HTTP/1.1 '.length;
const minorAt = 'HTTP/1.'.length;
const digitZero = 0x30;
const digitOne = 0x31;
