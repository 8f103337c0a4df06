import type { Databases } from '../databases.ts';
import type { WriteQueue } from '../write/write-queue.ts';

/**
 * An entry of a shared log. Positions grow, and need not be consecutive: `after` is the position of
 * the entry before it, or 0.
 */
export interface SharedEntry {
  readonly after: number;
  readonly position: number;
  readonly data: Uint8Array;
}

/**
 * A log that several nodes append to (docs/design/cluster.md). All nodes read the same entries in
 * the same order, and an entry is never changed or removed.
 */
export interface SharedLog {
  /** The id of the log: a node with entries of another log must stop. */
  readonly id: string;
  /**
   * Appends an entry directly after the one at `after`, or nothing: resolves to its position once
   * most servers have it on their disks, or to undefined if another entry follows `after`. It
   * repeats the request until it knows the outcome. Rejects with `unavailable` if it does not know
   * it after some seconds: the entry may then still appear, until another entry follows `after`.
   * Rejects with `too_large` if the entry is too large for the log.
   */
  append(data: Uint8Array, after: number): Promise<number | undefined>;
  /**
   * The entries after the one at `after`, existing ones at once and new ones as they come, each
   * exactly once, also when connections are lost meanwhile. Ends when the signal aborts. Rejects
   * with `conflict` if the log has another id now, or no longer has these entries.
   */
  entries(after: number, signal: AbortSignal): AsyncIterable<SharedEntry>;
  /** The position of the newest entry; 0 for none. Rejects with `unavailable` in time. */
  end(): Promise<number>;
  /** Sends a message to all nodes, outside of the log. Nothing stores it, and it may be lost. */
  broadcast(data: Uint8Array): Promise<void>;
  /** Calls a listener for each broadcast of any node; the returned function ends that. */
  onBroadcast(listener: (data: Uint8Array) => void): () => void;
  /** The files of assets, which are no entries. */
  readonly files: SharedFiles;
  /** Whether the log can be reached, and if not, why, as a sentence. */
  state(): { readonly isConnected: boolean; readonly problem: string | undefined };
  close(): Promise<void>;
}

/** Writes into the databases of the deliverer. It may run several times: only the last counts. */
export type PutDelivery<T> = (databases: Databases) => T;

/** Makes the writes of the deliverer durable: in this data folder, or in a log of several nodes. */
export interface DeliveryWriter {
  /**
   * Runs `decide` in a write transaction, and then the function that it returns. Rejects with what
   * `decide` throws, or with a Failure of storage.
   */
  write<T>(decide: () => PutDelivery<T>): Promise<T>;
}

/** The writer of a single machine. */
export function createLocalDeliveryWriter(databases: Databases, queue: WriteQueue): DeliveryWriter {
  return {
    write: (decide) =>
      queue.write(() => {
        const put = decide();
        return () => ({ result: put(databases), bytes: 0 });
      }),
  };
}

/** A task of a cluster as one of its nodes sees it. */
export interface ClusterTask {
  /**
   * Takes the turn of this node, and keeps it until `release`. Rejects with `conflict` while
   * another node has it, with `unavailable` without the shared log. `lost` is called if another
   * node has taken it over, because this one gave no sign.
   */
  take(lost: () => void): Promise<void>;
  /** Writes in the turn of this node. Rejects with `conflict` if it is over. */
  write(put: PutDelivery<void>): Promise<void>;
  /** Lets another node take its turn at once. */
  release(): Promise<void>;
  /** The member that has the turn; undefined for none. See memberOf. */
  holder(): string | undefined;
}

/** A file that the servers of a cluster have, or a part of one that was interrupted. */
export interface SharedFile {
  /** Lower-case hex SHA-256 of its content. */
  readonly sha256: string;
  /** Whether all of it was stored. */
  readonly isWhole: boolean;
}

/**
 * The files of assets that all nodes of a cluster share, each by its hash
 * (docs/design/cluster.md#files-of-assets). All of it rejects with `unavailable` if the servers do
 * not answer for some seconds.
 */
export interface SharedFiles {
  /**
   * Stores a file, also one that is there: from now on it counts as new. Resolves once most servers
   * have all of it on their disks. `read` reads a piece of it.
   */
  put(
    sha256: string,
    bytes: number,
    read: (first: number, length: number) => Promise<Uint8Array>,
  ): Promise<void>;
  /** The content of a file from a byte on; undefined if the servers do not have all of it. */
  get(sha256: string, first: number, signal: AbortSignal): Promise<SharedContent | undefined>;
  /** All files, also those of which only a part was stored. */
  list(): Promise<readonly SharedFile[]>;
  /**
   * The state of their copies, by a single request; undefined while no file was stored. Rejects
   * with `unavailable` within some seconds.
   */
  state(): Promise<SharedFilesState | undefined>;
  /** Removes a file that was stored before a time, in milliseconds since 1970. */
  remove(sha256: string, beforeMs: number): Promise<void>;
}

/** What a node reads of a file: the byte where the chunks begin, and these. */
export interface SharedContent {
  readonly first: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** A server that has a copy of what nodes share. */
export interface CopyServer {
  readonly name: string;
  readonly role: 'leader' | 'replica';
  /** Whether it has all messages, is behind the leader, or cannot be reached by it. */
  readonly state: 'current' | 'behind' | 'offline';
  /** Messages that it has not stored yet. */
  readonly lag: number;
}

/** The copies of the files that nodes share. */
export interface SharedFilesState {
  /** The name of the stream with them. */
  readonly stream: string;
  readonly messages: number;
  /** The bytes of one copy. */
  readonly bytes: number;
  /** How many servers should have a copy, and how many one of the log. */
  readonly copies: number;
  readonly log_copies: number;
  readonly servers: readonly CopyServer[];
  /** What is wrong with the copies, and what to do, as sentences. */
  readonly problem?: string;
}
