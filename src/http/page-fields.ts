import type { FieldList } from './reply.ts';

/**
 * The header fields of every answer that Waymark makes itself: stored and generic pages, files,
 * breadcrumbs, operations and failures, and the 304s of those that have them. What stands here goes
 * out with each of them, so a field for all pages is one line.
 */
export const pageFields: FieldList = [
  // A browser takes content for what its Content-Type says (Fetch §2.2.6).
  'X-Content-Type-Options',
  'nosniff',
];

/** Their names in lower case. */
export const pageFieldNames: ReadonlySet<string> = new Set(
  pageFields.filter((_, at) => at % 2 === 0).map((name) => name.toLowerCase()),
);
