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
  /** Removes a file that was stored before a time, in milliseconds since 1970. */
  remove(sha256: string, beforeMs: number): Promise<void>;
}

/** What a node reads of a file: the byte where the chunks begin, and these. */
export interface SharedContent {
  readonly first: number;
  readonly chunks: AsyncIterable<Uint8Array>;
}
