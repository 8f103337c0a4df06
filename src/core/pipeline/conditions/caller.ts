import { prefersHtml } from '../../http/representation/negotiation.ts';
import { defineCondition, listText, setOf, textField } from './condition.ts';

/** The kinds of callers that request a page. */
const callers = ['navigation', 'iframe', 'image', 'script', 'fetch', 'api'] as const;

/** One of the kinds of callers. */
type CallerKind = (typeof callers)[number];

/** Whether a text names a kind of caller. */
function isCallerKind(text: string): text is CallerKind {
  return (callers as readonly string[]).includes(text);
}

/** `caller`: the kind of client, by Sec-Fetch-Mode and -Dest (Fetch Metadata), then Accept. */
export const caller = defineCondition<ReadonlySet<CallerKind>>({
  name: 'caller',
  parse: (value) => setOf(value, (text) => (isCallerKind(text) ? text : undefined)),
  holds: (wanted, { visitor }) => wanted.has(callerOf((name) => visitor.field(name))),
  explain(wanted, { visitor }) {
    const found = callerOf((name) => visitor.field(name));
    const kinds = listText(wanted);
    return `It applies to callers of the kind ${kinds}; this request is of the kind ${found}.`;
  },
  vary: ['Sec-Fetch-Mode', 'Sec-Fetch-Dest', 'Accept'],
  needs: {},
  preview: {
    caller: textField(
      'The kind of client that requests the page.',
      (text) => (isCallerKind(text) ? { fields: callerFields[text] } : undefined),
      { form: `one of ${callers.join(', ')}`, choices: callers },
    ),
  },
});

/** The header fields that each kind of caller sends, for previews. */
const callerFields: Readonly<Record<CallerKind, Readonly<Record<string, string>>>> = {
  navigation: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
  iframe: { 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
  image: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'image' },
  script: { 'sec-fetch-mode': 'no-cors', 'sec-fetch-dest': 'script' },
  fetch: { 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' },
  api: { accept: 'application/json' },
};

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
function callerOf(field: (name: string) => string | undefined): CallerKind {
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
