import { actions } from '../../log/change.ts';
import type { JsonObject } from '../../values/json/json.ts';
import { byNameSchema } from '../keys/author-name.ts';
import { vkCharactersMax } from '../limits.ts';
import { problemsMember } from '../problems.ts';

type Properties = Readonly<Record<string, JsonObject>>;

/** The parts of the schemas of a record family. */
export interface RecordSchema {
  /** The title of its records in the documents, such as `PageRule`. */
  readonly title: string;
  /** The fields that callers write. */
  readonly fields: Properties;
  /** Fields that an insert needs. */
  readonly required: readonly string[];
  /** Fields that null does not remove. */
  readonly lasting: readonly string[];
  /** Fields that every record has. */
  readonly always: readonly string[];
  /** Whether records have fields besides these. */
  readonly isOpen?: true;
  /** Members of a record that the server sets. */
  readonly server: Properties;
  /** Members that only the answer to an insert has. */
  readonly inserted?: Properties;
  /** Fields that a list omits, and the members that it has in their place. */
  readonly listed?: { readonly omitted: readonly string[]; readonly added: Properties };
}

const text = { type: 'string' } as const;
const dateTime = { type: 'string', format: 'date-time' } as const;
const anyObject = { type: 'object', additionalProperties: true } as const;

const unknowns = {
  ...anyObject,
  description: 'Fields that were sent and are not valid. They wait here until they are.',
} as const;

/** The seq that an edit expects the record to have. */
export const ifSeqProperty = {
  type: 'integer',
  description: 'The write fails unless the record has this seq.',
} as const;

/** How the input of an operation names a part of a family, such as the table of a row. */
export interface RecordPart {
  /** JSON Schemas of the members that name it; every input needs them. */
  readonly members: Readonly<Record<string, JsonObject>>;
  /** Sentence for the documents: how an input names one record. */
  readonly naming: string;
}

/** The JSON Schemas of the inputs and answers of a record family. */
interface RecordSchemas {
  /** Input of an insert, and of an edit. */
  readonly insert: JsonObject;
  readonly edit: JsonObject;
  readonly record: JsonObject;
  /** Answers to an insert, an edit, a list. */
  readonly inserted: JsonObject;
  readonly written: JsonObject;
  readonly list: JsonObject;
}

/** The members of an input that name one record: its id, and the part of the family it is in. */
export function namingMembers(part: RecordPart | undefined): {
  readonly required: readonly string[];
  readonly properties: Properties;
} {
  if (part === undefined) return { required: ['id'], properties: { id: text } };
  const { members, naming } = part;
  return {
    required: Object.keys(members),
    properties: { ...members, id: { ...text, nullable: true, description: naming } },
  };
}

/** Makes the schemas of a record family. */
export function recordSchemas(schema: RecordSchema, part?: RecordPart): RecordSchemas {
  const { title, required, lasting, inserted, listed = { omitted: [], added: {} } } = schema;
  const fields = { ...schema.fields, _unknowns_: unknowns };
  const removable = Object.entries(fields).map(([name, one]) => {
    return [name, lasting.includes(name) ? one : { oneOf: [one, { type: 'null' }] }] as const;
  });
  const written = answerSchema(schema, `Written${title}`, notes);
  const answered = { ...notes, ...inserted };
  const row = answerSchema(schema, listed.omitted.length > 0 ? `Listed${title}` : title, {
    ...listed.added,
  });
  return {
    insert: {
      title: `New${title}`,
      type: 'object',
      required: [...Object.keys(part?.members ?? {}), ...required],
      properties: { ...part?.members, ...fields },
      ...(part !== undefined && { additionalProperties: true }),
    },
    edit: {
      title: `${title}Edit`,
      type: 'object',
      required: namingMembers(part).required,
      properties: {
        ...namingMembers(part).properties,
        if_seq: ifSeqProperty,
        ...Object.fromEntries(removable),
      },
      ...(part !== undefined && { additionalProperties: true }),
    },
    record: answerSchema(schema, title),
    inserted:
      inserted === undefined ? written : answerSchema(schema, `New${title}Answer`, answered),
    written,
    list: {
      title: `${title}List`,
      type: 'object',
      required: ['rows', 'next'],
      properties: {
        rows: { type: 'array', items: withoutMembers(row, listed.omitted) },
        next: {
          type: ['string', 'null'],
          description: 'Send it as after to get the next page; null at the end.',
        },
      },
    },
  };
}

