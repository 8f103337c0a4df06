import { browserConditions } from '../../../modules/visitors/conditions/browser.ts';
import { locationConditions } from '../../../modules/visitors/conditions/location.ts';
import { percent } from '../../../modules/visitors/conditions/percent.ts';
import { userConditions } from '../../../modules/visitors/conditions/user.ts';
import { prefersHtml } from '../../http/representation/negotiation.ts';
import type { JsonObject } from '../../values/json/json.ts';
import {
  type Condition,
  type ConditionType,
  type PreviewField,
  defineCondition,
  listText,
  setOf,
  textField,
} from './condition.ts';
import { query } from './query.ts';
import { timeConditions } from './time.ts';

/** The kinds of callers that request a page. */
const callers = ['navigation', 'iframe', 'image', 'script', 'fetch', 'api'] as const;

/** `caller`: the kind of client, by Sec-Fetch-Mode and -Dest (Fetch Metadata), then Accept. */
const caller = defineCondition<ReadonlySet<CallerKind>>({
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

/** Every condition that an `if` may have (docs/design/rendering.md#breadcrumbs). */
export const conditionTypes: readonly ConditionType[] = [
  ...userConditions,
  ...locationConditions,
  ...browserConditions,
  caller,
  query,
  ...timeConditions,
  percent,
];

/** The fields by which explain and previews describe a visitor; conditions may share one. */
export const previewFields: Readonly<Record<string, PreviewField>> = Object.fromEntries(
  conditionTypes.flatMap(({ preview }) => Object.entries(preview)),
);

const typesByName = new Map(conditionTypes.map((type) => [type.name, type]));

/** The conditions of an `if`, and the names of those with an unknown name or an invalid value. */
export function parseConditions(written: JsonObject): {
  readonly conditions: readonly Condition[];
  readonly unreadable: readonly string[];
} {
  const conditions: Condition[] = [];
  const unreadable: string[] = [];
  for (const [name, value] of Object.entries(written)) {
    const condition = typesByName.get(name)?.parse(value);
    if (condition === undefined) unreadable.push(name);
    else conditions.push(condition);
  }
  return { conditions, unreadable };
}

/** One of the kinds of callers. */
type CallerKind = (typeof callers)[number];

/** Whether a text names a kind of caller. */
function isCallerKind(text: string): text is CallerKind {
  return (callers as readonly string[]).includes(text);
}

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
