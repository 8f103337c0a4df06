import { createHash } from 'node:crypto';
import type { DiskMount } from '../../core/config/config.ts';
import { preferredType } from '../../core/http/representation/negotiation.ts';
import { fieldLines, withoutFields, type FieldList } from '../../core/http/reply.ts';
import { listingPage, listingPolicy } from './listing-page.ts';
import { readListing } from './listing.ts';
import { fileCacheKey, type MountRequest } from './mount-path.ts';
import type { LoadedContent } from './mount-replies.ts';

/** The media types in which a listing is available. */
type ListingType = 'text/html' | 'application/json';

/** The media type that an Accept field prefers (RFC 9110 §12.5.1); HTML without a preference. */
export function listingType(accept: string | undefined): ListingType {
  const types: readonly ListingType[] = ['text/html', 'application/json'];
  return preferredType(accept, types) === 'application/json' ? 'application/json' : 'text/html';
}

/** The key under which a folder's listing is cached, in the media type that a request prefers. */
export function listingCacheKey(mount: DiskMount, { path, fields }: MountRequest): string {
  return fileCacheKey(mount, path, listingType(fields.accept));
}

const policyName = 'content-security-policy';

/** The headers of a mount for its HTML listings, which have a policy of their own. */
export function pageHeaders({ headers }: Pick<DiskMount, 'headers'>): FieldList {
  return withoutFields(headers, policyName);
}

/**
 * Reads the listing of a folder below the root as HTML or JSON; undefined if there is no such
 * folder. Its entity tag is a hash of its bytes. Fails as readListing does.
 */
export async function loadListingContent(
  mount: DiskMount,
  folder: { readonly relativePath: string; readonly path: string },
  { type, fields }: { readonly type: ListingType; readonly fields: FieldList },
): Promise<LoadedContent | undefined> {
  const listing = await readListing(mount, folder);
  if (listing === undefined) return undefined;
  const html = type === 'text/html';
  const mountPolicy = fieldLines(mount.headers, policyName).join(', ');
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
        ...(html ? ['Content-Security-Policy', listingPolicy(mountPolicy)] : []),
      ],
      bytesLength: bytes.length,
    },
    bytes,
    version: undefined,
  };
}
