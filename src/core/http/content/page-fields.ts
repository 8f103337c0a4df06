import type { FieldList } from '../reply.ts';

/**
 * The header fields of every answer that Waymark makes itself (stored and generic pages, files,
 * breadcrumbs, operations and failures); a 304 has them, too. To add a field to all pages, add its
 * name and value here. `server/tls/redirect.ts` adds Strict-Transport-Security, which depends on
 * TLS.
 */
export const pageFields: FieldList = [
  // Browsers follow Content-Type and do not sniff the content (Fetch §2.2.6).
  'X-Content-Type-Options',
  'nosniff',
];

/** The lower-case names of `pageFields`. */
export const pageFieldNames: ReadonlySet<string> = new Set(
  pageFields.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
);
