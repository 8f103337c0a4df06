import type { Duplex, Readable } from 'node:stream';
import type { FieldList } from '../http/reply.ts';
import type { HttpVersion } from '../http/request.ts';
import type { ConnectionInfo } from './connection.ts';

/** A request as the client of one version of HTTP sends it. */
export interface OutgoingRequest {
  /**
   * The server: `scheme://host[:port]` of http or https, or `unix:/path` for HTTP over a unix
   * socket.
   */
  readonly origin: string;
  /** Path and query, percent-encoded. */
  readonly target: string;
  readonly method: string;
  /** Name, value, name, value; no Transfer-Encoding, Connection, Keep-Alive, Upgrade or Expect. */
  readonly fields: readonly string[];
  /** A stream is sent at the speed of the server, and chunked without Content-Length. */
  readonly body: Readable | Buffer | undefined;
  /** The protocols to switch to (RFC 9110 §7.8). The server may also respond in HTTP. */
  readonly upgrade?: string | undefined;
  /** The name that TLS checks, if it is not that of the Host field. */
  readonly serverName?: string | undefined;
  /** Replaces the limit of the client for the header section and each piece of content. */
  readonly timeoutMs?: number | undefined;
  /** Trailer fields (RFC 9110 §6.5), complete once the content has ended. */
  readonly trailers?: (() => FieldList) | undefined;
  /** Whether the client waits for the decision about its content (RFC 9110 §10.1.1). */
  readonly expectsContinue?: boolean | undefined;
  /** Bytes at the beginning of the connection, which then has no other request. */
  readonly preamble?: Buffer | undefined;
}

/** How the receiver of a response controls its connection. */
export interface Control {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
  /** Whether the connection has taken all content of a request that has it in memory. */
  readonly isSent?: boolean;
  /** The version of the response; 1.1 if the client leaves it out. */
  readonly httpVersion?: HttpVersion;
  /** Name, value, name, value: texts of one character a byte, without white space around them. */
  readonly rawHeaders?: readonly string[];
  readonly rawTrailers?: readonly string[];
}

/** The receiver of a response, which a client calls as the exchange proceeds. */
export interface ResponseHandler {
  /** Set by the client before `onRequestStart`. */
  connection?: ConnectionInfo;
  /** Whether it has ended or was cancelled: such a request is not sent any more. */
  readonly isOver: boolean;
  /** Called right before the first byte is sent; it may abort the request. */
  onRequestStart(control: Control): void;
  /** Called when bytes of a response arrive. */
  onResponseStarted(): void;
  /** Called for each header section, also that of an informational response. */
  onResponseStart(control: Control, status: number): void;
  onResponseData(control: Control, chunk: Buffer): void;
  onResponseEnd(control: Control): void;
  /** Called if no connection was made, or the response did not end; then nothing else is. */
  onResponseError(control: Control | null, error: Error): void;
  /** Called in place of the response if the server has switched protocols. */
  onRequestUpgrade?(control: Control, status: number, connection: Duplex): void;
}

/** How requests are sent over a connection: a used one, or one that no other request has. */
export type ConnectionChoice = 'pooled' | 'alone';
