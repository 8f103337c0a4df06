import { prefersHtml } from '../http/negotiation.ts';

/** What requests a page (docs/design/rendering.md#generic-pages). */
export const callers = ['navigation', 'iframe', 'image', 'script', 'fetch', 'api'] as const;

/** One of them. */
export type CallerKind = (typeof callers)[number];

/** Whether a text names one. */
export function isCaller(text: string): text is CallerKind {
  return (callers as readonly string[]).includes(text);
}

const byDestination: Readonly<Record<string, CallerKind>> = {
  document: 'navigation',
  iframe: 'iframe',
  frame: 'iframe',
  embed: 'iframe',
  object: 'iframe',
  fencedframe: 'iframe',
  image: 'image',
  script: 'script',
  worker: 'script',
  sharedworker: 'script',
  serviceworker: 'script',
};

/**
 * What requests a page, by the Fetch Metadata of browsers (Sec-Fetch-Dest, Sec-Fetch-Mode); a
 * request without them is a navigation where its Accept prefers HTML, an image where it prefers
 * images, else that of a program. `field` gives a field of the request by lower-case name.
 */
export function callerOf(field: (name: string) => string | undefined): CallerKind {
  const destination = field('sec-fetch-dest');
  const mode = field('sec-fetch-mode');
  if (destination !== undefined || mode !== undefined) {
    const known = Object.hasOwn(byDestination, destination ?? '')
      ? byDestination[destination ?? '']
      : undefined;
    return known ?? (mode === 'navigate' ? 'navigation' : 'fetch');
  }
  const accept = field('accept') ?? '';
  if (prefersHtml(accept)) return 'navigation';
  return /^image\//i.test(accept) ? 'image' : 'api';
}
