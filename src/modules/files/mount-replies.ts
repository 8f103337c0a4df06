import { closeSync } from 'node:fs';
import type { DiskMount } from '../../core/config/config.ts';
import { createFileSource } from '../../core/http/content/file-source.ts';
import type { Page } from '../../core/http/content/page-reply.ts';
import { pageFields } from '../../core/http/content/page.ts';
import {
  type Body,
  type FieldList,
  type Reply,
  noBody,
  replyField,
  withVary,
  withoutFields,
} from '../../core/http/reply.ts';
import {
  type Representation,
  type Selection,
  select,
} from '../../core/http/representation/represent.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { encodePath } from '../../core/values/path.ts';
import type { CompressiblePage, PageCompressor } from '../compression/page-compressor.ts';
import type { OpenFile } from './precompressed.ts';

/** A representation with all its bytes in memory. */
export interface LoadedContent extends Page {
  /**
   * The file's version when its bytes were read; undefined if a later change might leave it the
   * same.
   */
  readonly version: string | undefined;
}

/** Loaded content that is ready to be sent, also compressed if the mount compresses it. */
export interface CachedContent extends CompressiblePage {
  /** As in `LoadedContent`. */
  readonly version: string | undefined;
}

/** Makes the replies of one mount, with its headers and with its name for the access log. */
export interface MountReplies {
  /** `isOnly`: the content has no other codings than those that the server makes. */
  prepare(loaded: LoadedContent, isOnly: boolean): CachedContent;
  fromMemory(content: CachedContent, request: ContentRequest): Reply;
  /** The reply reads the file while it is sent, and closes it; at once if it sends no content. */
  fromFile(file: OpenFile, representation: Representation, request: ContentRequest): Reply;
  /** Redirects to another path of the same content, and keeps the query. */
  redirect(path: string, request: ContentRequest): Reply;
}

/** Creates the replies of a mount. */
export function createMountReplies(
  { name, headers, compress }: Pick<DiskMount, 'name' | 'headers' | 'compress'>,
  compressor: PageCompressor,
): MountReplies {
  const source = `disk:${name}`;
  const named = headers.filter((_, at) => at % 2 === 0).map((field) => field.toLowerCase());
  // `reply` adds these after `select` has chosen the fields, so a 304 has them too.
  const added = [...withoutFields(pageFields, ...named), ...headers];
  const varies = replyField({ fields: headers }, 'vary') !== undefined;
  const reply = (status: number, fields: FieldList, body: Body): Reply => {
    const all = [...fields, ...added];
    return { status, fields: varies ? withVary(all) : all, body, source };
  };
  const complete = ({ status, fields, body }: Reply): Reply => ({
    ...reply(status, fields, body),
    isReusable: true,
  });
  const answered = { source, complete };

  return {
    prepare: ({ version, ...page }, isOnly) =>
      compress && isOnly
        ? { ...compressor.prepare(page, answered), version }
        : { identity: { ...page, answered }, variants: undefined, version },
    fromMemory: (content, request) => compressor.respond(content, request),
    fromFile({ descriptor }, representation, request) {
      let selection: Selection | undefined;
      try {
        selection = select(representation, request);
      } finally {
        if (selection === undefined || selection.parts.length === 0) closeSync(descriptor);
      }
      const { status, fields, parts, bytesLength } = selection;
      if (parts.length === 0) return reply(status, fields, noBody);
      const file = createFileSource(descriptor);
      return reply(status, fields, { kind: 'file', file, parts, bytesLength });
    },
    redirect(path, { query }) {
      const location = `${encodePath(path)}${query === '' ? '' : `?${query}`}`;
      return reply(301, ['Location', location, 'Content-Length', '0'], noBody);
    },
  };
}
