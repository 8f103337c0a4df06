/** An answered request, with the values of its line in the access log. */
export interface AccessEntry {
  readonly address: string;
  readonly method: string;
  /** The request target as it was sent, because a malformed one has no canonical form. */
  readonly target: string;
  readonly host: string;
  /** The version in the request line, such as `1.1`; empty for a malformed request line. */
  readonly httpVersion: string;
  readonly userAgent: string;
  readonly referer: string;
  readonly accept: string;
  readonly acceptLanguage: string;
  /** The field Sec-Purpose, or the one that older browsers send instead. */
  readonly purpose: string;
  readonly status: number;
  /** Bytes of content that were written to the socket. */
  readonly bytes: number;
  readonly durationMs: number;
  /** `disk:<name>`, `rule:<id>`, `svc1` or `none` (docs/design/requests.md#precedence). */
  readonly source: string;
  /** The cache status: `hit`, `miss` …; undefined for a response without a cache. */
  readonly cache?: string | undefined;
  /** The id of the failure, which the response shows, too. */
  readonly failureId?: string | undefined;
  /** Why the answer is a refusal or a failure: the key of an access rule, or the failure's code. */
  readonly reason?: string | undefined;
  /** The id of its trace; undefined without `[telemetry]`. */
  readonly traceId?: string | undefined;
  /** Id of the caller's key. */
  readonly keyId: string | undefined;
  /** Whether the connection or the content ended before the response was complete. */
  readonly cut: boolean;
  /** Found only for a log that shows them (`AccessRules.wantsDetails`). */
  readonly details?: AccessDetails | undefined;
}

/** The values of a line that the server finds only if the log shows them. */
export interface AccessDetails {
  /** The version of TLS, such as `TLSv1.3`; undefined without TLS. */
  readonly tls: string | undefined;
  /** Bytes of content that the client has sent. */
  readonly bytesIn: number;
  /** From the request to a source until the head of its answer; undefined without a source. */
  readonly sourceMs: number | undefined;
  /** The name of the signed-in user. */
  readonly user: string | undefined;
}

/** What the ini file says about lines of the access log, besides their format. */
export interface AccessRules {
  /** Whether the lines have fields of `AccessEntry.details`. */
  readonly wantsDetails: boolean;
  /** The entry as the log may have it; undefined for a request that has no line. */
  apply(entry: AccessEntry): AccessEntry | undefined;
}

/** Gets the entry of each request. */
export interface AccessLog {
  add(entry: AccessEntry): void;
  /** Writes the buffered lines. */
  flush(): void;
}

/** What the access log has no field for. */
export interface RequestPlace {
  /** The origin and canonical path; undefined for a request that could not be read. */
  readonly place: { readonly origin: string; readonly path: string } | undefined;
  /** ISO 3166-1; undefined if it is not known. */
  readonly country: string | undefined;
  /** When the request arrived, in milliseconds since 1970. */
  readonly nowMs: number;
}

/** The clients that read the access log live. */
export interface LiveEntries {
  readonly isWatched: boolean;
  add(entry: AccessEntry): void;
}

/** The counts of visits. */
export interface VisitEntries {
  /** How long counts are stored; 0 if nothing is counted. */
  readonly retentionMs: number;
  add(entry: AccessEntry, asked: RequestPlace): void;
}
