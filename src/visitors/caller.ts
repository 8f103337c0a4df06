import { prefersHtml } from '../http/negotiation.ts';

/** The kinds of callers that request a page. */
export const callers = ['navigation', 'iframe', 'image', 'script', 'fetch', 'api'] as const;

/** One of the kinds of callers. */
export type CallerKind = (typeof callers)[number];

/** Whether a text names a kind of caller. */
export function isCallerKind(text: string): text is CallerKind {
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
 * The kind of caller, by the Fetch Metadata of browsers (Sec-Fetch-Dest, Sec-Fetch-Mode). Without
 * them, a request whose Accept prefers HTML is a navigation, one that prefers images an image, and
 * any other comes from a program. `field` returns a field of the request by lower-case name.
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
