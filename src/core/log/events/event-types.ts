import type { Json, JsonObject } from '../../values/json/json.ts';

const text = { type: 'string', minLength: 1 } as const;
const anyText = { type: 'string' } as const;
const number = { type: 'number' } as const;
const dateTime = { type: 'string', description: 'ISO 8601 date-time.' } as const;
const currency = { type: 'string', pattern: '^[A-Z]{3}$', description: 'ISO 4217 code.' } as const;
/** Decimal numbers as text keep their precision. */
const amount = {
  anyOf: [number, { type: 'string', pattern: '^-?\\d+(?:\\.\\d+)?$' }],
  description: 'A number, or a decimal number as text.',
} as const;

/** The row whose change raises an event of its table (docs/design/webhooks.md#events-of-tables). */
const row = {
  table: { ...text, description: 'If a table of Waymark raises the event: the table …' },
  id: { ...text, description: '… and the id of the row.' },
} as const;

/** A row of the table of event types. */
interface EventTypeRow {
  /** Whether Waymark raises events of the type itself. Applications insert all types. */
  readonly own?: true;
  /** One sentence: when the event occurs. */
  readonly summary: string;
  /** The JSON Schemas (2020-12) of the members that data must have, by name. */
  readonly required: JsonObject;
  /** The JSON Schemas of the members that data may have. Data may have other members, too. */
  readonly optional?: JsonObject;
  readonly example: JsonObject;
  /** Of events that `emit` raises: at most one in each period for a value of the member `per`. */
  readonly rateLimit?: { readonly per: string; readonly periodMs: number };
}

/**
 * The event types that Waymark knows (docs/design/webhooks.md#event-types). Everything that
 * describes them follows from this table: the type of the argument of `emit`, `event.types`, the
 * OpenAPI and AsyncAPI documents, and the page for receivers of webhooks.
 */
const rows = {
  'sale.completed': {
    summary: 'A sale has been completed.',
    required: { id: { ...text, description: 'The sale.' } },
    optional: {
      total: amount,
      currency,
      customer: { ...text, description: 'The customer’s id.' },
      completed_at: dateTime,
      lines: {
        type: 'array',
        items: {
          type: 'object',
          required: ['product'],
          properties: { product: text, quantity: number, price: amount },
        },
      },
    },
    example: {
      id: 'S-1042',
      total: '25.90',
      currency: 'EUR',
      lines: [{ product: 'P-7', quantity: 2, price: '12.95' }],
    },
  },
  'email.requested': {
    summary: 'Somebody has requested an e-mail.',
    required: { to: { anyOf: [text, { type: 'array', minItems: 1, items: text }] } },
    optional: {
      template: text,
      subject: anyText,
      lang: { ...text, description: 'BCP 47 language tag.' },
      fields: { type: 'object', description: 'The values for the template.' },
    },
    example: { to: 'ada@example.com', template: 'receipt', lang: 'en', fields: { sale: 'S-1042' } },
  },
  'record.changed': {
    own: true,
    summary: 'A record has changed: a row of a table, a page rule, webhook or key.',
    required: {
      table: {
        ...text,
        description:
          'The table of the record; Waymark’s own are userinterface, webhook, key and table.',
      },
      id: { ...text, description: 'The record.' },
    },
    optional: {
      action: { ...text, description: 'In tables of Waymark: insert, edit or invalidate.' },
      fields: { type: 'array', items: text, description: 'The names of the changed fields.' },
      seq: {
        type: 'integer',
        description: 'In tables of Waymark: the position of the change in the log.',
      },
      txn: { ...text, description: 'In tables of Waymark: the transaction.' },
      by: { ...text, description: 'In tables of Waymark: the id of the key that wrote it.' },
    },
    example: { table: 'product', id: 'P-7', action: 'edit', fields: ['price'] },
  },
  'error.detected': {
    own: true,
    summary: 'An error has occurred that needs attention.',
    required: { message: text },
    optional: {
      code: { ...text, description: 'The kind of error, for programs.' },
      id: { ...text, description: 'The page rule, webhook or other record that failed.' },
      seq: { type: 'integer', description: 'The delivery that failed, in its webhook’s count.' },
    },
    example: { code: 'bad_gateway', message: 'The source could not be reached.', id: '0198…' },
    rateLimit: { per: 'id', periodMs: 60_000 },
  },
  'account.balance_changed': {
    summary: 'The balance of a charge account has changed.',
    required: { account: text, balance: amount },
    optional: { previous: amount, currency, reason: anyText, ...row },
    example: { account: 'A-3', balance: '120.00', previous: '145.90', currency: 'EUR' },
  },
  'stock.level_changed': {
    summary: 'The stock of a product has changed.',
    required: { product: text, level: number },
    optional: { previous: number, location: text, ...row },
    example: { product: 'P-7', level: 3, previous: 5, location: 'counter-2' },
  },
  'draft.submitted': {
    own: true,
    summary: 'A draft is ready for review.',
    required: { id: { ...text, description: 'The draft.' }, name: text },
    optional: { by: { ...text, description: 'The id of the key that submitted it.' } },
    example: { id: '0198…', name: 'spring', by: '0198…' },
  },
  'draft.approved': {
    own: true,
    summary: 'A draft has been approved as it is now.',
    required: { id: { ...text, description: 'The draft.' }, name: text },
    optional: { by: { ...text, description: 'The id of the key that approved it.' } },
    example: { id: '0198…', name: 'spring', by: '0198…' },
  },
  'draft.published': {
    own: true,
    summary: 'A draft has been published: its changes are live.',
    required: { id: { ...text, description: 'The draft.' }, name: text },
    optional: {
      by: { ...text, description: 'The id of the key that published it.' },
      records: { type: 'integer', description: 'How many records it has changed.' },
    },
    example: { id: '0198…', name: 'spring', by: '0198…', records: 12 },
  },
  'draft.publish_failed': {
    own: true,
    summary: 'A draft was not published at its time.',
    required: { id: { ...text, description: 'The draft.' }, name: text, reason: text },
    optional: {
      at: { ...dateTime, description: 'The time for which it was scheduled, ISO 8601.' },
      by: { ...text, description: 'The id of the key that scheduled it.' },
    },
    example: {
      id: '0198…',
      name: 'spring',
      at: '2026-12-01T07:00:00.000Z',
      reason: 'The draft or the live records have changed since the report.',
    },
  },
  'webhook.test': {
    own: true,
    summary: 'A test of one webhook. Only that webhook gets it.',
    required: { hook: { ...text, description: 'The webhook’s id.' } },
    optional: { message: anyText },
    example: { hook: '0198…', message: 'This is a test.' },
  },
} as const satisfies Readonly<Record<string, EventTypeRow>>;

