/**
 * A case of the corpus: its title; the bytes a client sends, as latin1; the statuses it is answered
 * with and whether the connection goes on (`400 closed`); and the requests that reach the source
 * behind `/far/*` whole: method, target and content each.
 */
export type Case = readonly [title: string, bytes: string, outcome: string, ...reaching: string[]];

/** The outcome of everything that two readers could understand differently. */
export const refused = '400 closed';

/** A request head: its line without version, and its fields besides Host. */
export function head(line: string, ...fields: readonly string[]): string {
  return [`${line} HTTP/1.1`, 'Host: localhost', ...fields, '', ''].join('\r\n');
}

/** A POST to the source. */
export function post(...fields: readonly string[]): string {
  return head('POST /far/a', ...fields);
}

/** A POST to the source with chunked content, which is written out. */
export function chunked(content: string): string {
  return post('Transfer-Encoding: chunked') + content;
}

/** A request that would be seen at the source if something before it was misunderstood. */
export const smuggled = head('GET /far/smuggled');
