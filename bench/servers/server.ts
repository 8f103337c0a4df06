import type { SocketTransport } from '../scenarios.ts';

/** A running server of the benchmark. */
export interface RunningServer {
  /** `http://127.0.0.1:<port>`, without a final slash. */
  readonly url: string;
  /** The same over TLS; undefined if the server has no TLS in the benchmark. */
  readonly tlsUrl?: string | undefined;
  /** How it opens websockets; undefined if it has none in the benchmark. */
  readonly sockets?: readonly SocketTransport[];
  /** All its processes: those that answer requests, and the one that leads them. */
  readonly pids: readonly number[];
  /** The file to which the server appends its access log. */
  readonly accessLog: string;
}

/** A server that can be measured. */
export interface BenchServer {
  readonly name: string;
  /** A prefix: the server has only paths below it; undefined if it has all. */
  readonly below?: string | undefined;
  /** A prefix: the server has no paths below it. */
  readonly except?: string | undefined;
  /** Resolves when the server answers; rejects with its output if it ends before. */
  start(): Promise<RunningServer>;
  /** Ends it; resolves when it has ended. Does nothing if it does not run. */
  stop(): Promise<void>;
}

/** Where a server runs: its folder, port, core, TLS and source. */
export interface Place {
  /** An existing folder for this server only. */
  readonly folder: string;
  readonly port: number;
  /** The core that it is pinned to; undefined if it is not pinned. */
  readonly core: number | undefined;
  /** Its port and certificate for TLS. */
  readonly tls?: TlsPlace | undefined;
  /** The origin of the source of `/fetched/` and `/kept/`. */
  readonly source: string;
}

/** A port for TLS, and the files of a certificate for it. */
export interface TlsPlace {
  readonly port: number;
  readonly cert: string;
  readonly key: string;
}
