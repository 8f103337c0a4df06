import type { OperationDescription } from '../../src/api/operation.ts';
import { operations } from '../../src/api/table.ts';
import {
  failuresOf,
  familyOf,
  meanings,
  requestMembers,
  scopeSentence,
  shownInput,
} from '../../src/api/documents/envelope.ts';
import { statusOf } from '../../src/http/status.ts';
import { isJsonObject, type Json, type JsonObject } from '../../src/model/json.ts';
import { scopes, type Scope } from '../../src/model/key.ts';
import type { DocumentedCommand } from './commands.ts';
import { markdownTable, membersTable } from './schema-text.ts';

/** The reference of all operations; `commands` are those of the command line. */
export function operationsPage(commands: readonly DocumentedCommand[]): string {
  const families = Map.groupBy(operations, familyOf);
  const parts = [...families].map(([family, those]) => {
    const texts = those.map((one) => operationText(one, commands));
    return `## ${family}\n\n${texts.join('\n')}`;
  });
  return `# Operations

Every operation is an HTTP request, a message of the websocket at \`/svc1/ws\`, and, with few exceptions, a command.
\`$SITE\` is the address of the server, \`$KEY\` an API key. \`/svc1/openapi.json\` and \`/svc1/asyncapi.json\` have the same
definitions for programs; [the client for TypeScript](../how-to/typescript-client.md) has them as types.

An operation that only reads also answers to GET, with the input fields in the query: \`?_v.id=…\`. The answer is
\`{"r": "<operation>", "data": …}\`, or \`{"r": …, "error": {"code", "message", "field", "id"}}\` with
[the status of the error](errors.md). The server accepts unknown input fields.

## Scopes

What a key with each scope may call; \`admin\` includes all others.

${scopesTable()}

${parts.join('\n')}`;
}

function scopesTable(): string {
  const namesOf = (scope: Scope): string => {
    const names = operations.filter((one) => one.scope === scope).map(({ name }) => `\`${name}\``);
    return names.length === 0 ? (scopeNotes[scope] ?? '') : names.join(', ');
  };
  return markdownTable(
    ['scope', 'operations'],
    scopes.map((scope) => [`\`${scope}\``, namesOf(scope)]),
  );
}

const scopeNotes: Readonly<Partial<Record<Scope, string>>> = {
  follow: 'Copying the log to another machine.',
};

function operationText(
  operation: OperationDescription,
  commands: readonly DocumentedCommand[],
): string {
  const { name, summary, output, packets, replies, etag } = operation;
  const { properties } = requestMembers(operation);
  const members = Object.entries(properties).filter(([member]) => member !== 'v');
  const failures = failuresOf(operation).map((code) => `\`${code}\` (${statusOf[code]})`);
  const sections = [
    `### ${name}`,
    `${summary} ${scopeSentence(operation)}`,
    `\`\`\`sh\n${shellExample(operation, commands)}\n\`\`\``,
    `Websocket: \`${JSON.stringify({ a: name, id: 1, v: exampleInput(operation) })}\``,
    `**Input**: ${membersTableOrNone(shownInput(operation))}`,
    ...(members.length === 0
      ? []
      : [`**Besides \`v\`**: ${block(membersTable({ properties: Object.fromEntries(members) }))}`]),
    replies === undefined
      ? `**Answer** (\`data\`)${etag === true ? ', with an ETag' : ''}: ${membersTableOrNone(output)}`
      : `**Answer**: ${block(markdownTable(['status', 'content'], Object.entries(replies)))}`,
    ...(packets === undefined
      ? []
      : [
          `**Then**, for each change, \`r\` = \`${packets.r}\`: ${membersTableOrNone(packets.data)}`,
        ]),
    `**Failures**: ${failures.join(', ')}.`,
  ];
  return `${sections.join('\n\n')}\n`;
}

function membersTableOrNone(schema: JsonObject): string {
  const table = membersTable(schema);
  return table.startsWith('|') ? block(table) : table;
}

function block(table: string): string {
  return `\n\n${table}`;
}

function shellExample(
  operation: OperationDescription,
  commands: readonly DocumentedCommand[],
): string {
  const { name, effect, scope, linesField, ndjson } = operation;
  const command = commandOf(name, commands);
  const line = command === undefined ? [] : [`waymark ${command.usage}`];
  if (effect === 'streams' && ndjson === undefined)
    return ['# only over the websocket', ...line].join('\n');
  const [, family = '', ...rest] = name.split('.');
  const path = rest.length === 1 ? `${family}/${rest[0] ?? ''}` : [family, ...rest].join('.');
  const key = scope === undefined ? '' : ' -H "apikey: $KEY"';
  if (linesField !== undefined) {
    const curl = `curl${key} -H 'content-type: application/x-ndjson' "$SITE/svc1/${path}" --data-binary @rules.ndjson`;
    return [curl, ...line].join('\n');
  }
  const v = exampleInput(operation);
  const curl =
    rest.length > 1
      ? `curl "$SITE/svc1/${path}?k=summer"`
      : `curl${ndjson === undefined ? '' : ' -N'}${key} "$SITE/svc1/${path}" -d '${JSON.stringify({ v })}'`;
  return [curl, ...line].join('\n');
}

