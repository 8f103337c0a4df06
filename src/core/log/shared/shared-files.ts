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
