/** A server under measurement while it runs. */
export interface RunningServer {
  /** `http://127.0.0.1:<port>`, without a final slash. */
  readonly url: string;
  /** The same over TLS; undefined for a server that has no TLS here. */
  readonly tlsUrl?: string | undefined;
  /** Every process that answers requests, or leads those that do. */
  readonly pids: readonly number[];
  /** The file that the server writes its access log to, by appending. */
  readonly accessLog: string;
}

/** A server that can be measured. */
export interface BenchServer {
  readonly name: string;
  /** The start of the only paths that it answers; undefined for one that answers all. */
  readonly below?: string | undefined;
  /** The start of the paths that it does not answer. */
  readonly except?: string | undefined;
  /** Resolves when the server answers; rejects with its output if it ends before. */
  start(): Promise<RunningServer>;
  /** Ends it and resolves when it is gone; nothing happens when it does not run. */
  stop(): Promise<void>;
}

/** What a server needs to know of its surroundings. */
export interface Place {
  /** A folder of its own, which exists. */
  readonly folder: string;
  readonly port: number;
  /** The core that it is pinned to; undefined where pinning is not possible. */
  readonly core: number | undefined;
  /** Where it serves TLS, and with which files. */
  readonly tls?: TlsPlace | undefined;
  /** Origin of the source server that `/fetched/` and `/kept/` are fetched from. */
  readonly source: string;
}

/** A port for TLS, and the files of a certificate for it. */
export interface TlsPlace {
  readonly port: number;
  readonly cert: string;
  readonly key: string;
}
