/** The client of a request for which an answer may be reused. */
export interface ReuseClient {
  readonly address: string;
  /** Its field Authorization. */
  readonly authorization: string | undefined;
  /** Its field Cookie. */
  readonly cookie: string | undefined;
  /** Whether the request came over TLS. */
  readonly isSecure: boolean;
}