const notes = {
  unknowns: {
    type: 'array',
    items: text,
    description: 'Names of fields that wait in _unknowns_ after the write.',
  },
  problems: problemsMember,
} as const;

/** A record as the server answers it, with further members. */
function answerSchema(
  { always, fields, server, isOpen }: RecordSchema,
  title: string,
  more: Properties = {},
): JsonObject {
  const isNoted = Object.hasOwn(more, 'unknowns');
  return {
    title,
    type: 'object',
    required: ['id', 'seq', ...always, ...(isNoted ? Object.keys(notes) : [])],
    ...(isOpen && { additionalProperties: true }),
    properties: {
      id: { ...text, description: 'A UUIDv7 that the server sets.' },
      ...fields,
      _unknowns_: unknowns,
      ...server,
      seq: { type: 'integer', description: 'Version of the record, for if_seq and If-Match.' },
      ...more,
    },
  };
}

function withoutMembers(schema: JsonObject, names: readonly string[]): JsonObject {
  const properties = Object.entries(schema.properties as JsonObject);
  return {
    ...schema,
    properties: Object.fromEntries(properties.filter(([name]) => !names.includes(name))),
  };
}

/** The tool of a change (ToolUse). */
export const toolUseSchema: JsonObject = {
  title: 'ToolUse',
  type: 'object',
  required: ['client', 'tool'],
  properties: {
    client: { type: 'string', description: 'Name and version of the client, as it gave them.' },
    tool: { type: 'string', description: 'The tool that it called.' },
    conversation: { type: 'string', description: 'Id of the conversation.' },
  },
  description: 'The automated tool that the key used.',
};

/** A row of the log in a history (docs/design/history.md#history-rows). */
const historyRow: JsonObject = {
  title: 'HistoryRow',
  type: 'object',
  required: ['seq', 'txn', 'by', 'action', 'dtu_stored', 'dtu_txn'],
  properties: {
    seq: { type: 'integer', description: 'Position in the log.' },
    txn: { type: 'string', description: 'Id of the transaction; rows of one import share it.' },
    by: { type: 'string', description: 'Id of the key, or name of the command, that wrote it.' },
    by_name: byNameSchema,
    via: toolUseSchema,
    action: { type: 'string', enum: actions },
    dtu_stored: dateTime,
    dtu_txn: dateTime,
    data: {
      ...anyObject,
      description:
        'The fields that it wrote; of an edit those that changed, null for a removed one. ' +
        'A header value that the record no longer has is *** without the scope design.',
    },
    invalidated: { ...dateTime, description: 'When the row was invalidated.' },
    data_invalidated: { ...anyObject, description: 'The data of an invalidated row.' },
  },
};

/** The answer to a read with the query kind history. */
export const historyRows: JsonObject = {
  title: 'History',
  type: 'object',
  required: ['rows', 'next'],
  properties: {
    rows: { type: 'array', items: historyRow },
    next: {
      type: ['integer', 'null'],
      description: 'Send it as before to get the next page; null at the end.',
    },
  },
};

/** The query kind of a read (docs/design/operations.md#envelope). */
export const historyQuery: JsonObject = {
  type: 'string',
  enum: ['history'],
  description: 'The rows instead of the record.',
};

/**
 * The idempotency key in the envelope of a request
 * (docs/design/history.md#idempotency-and-concurrency).
 */
export const vkMember: JsonObject = {
  ...text,
  minLength: 1,
  maxLength: vkCharactersMax,
  description: 'Idempotency key: a repeated request with it gets the first answer again.',
};

/** How a write treats a mistake, in the envelope of a request (RFC 7240 §4.4). */
export const preferMember: JsonObject = {
  ...text,
  description: 'handling=strict refuses a write with a field that is not valid, as Prefer does.',
};
