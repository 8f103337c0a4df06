import type { SharedFiles } from './shared-files.ts';

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
