import type { JsonObject } from './json.ts';

/**
 * An event type that Waymark knows: one of which it can say what its data holds
 * (docs/design/webhooks.md#events).
 */
export interface KnownEventType {
  readonly type: string;
  /** One sentence: when it comes. */
  readonly summary: string;
  /** JSON Schema (2020-12) of its data, with an example; members it does not name are kept. */
  readonly schema: JsonObject;
}

const text = { type: 'string', minLength: 1 } as const;
const number = { type: 'number' } as const;
const dateTime = { type: 'string', description: 'ISO 8601 date-time.' } as const;
const currency = { type: 'string', pattern: '^[A-Z]{3}$', description: 'ISO 4217 code.' } as const;
/** A number, or the text of a decimal number, which loses nothing. */
const amount = {
  anyOf: [number, { type: 'string', pattern: '^-?\\d+(?:\\.\\d+)?$' }],
  description: 'A number, or a decimal number as text.',
} as const;

/** The event types that Waymark knows, in the order of the seed (§6.1). */
export const knownEventTypes: readonly KnownEventType[] = [
  {
    type: 'sale.completed',
    summary: 'A sale has been completed.',
    schema: data(
      ['id'],
      {
        id: { ...text, description: 'The sale.' },
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
      {
        id: 'S-1042',
        total: '25.90',
        currency: 'EUR',
        lines: [{ product: 'P-7', quantity: 2, price: '12.95' }],
      },
    ),
  },
  {
    type: 'email.requested',
    summary: 'Somebody asked for an e-mail to be sent.',
    schema: data(
      ['to'],
      {
        to: { anyOf: [text, { type: 'array', minItems: 1, items: text }] },
        template: text,
        subject: { type: 'string' },
        lang: { ...text, description: 'BCP 47 language tag.' },
        fields: { type: 'object', description: 'What the template is filled with.' },
      },
      { to: 'ada@example.com', template: 'receipt', lang: 'en', fields: { sale: 'S-1042' } },
    ),
  },
  {
    type: 'record.changed',
    summary:
      'A record has changed: of a product, a customer or any other table, or one of Waymark’s own.',
    schema: data(
      ['table', 'id'],
      {
        table: { ...text, description: 'Of Waymark’s own: userinterface, webhook or key.' },
        id: { ...text, description: 'The record.' },
        action: { ...text, description: 'Of Waymark’s own: insert, edit or invalidate.' },
        fields: { type: 'array', items: text, description: 'Names of the fields that changed.' },
        seq: { type: 'integer', description: 'Of Waymark’s own: the change’s place in the log.' },
        txn: { ...text, description: 'Of Waymark’s own: the transaction.' },
        by: { ...text, description: 'Of Waymark’s own: the id of the key that wrote.' },
      },
      { table: 'product', id: 'P-7', action: 'edit', fields: ['price'] },
    ),
  },
  {
    type: 'error.detected',
    summary: 'Something has failed and needs somebody to look at it.',
    schema: data(
      ['message'],
      {
        message: text,
        code: { ...text, description: 'What a program can tell failures apart by.' },
        id: { ...text, description: 'What it is about: the id of a rule, a hook, a record.' },
      },
      { code: 'bad_gateway', message: 'The source could not be reached.', id: '0198…' },
    ),
  },
  {
    type: 'account.balance_changed',
    summary: 'The balance of a charge account has changed.',
    schema: data(
      ['account', 'balance'],
      { account: text, balance: amount, previous: amount, currency, reason: { type: 'string' } },
      { account: 'A-3', balance: '120.00', previous: '145.90', currency: 'EUR' },
    ),
  },
  {
    type: 'stock.level_changed',
    summary: 'The stock of a product has changed.',
    schema: data(
      ['product', 'level'],
      { product: text, level: number, previous: number, location: text },
      { product: 'P-7', level: 3, previous: 5, location: 'counter-2' },
    ),
  },
  {
    type: 'webhook.test',
    summary: 'A hook is being tried out: it comes to that hook only, by webhook.test.',
    schema: data(
      ['hook'],
      { hook: { ...text, description: 'The hook’s id.' }, message: { type: 'string' } },
      { hook: '0198…', message: 'This is a test.' },
    ),
  },
];

function data(
  required: readonly string[],
  properties: JsonObject,
  example: JsonObject,
): JsonObject {
  return { type: 'object', required, properties, examples: [example] };
}
