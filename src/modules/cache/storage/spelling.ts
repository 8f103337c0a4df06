/**
 * The primary key of a response (RFC 9111 §2): its URL as the client sent it. Behind the canonical
 * URL and a space, which no URL contains, if the two differ: a purge of the canonical URL then
 * finds all of its spellings side by side.
 */
export function spelledUrl(url: string, sentUrl: string): string {
  return url === sentUrl ? url : `${url} ${sentUrl}`;
}

/** The URL as the client sent it, of such a key. */
export function sentUrlOfKey(key: string): string {
  return key.slice(key.indexOf(' ') + 1);
}

/** Whether such a key is that of a canonical URL, in any spelling. */
export function isSpellingOf(key: string, url: string): boolean {
  return key.startsWith(url) && (key.length === url.length || key[url.length] === ' ');
}
