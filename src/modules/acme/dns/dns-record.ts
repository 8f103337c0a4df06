/** A TXT record that proves control of a domain (dns-01, RFC 8555 §8.4). */
export interface DnsRecord {
  /** Such as `_acme-challenge.example.com`, without a final dot. */
  readonly name: string;
  readonly value: string;
}

/** Changes the records of a domain. Both functions reject with an Error for the operator. */
export interface DnsRecords {
  /** Adds a record; resolves once the ACME server can find it. */
  present(record: DnsRecord, signal: AbortSignal): Promise<void>;
  /** Removes it. */
  cleanup(record: DnsRecord, signal: AbortSignal): Promise<void>;
}