/** The command of the command line for an operation. */
export function commandOf(
  operation: string,
  commands: readonly DocumentedCommand[],
): DocumentedCommand | undefined {
  const [, family = '', ...rest] = operation.split('.');
  const group = { userinterface: 'rule', webhook: 'hook' }[family] ?? family;
  const sub = rest.join('-').replaceAll('_', '-');
  const own = { insert: 'add' }[sub] ?? sub;
  const names = [`${group} ${sub}`, `${group} ${own}`, sub].filter(
    (name) => name !== 'insert' && name !== 'read' && name !== 'list',
  );
  return names.flatMap((name) => commands.find((one) => one.name === name) ?? [])[0];
}

/** An input with the required fields, and those that make it useful. */
export function exampleInput(operation: OperationDescription): JsonObject {
  const known = knownInputs[operation.name];
  if (known !== undefined) return known;
  const { required = [], properties = {} } = shownInput(operation);
  const names = required as readonly string[];
  return Object.fromEntries(
    names.map((name) => {
      const schema = (properties as Readonly<Record<string, Json>>)[name];
      return [name, exampleValue(name, isJsonObject(schema) ? schema : {})];
    }),
  );
}

const knownInputs: Readonly<Record<string, JsonObject>> = {
  'svc1.userinterface.insert': { path: '/hello', kind: 'content', content: '<h1>Hello</h1>' },
  'svc1.userinterface.edit': { id: '0198…', content: '<h1>Hello again</h1>' },
  'svc1.userinterface.explain': { url: 'http://localhost:8080/hello' },
  'svc1.webhook.insert': { event: ['sale.completed'], url: 'https://books.example.com/hook' },
  'svc1.event.insert': { type: 'sale.completed', data: { id: 'S-1042' } },
  'svc1.cache.purge': { url: 'https://www.example.com/news' },
  'svc1.key.insert': { name: 'deploy', scopes: ['design', 'read'] },
  'svc1.webhook.edit': { id: '0198…', active: false },
};

function exampleValue(name: string, schema: JsonObject): Json {
  const known: Readonly<Record<string, Json>> = {
    id: '0198…',
    k: 'summer',
    path: '/hello',
    origin: 'http://localhost:8080',
    apikey: 'wmk_…',
  };
  const { examples, enum: values, type } = schema;
  if (Array.isArray(examples)) return (examples as readonly Json[])[0] ?? null;
  if (Array.isArray(values)) return (values as readonly Json[])[0] ?? null;
  if (known[name] !== undefined) return known[name];
  if (type === 'array') return [];
  if (type === 'integer' || type === 'number') return 1;
  return type === 'object' ? {} : '…';
}

/** The reference of the codes of failures. */
export function errorsPage(): string {
  const rows = Object.entries(meanings).map(([code, meaning]) => {
    return [`\`${code}\``, String(statusOf[code as keyof typeof statusOf]), meaning];
  });
  return `# Errors

The answer of an operation that fails is \`{"r": "<operation>", "error": {…}}\`, with this status over HTTP. \`message\` says
what is wrong and what to do, \`field\` names the input field, and \`id\` is also in the server's log.

${markdownTable(['code', 'status', 'meaning'], rows)}

## Problems of a write

A write of a page rule or hook succeeds even if a field is invalid: the field waits in \`_unknowns_\`, and \`problems\` of
the answer say why. With \`Prefer: handling=strict\` (\`--strict\`), the mistakes refuse the write.

${problemsTable}
`;
}

const problemsTable = markdownTable(
  ['reason', 'meaning', 'refused by strict'],
  [
    ['`unknown_field`', 'No field has this name; `suggestion` is the nearest one.', 'yes'],
    ['`wrong_type`', 'The value has the wrong JSON type.', 'yes'],
    ['`not_for_kind`', 'The field exists, but not for this kind.', 'yes'],
    ['`bad_format`', 'The value has the right type but not the right form.', 'yes'],
    ['`out_of_range`', 'The number, length or count is out of range.', 'yes'],
    ['`unknown_engine`', 'No engine has this name.', 'yes'],
    ['`missing`', 'A required member is missing.', 'yes'],
    [
      '`unreachable_private`',
      'The source is in a private network that `[fetch] allow_private` does not name.',
      'no',
    ],
    ['`no_effect`', 'The value is valid but has no effect.', 'no'],
    ['`shadowed`', 'Another source takes precedence over the rule, or the reverse.', 'no'],
  ],
);
