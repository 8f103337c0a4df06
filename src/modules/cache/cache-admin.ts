/** Selects the stored responses that a purge removes. */
export type CachePurge =
  /** A canonical URL, in all spellings that clients have sent. */
  | { readonly kind: 'url'; readonly url: string }
  /** Canonical URLs that start with `prefix`. */
  | { readonly kind: 'prefix'; readonly prefix: string }
  /** Responses that a page rule has fetched, by its id. */
  | { readonly kind: 'rule'; readonly rule: string }
  | { readonly kind: 'all' };

/** A stored response in a list. */
export interface CacheListRow {
  /** As a client sent it. */
  readonly url: string;
  /** Id of the page rule that fetched it. */
  readonly rule: string;
  readonly status: number;
  readonly contentType: string | undefined;
  /** Length of its content. */
  readonly bytes: number;
  readonly ageSeconds: number;
  /** The rest of its freshness lifetime; negative if it is stale. */
  readonly freshSeconds: number;
  /** The request fields of its Vary field, in lower case. */
  readonly vary: readonly string[];
  /** The stored part in bytes, `first-last/length`; undefined if all of it is stored. */
  readonly range: string | undefined;
}

/** One page of a list of stored responses. */
export interface CacheListPage {
  readonly rows: readonly CacheListRow[];
  /**
   * The key of the last URL of this page, after which the next one begins; undefined on the last
   * page.
   */
  readonly next: string | undefined;
}

/** The size of the cache. */
export interface CacheCounts {
  readonly answers: number;
  readonly urls: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/** The operations of an administrator on the cache. */
export interface CacheAdmin {
  /** Removes responses, also those that are arriving; resolves to the number of URLs with one. */
  purge(purge: CachePurge): Promise<number>;
  /**
   * Lists about `limit` responses after the key `after`, whose canonical URLs start with `prefix`,
   * of one rule or of all.
   */
  list(query: {
    readonly prefix: string;
    readonly rule: string | undefined;
    readonly after: string | undefined;
    readonly limit: number;
  }): CacheListPage;
  counts(): CacheCounts;
}
