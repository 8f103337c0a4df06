/** The log of a data folder among the logs of all nodes. */
export interface LogIdentity {
  /** Equal for a log and its copies; a purge of secrets gives the log another one. */
  readonly id: string;
  /** How often a copy of the log has replaced it as the log of the centre. */
  readonly generation: number;
  /** The node whose log it is a copy of; undefined for a log of its own. */
  readonly follows: Followed | undefined;
}

/** The origin of a copy of a log. */
export interface Followed {
  /** The URL of the node. */
  readonly central: string;
  /** Whether the copy was begun by a version that may have ignored some of its rows. */
  readonly isOlder: boolean;
  /** Whether the first copy is incomplete, so that the node must not serve it. */
  readonly isPartial: boolean;
}

/** A place in a log: the seq of a row, and the id of its transaction; '' for the beginning. */
interface LogPlace {
  readonly log: string;
  readonly seq: number;
  readonly txn: string;
}

/** The rows of the log as texts, for copies of it on other nodes (docs/design/nodes.md). */
export interface RowLog {
  identity(): LogIdentity;
  /** The end of the log. */
  end(): LogPlace;
  /** Whether a place of another node's log is a place in this log, too. */
  has(place: LogPlace): boolean;
  /**
   * Texts of rows after a seq, up to a number of rows and about a number of characters, as
   * followers get them.
   */
  rows(after: number, max: { readonly rows: number; readonly characters: number }): string[];
  /** The rows of a hook that followers get without its secret or its header values. */
  withheldRows(hookId: string): readonly string[];
  /**
   * Makes an empty log a copy of another one, or renews that. Rejects with `conflict` for a log
   * with rows of its own.
   */
  follow(log: Pick<LogIdentity, 'id' | 'generation'>, central: string): Promise<void>;
  /** Records that the first copy is complete. */
  complete(): Promise<void>;
  /** Gives the log a new id, and makes a copy a log of its own. */
  renew(id: string): Promise<void>;
  /**
   * Makes a copy a log of its own with a new id, of the next generation. Rejects with `conflict`
   * for a log that is no complete copy.
   */
  promote(id: string): Promise<void>;
  /**
   * Appends rows of the log that this one copies: whole transactions, in one transaction of LMDB.
   * Rejects with `conflict` for rows that do not continue this log.
   */
  append(rows: readonly string[]): Promise<void>;
  /** Replaces rows that came without secrets by whole ones. Ignores all others. */
  reveal(rows: readonly string[]): Promise<void>;
  /** The digest of the rows up to a seq (docs/design/nodes.md#digest), lower-case hex. */
  digest(upTo: number): Promise<string>;
}
