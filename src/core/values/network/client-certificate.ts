/** The certificate of a TLS client, as the handshake has checked it (RFC 8446 §4.4.2). */
export interface ClientCertificate {
  /** The subject as RFC 4514 writes it, the most specific part first: `CN=ann,O=Example`. */
  readonly subject: string;
  /** The issuer in the same form. */
  readonly issuer: string;
  /** Hexadecimal, upper case. */
  readonly serial: string;
  /** SHA-256 of the certificate, hexadecimal, lower case. */
  readonly fingerprint: string;
  /** The common names of the subject, then its names for DNS, mail and URIs (RFC 5280 §4.2.1.6). */
  readonly names: readonly string[];
  /** When it ends, in milliseconds since 1970. */
  readonly endMs: number;
}

/** What is known about the certificate of a client on a connection. */
export type ClientIdentity =
  /** The handshake did not ask for a certificate of the authorities of this host. */
  | { readonly state: 'not_asked' }
  /** The client has sent none. */
  | { readonly state: 'none' }
  /** A sentence says why it does not count. */
  | { readonly state: 'refused'; readonly says: string }
  | { readonly state: 'valid'; readonly certificate: ClientCertificate };
