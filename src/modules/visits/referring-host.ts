/** Characters of a Referer that are read for its host, and referring hosts in memory. */
const refererCharactersMax = 2_048;

const nothing = '(none)';
const unknown = '(unknown)';

/** The host in a Referer (RFC 9110 §10.1.3), without its port; `(none)` without the field. */
export function referringHost(referer: string | undefined): string {
  if (referer === undefined || referer === '') return nothing;
  // Only the host is of interest, and a URL that is cut off still has it.
  const url = URL.parse(referer.slice(0, refererCharactersMax));
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:';
  return isWeb && url.hostname !== '' ? url.hostname.slice(0, 253) : unknown;
}
