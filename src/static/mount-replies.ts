import { closeSync } from 'node:fs';
import type { DiskMount } from '../config/config.ts';
import { noBody, replyField, type Body, type FieldList, type Reply } from '../http/reply.ts';
import { asksForLess, select, type Representation, type Selection } from '../http/represent.ts';
import type { ContentRequest } from '../http/request.ts';
import { withVary } from '../http/vary.ts';
import { encodePath } from '../model/path.ts';
import { sendBytes, type Page } from '../http/held-page.ts';
import { createFileSource } from '../http/file-source.ts';
import type { OpenFile } from './find-file.ts';

/** A representation with all its bytes in memory. */
export interface Loaded extends Page {
  /**
   * What the file was when its bytes were read; undefined where a later change could not be told by
   * it.
   */
  readonly identity: string | undefined;
}

/** A loaded representation, ready to be sent. */
export interface Held extends Loaded {
  /** The answer to a GET without preconditions and ranges, made once. */
  readonly whole: Reply;
}

/** The answers of one mount: they name it as their source and carry its headers. */
export interface Replies {
  hold(loaded: Loaded): Held;
  fromHeld(held: Held, request: ContentRequest): Reply;
  /** Reads the file while the answer is sent; a file of which nothing is sent is closed at once. */
  fromOpen(file: OpenFile, representation: Representation, request: ContentRequest): Reply;
  /**
   * Sends a browser on to the directory's own URL; without its final slash all relative links would
   * be wrong.
   */
  toDirectory(request: ContentRequest): Reply;
}

/** Makes the answers of a mount. */
export function createReplies({ name, headers }: Pick<DiskMount, 'name' | 'headers'>): Replies {
  const source = `disk:${name}`;
  const sniffing = 'X-Content-Type-Options';
  const named = replyField({ fields: headers }, sniffing.toLowerCase()) !== undefined;
  // Put in behind select, for that leaves out of a 304 what its own rules do not ask for.
  const added = [...(named ? [] : [sniffing, 'nosniff']), ...headers];
  const varies = replyField({ fields: headers }, 'vary') !== undefined;
  const reply = (status: number, fields: FieldList, body: Body): Reply => {
    const said = [...fields, ...added];
    return { status, fields: varies ? withVary(said) : said, body, source };
  };

  function fromBytes(loaded: Loaded, request: Pick<ContentRequest, 'method' | 'fields'>): Reply {
    const { status, fields, body } = sendBytes(loaded, request, source);
    return { ...reply(status, fields, body), isReusable: true };
  }

  return {
    hold: (loaded) => ({ ...loaded, whole: fromBytes(loaded, { method: 'GET', fields: {} }) }),
    fromHeld(held, request) {
      return request.method === 'GET' && !asksForLess(request.fields)
        ? held.whole
        : fromBytes(held, request);
    },
    fromOpen({ descriptor }, representation, request) {
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
    toDirectory({ path, query }) {
      const location = `${encodePath(path)}/${query === '' ? '' : `?${query}`}`;
      return reply(301, ['Location', location, 'Content-Length', '0'], noBody);
    },
  };
}
