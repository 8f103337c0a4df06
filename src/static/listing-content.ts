import { createHash } from 'node:crypto';
import type { DiskMount } from '../config/config.ts';
import { preferredType } from '../http/negotiation.ts';
import { fieldLines, withoutFields, type FieldList } from '../http/reply.ts';
import { shelfKey, type Asked } from './mount-path.ts';
import { listingPage, listingPolicy } from './listing-page.ts';
import { readListing } from './listing.ts';
import type { Loaded } from './mount-replies.ts';

/** The forms of a listing. */
export type ListingType = 'text/html' | 'application/json';

/**
 * The form of a listing that an Accept field asks for (RFC 9110 §12.5.1); HTML where it has no
 * opinion.
 */
export function listingType(accept: string | undefined): ListingType {
  const types: readonly ListingType[] = ['text/html', 'application/json'];
  return preferredType(accept, types) === 'application/json' ? 'application/json' : 'text/html';
}

/** The shelf's key of a folder's listing in the form that is asked for. */
export function listingKey(mount: DiskMount, { path, fields }: Asked): string {
  return shelfKey(mount, path, listingType(fields.accept));
}

const policyName = 'content-security-policy';

/** The headers of a mount that its listings as a page have, too. */
export function pageHeaders({ headers }: Pick<DiskMount, 'headers'>): FieldList {
  return withoutFields(headers, policyName);
}

/**
 * The listing of a folder below the root as a page or as JSON, its bytes being its validator;
 * undefined when there is no such folder. Fails as readListing does.
 */
export async function loadListing(
  mount: DiskMount,
  {
    below,
    path,
    type,
    fields,
  }: {
    readonly below: string;
    readonly path: string;
    readonly type: ListingType;
    readonly fields: FieldList;
  },
): Promise<Loaded | undefined> {
  const listing = await readListing(mount, { below, path });
  if (listing === undefined) return undefined;
  const html = type === 'text/html';
  const own = fieldLines(mount.headers, policyName).join(', ');
  const bytes = Buffer.from(html ? listingPage(listing, mount.path) : JSON.stringify(listing));
  const etag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  return {
    representation: {
      status: 200,
      contentType: html ? 'text/html; charset=utf-8' : 'application/json',
      etag: `"${etag}"`,
      lastModifiedMs: undefined,
      fields: [
        ...fields,
        'Vary',
        'Accept',
        ...(html ? ['Content-Security-Policy', listingPolicy(own)] : []),
      ],
      bytesLength: bytes.length,
    },
    bytes,
    identity: undefined,
  };
}
