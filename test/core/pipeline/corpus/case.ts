/**
 * A case of the corpus: its title; the bytes that a client sends, as latin1; the statuses of the
 * responses, and whether the server closes the connection (`400 closed`); and the complete requests
 * that reach the source of `/far/*`: method, target and content.
 */
export type Case = readonly [title: string, bytes: string, outcome: string, ...reaching: string[]];

/** The outcome of a message that two recipients could read differently. */
export const refused = '400 closed';

/** A request head: its line without version, and its fields besides Host. */
export function head(line: string, ...fields: readonly string[]): string {
  return [`${line} HTTP/1.1`, 'Host: localhost', ...fields, '', ''].join('\r\n');
}

/** A POST to the source. */
export function post(...fields: readonly string[]): string {
  return head('POST /far/a', ...fields);
}

/** A POST to the source with chunked content; `content` includes the chunk lines. */
export function chunked(content: string): string {
  return post('Transfer-Encoding: chunked') + content;
}

/** A request that reaches the source only if the server misreads something before it. */
export const smuggled = head('GET /far/smuggled');
