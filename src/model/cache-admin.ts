/** Which kept answers of other servers a purge is about. */
export type CachePurge =
  | { readonly kind: 'url'; readonly url: string }
  /** URLs that begin so. */
  | { readonly kind: 'prefix'; readonly prefix: string }
  /** Those that a page rule has asked for, by its id. */
  | { readonly kind: 'rule'; readonly rule: string }
  | { readonly kind: 'all' };

/** A kept answer as a list shows it. */
export interface CacheListRow {
  readonly url: string;
  /** Id of the page rule that asked for it. */
  readonly rule: string;
  readonly status: number;
  readonly contentType: string | undefined;
  /** Of its content. */
  readonly bytes: number;
  readonly ageSeconds: number;
  /** For how long it holds from now on; negative for one that is stale. */
  readonly freshSeconds: number;
  /** The request fields that it varies by, lower case. */
  readonly vary: readonly string[];
  /** `first-last/length` of what is kept, in bytes; undefined for all of it. */
  readonly range: string | undefined;
}

/** One page of a list of kept answers. */
export interface CacheListPage {
  readonly rows: readonly CacheListRow[];
  /** The URL behind which the next page begins; undefined at the end. */
  readonly next: string | undefined;
}

/** How much is kept. */
export interface CacheCounts {
  readonly answers: number;
  readonly urls: number;
  readonly bytes: number;
  readonly bytesMax: number;
}

/** The kept answers as those see them who look after them. */
export interface CacheAdmin {
  /** Lets go of answers, those on their way included; resolves to how many URLs had some. */
  purge(purge: CachePurge): Promise<number>;
  /** About so many of those whose URL begins so, of one rule where that is given, behind a URL. */
  list(asked: {
    readonly prefix: string;
    readonly rule: string | undefined;
    readonly after: string | undefined;
    readonly limit: number;
  }): CacheListPage;
  counts(): CacheCounts;
}