type Rows = typeof rows;

/** The event types that Waymark itself raises. */
export type OwnEventType = {
  [Type in keyof Rows]: Rows[Type] extends { readonly own: true } ? Type : never;
}[keyof Rows];

/** The data of an event of a type, as its schema describes it. */
export type EventData<Type extends keyof Rows> = MembersOf<Rows[Type]['required']> &
  (Rows[Type] extends { readonly optional: infer Optional }
    ? Partial<MembersOf<Optional>>
    : object);

type MembersOf<Schemas> = { readonly [Name in keyof Schemas]: ValueOf<Schemas[Name]> };

/** The TypeScript type of the values that a JSON Schema describes. */
type ValueOf<Schema> = Schema extends { readonly anyOf: readonly (infer Choice)[] }
  ? ValueOf<Choice>
  : Schema extends { readonly type: 'string' }
    ? string
    : Schema extends { readonly type: 'number' | 'integer' }
      ? number
      : Schema extends { readonly type: 'boolean' }
        ? boolean
        : Schema extends { readonly type: 'array'; readonly items: infer Item }
          ? readonly ValueOf<Item>[]
          : Schema extends { readonly type: 'object' }
            ? JsonObject
            : Json;

/** A known event type, as event.types lists it. */
export interface KnownEventType {
  readonly type: string;
  /** One sentence: when the event occurs. */
  readonly summary: string;
  /** Whether Waymark raises events of the type itself. */
  readonly own: boolean;
  /** JSON Schema (2020-12) of the event's data, with an example. */
  readonly schema: JsonObject;
}

/** The event types that Waymark knows. */
export const knownEventTypes: readonly KnownEventType[] = Object.entries<EventTypeRow>(rows).map(
  ([type, { own = false, summary, required, optional, example }]) => ({
    type,
    summary,
    own,
    schema: {
      type: 'object',
      required: Object.keys(required),
      properties: { ...required, ...optional },
      examples: [example],
    },
  }),
);

/** The limit on how often `emit` raises events of a type; undefined for none. */
export function emitRateLimit(type: OwnEventType): EventTypeRow['rateLimit'] {
  const row: EventTypeRow = rows[type];
  return row.rateLimit;
}
