/** The session of a visitor who has signed in by `[login]`, as a node stores it. */
export interface LoginSession {
  /** A UUIDv7: ids are in the order of their beginning. */
  readonly id: string;
  /** SHA-256 of the secret in the cookie, lower-case hex. */
  readonly hash: string;
  readonly user: string;
  readonly roles: readonly string[];
  readonly issuer: string;
  /** The name of its section; absent for that of `[login]`, as in sessions of older versions. */
  readonly provider?: string;
  /**
   * Hashes by which the session is found: the first is that of the subject, which identifies the
   * person; the second, if there is one, that of the session at the provider.
   */
  readonly found: readonly [string, string?];
  /** ISO 8601, UTC. */
  readonly created: string;
  readonly expires: string;
}

/** A key that seals what a browser keeps during a sign-in. */
export interface LoginKey {
  /** 32 bytes, base64. */
  readonly secret: string;
  /** Milliseconds since 1970. */
  readonly createdMs: number;
}
