import { sameJson, type Json, type JsonObject } from '../../../../src/core/values/json/json.ts';

/** The kinds of page rule, independent of the code (docs/design/page-rules.md#fields). */
export const kinds = [
  'content',
  'content.fetch',
  'resolve',
  'edit-record',
  'insert-record',
  'delete-record',
] as const;

/** One of them. */
export type Kind = (typeof kinds)[number];

/** The properties of a record that decide whether a value is valid. */
export interface Setting {
  readonly kind: Kind;
  /** The engine of the record, if its kind has one. */
  readonly engine: Json | undefined;
}

/** A value of a field in a request. */
interface Sample {
  readonly sent: Json;
  /** The stored form if it is valid; undefined for a value that never is. */
  readonly kept: Json | undefined;
  /** The records for which it is valid; by default all. */
  readonly fits?: (setting: Setting) => boolean;
}

const records = ['edit-record', 'insert-record', 'delete-record'] as const;
const pages = ['content', ...records] as const;

/** Fields that only some kinds have (docs/design/page-rules.md#fields). */
const kindsOf: ReadonlyMap<string, readonly Kind[]> = new Map<string, readonly Kind[]>([
  ['content', ['content']],
  ['contenttype', ['content', 'resolve']],
  ['engine', pages],
  ['table', pages],
]);

const asSent = (...values: readonly Json[]): readonly Sample[] =>
  values.map((sent) => ({ sent, kept: sent }));
const refused = (...values: readonly Json[]): readonly Sample[] =>
  values.map((sent) => ({ sent, kept: undefined }));
const fitting = (sent: Json, fits: (setting: Setting) => boolean): Sample => ({
  sent,
  kept: sent,
  fits,
});

const isKey = ({ kind }: Setting): boolean => kind === 'resolve';
const isFetched = ({ kind }: Setting): boolean => kind === 'content.fetch';
/** Engines with a schema of enginedata; the schema of a kind takes precedence. */
const isOf = (name: string, at: Setting): boolean =>
  at.engine === name && !isKey(at) && !isFetched(at);

/** The members of a sample of enginedata that are not valid: each waits alone. */
export function invalidMembers(enginedata: JsonObject, at: Setting): readonly string[] {
  const { html = '', template = '', target } = enginedata;
  const showsHtml = isKey(at) || ['html', 'template', 'form'].some((engine) => isOf(engine, at));
  return [
    ...(typeof html !== 'string' && showsHtml ? ['html'] : []),
    ...(typeof template !== 'string' && isOf('template', at) ? ['template'] : []),
    ...(target === 'javascript:x' && isKey(at) ? ['target'] : []),
  ];
}

const samples: Readonly<Record<string, readonly Sample[]>> = {
  kind: [...asSent(...kinds), ...refused('blog', 3)],
  path: [
    ...asSent('/', '/a', '/a/b', '/a*', '/a/*', '/*', '/p q', '//a'),
    { sent: '/p%20q', kept: '/p q' },
    { sent: '/p%2520q', kept: '/p%20q' },
    fitting('summer', isKey),
    fitting('x*', isKey),
    // Only another server may have a page there.
    fitting('/a%2Fb', ({ kind }) => kind === 'content.fetch'),
    ...refused('/a*b', '/a/../b', '', 5),
  ],
  origin: [
    ...asSent('*', 'http://shop.example', 'https://b.example'),
    { sent: 'HTTPS://B.example:443', kept: 'https://b.example' },
    ...refused('shop.example', 'http://shop.example/x', 7),
  ],
  content: [...asSent('one', 'two', 'XYZ', { base64: 'AAEC' }), ...refused(5, { base64: '?' })],
  contenttype: [...asSent('text/plain', 'text/css'), ...refused('plain', 1)],
  httpresponse: [
    ...asSent(200, 404, 503),
    // A value is never converted to fit.
    ...refused(199, 600, 'soon', '404', true),
  ],
  engine: [...asSent('html', 'template', 'form', 'paged'), ...refused('none', 1)],
  // invalidMembers has the members that are not valid.
  enginedata: [
    ...asSent(
      { html: '<b>' },
      { html: 5 },
      { html: 5, css: 'a' },
      { template: '{{ path }}' },
      { template: 5, html: 'c' },
      { source: 'http://far.example/*' },
      { source: 'http://far.example/a*', headers: { a: 'secret' } },
      { target: '/b', extra: [null, { n: 1 }] },
      { target: 'javascript:x', html: 'd' },
    ),
    ...refused([], 'x'),
  ],
  table: [...asSent('products', 'u'), ...refused('', 5)],
  lang: [
    ...asSent('de', 'de-AT', 'en', 'fr', 'en-GB'),
    { sent: 'EN-gb', kept: 'en-GB' },
    ...refused('!', 5),
  ],
  designed_at: [
    ...asSent('2026-01-02T03:04:05.000Z', '2026-01-02T02:04:05.000Z'),
    { sent: '2026-01-02T03:04:05Z', kept: '2026-01-02T03:04:05.000Z' },
    { sent: '2026-01-02T04:04:05+02:00', kept: '2026-01-02T02:04:05.000Z' },
    ...refused('yesterday', '2026-02-31T00:00:00Z', 1),
  ],
  until: [
    ...asSent('2999-01-02T03:04:05.000Z'),
    { sent: '2999-01-02T03:04[Europe/Berlin]', kept: '2999-01-02T02:04:00.000Z[Europe/Berlin]' },
    ...refused('2999-01-02T03:04', 1),
  ],
  access: [...refused('two words', 5)],
  rve: [...asSent(1, 2, -1.5, 0), ...refused('x', '2', true)],
  enginecomments: [...asSent('note', 'about XYZ'), ...refused(5)],
};

const byName: ReadonlyMap<string, readonly Sample[]> = new Map(Object.entries(samples));

/** The fields that callers write. */
export const fieldNames: readonly string[] = [...byName.keys()];

/** Unknown names, and names of fields that only the server writes. */
export const otherNames: readonly string[] = [
  'colour',
  '__proto__',
  'constructor',
  '',
  'meta',
  'seq',
  'enginereference',
  '_x_',
  'unknowns',
];

/** A value as text: a text itself, another value as JSON, undefined as the empty text. */
export function asText(value: Json | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** All values of a field in requests. */
export function valuesOf(name: string): readonly Json[] {
  return (byName.get(name) ?? []).map(({ sent }) => sent);
}

/** Whether a name is that of a field. */
export function isField(name: string): boolean {
  return byName.has(name);
}

/** The stored form of a sent value; undefined if it is not valid. */
export function keptValue(name: string, value: Json, setting: Setting): Json | undefined {
  if (kindsOf.get(name)?.includes(setting.kind) === false) return undefined;
  const sample = byName.get(name)?.find(({ sent }) => sameJson(sent, value));
  return sample === undefined || sample.fits?.(setting) === false ? undefined : sample.kept;
}

/** Whether a stored value is still valid. */
export function isValid(name: string, kept: Json, setting: Setting): boolean {
  if (kindsOf.get(name)?.includes(setting.kind) === false) return false;
  return (byName.get(name) ?? []).some(
    (sample) =>
      sample.kept !== undefined && sameJson(sample.kept, kept) && sample.fits?.(setting) !== false,
  );
}
