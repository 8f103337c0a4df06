import { canonicalPath } from '../../core/values/path.ts';

/** Characters of a way back, which is in a cookie; a longer one leads to the front page. */
const wayBackCharactersMax = 1_500;

/**
 * The path and query to which a browser returns, from a text that anybody may have written: a path
 * of the same origin, or else `/`. Signing in must not lead to itself, below the canonical path
 * `own`, however it is encoded.
 */
export function wayBackFrom(text: string | undefined, origin: string, own: string): string {
  if (
    text === undefined ||
    text.length > wayBackCharactersMax ||
    !/^\/[\x21-\x5b\x5d-\x7e]*$/.test(text)
  ) {
    return '/';
  }
  const url = URL.parse(origin + text);
  if (url?.origin !== origin || url.username !== '' || url.password !== '') return '/';
  const isElsewhere = canonicalPath(url.pathname)?.startsWith(own) === false;
  return isElsewhere ? url.pathname + url.search + url.hash : '/';
}
