import { statusOf } from '../../src/core/http/reply.ts';
import { boundBehaviours } from '../../src/core/operations/bounds/operations.ts';
import type { OperationDescription } from '../../src/core/operations/operation.ts';
import type { FailureCode, ProblemReason } from '../../src/core/values/failure.ts';
import type { JsonObject } from '../../src/core/values/json/json.ts';
import { type Scope, boundScopes, scopes } from '../../src/core/values/key.ts';
import { operations } from '../../src/modules.ts';
import {
  failuresOf,
  familyOf,
  meanings,
  requestMembers,
  scopeSentence,
  shownInput,
} from '../../src/modules/docs/envelope.ts';
import { exampleInput } from '../../src/modules/docs/schemas.ts';
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
[the status of the error](errors.md). An input field that an operation does not know is refused (\`invalid\`); the insert or edit of
a record stores it in \`_unknowns_\`, and names it in \`problems\`.

## Scopes

What a key with each scope may call; \`admin\` includes all others.

${scopesTable()}

## Bound keys

A key with \`origins\` or \`paths\` [is for a part of the site](../how-to/keys-and-scopes.md#a-key-for-a-part-of-the-site). It may have
the scopes ${boundScopes.map((scope) => `\`${scope}\``).join(', ')}, and call these operations; all others are \`forbidden\`.

${boundTable()}

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

function boundTable(): string {
  const namesOf = (behaviour: string): string => {
    const names = operations.filter(({ name }) => boundBehaviours[name] === behaviour);
    return names.map(({ name }) => `\`${name}\``).join(', ');
  };
  return markdownTable(
    ['what they are about', 'operations'],
    [
      ['the part of the key', namesOf('inside')],
      ['the caller alone', namesOf('open')],
    ],
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

/** The reference of the codes of failures. */
export function errorsPage(): string {
  const rows = Object.entries(meanings).map(([name, meaning]) => {
    const code = name as FailureCode;
    return [`\`${code}\``, String(statusOf[code]), meaning, remedies[code]];
  });
  return `# Errors

The answer of an operation that fails is \`{"r": "<operation>", "error": {…}}\`, with this status over HTTP. \`message\` says
what is wrong and what to do, \`field\` names the input field, and \`id\` is also in the server's log. If a page of this
documentation says more, \`docs\` is its path on the server; the command line prints it as a URL.

${markdownTable(['code', 'status', 'meaning', 'what to do'], rows)}

## Problems of a write

A write of a page rule or hook succeeds even if a field is invalid: the field waits in \`_unknowns_\`, and \`problems\` of
the answer say why. With \`Prefer: handling=strict\` (\`--strict\`), the mistakes refuse the write.

${problemsTable}
`;
}

const remedies: Readonly<Record<FailureCode, string>> = {
  invalid: 'Correct the field; [the operation](operations.md) lists its fields.',
  unauthenticated: 'Send a valid key: [keys and scopes](../how-to/keys-and-scopes.md).',
  forbidden: 'Use a key with the scope: [the scopes](operations.md#scopes).',
  not_found: 'Check the id or path; the history of a reverted record is still there.',
  method_not_allowed: 'Use a method of `Allow`; operations that write take POST.',
  conflict:
    'For a repeated request, send the same `vk` with the same fields, or a new `vk`. A row with the same key exists already: edit that one.',
  precondition_failed:
    'Read the record again, apply your change to it, and send its `seq` as `if_seq`; for an undo, send the new `digest`.',
  too_large: 'Send less at a time: [limits](limits.md).',
  unprocessable: 'Read the message: another record or setting prevents it.',
  rate_limited: 'Wait for `Retry-After`: [limits](limits.md).',
  internal: 'Look for the `id` in the log of the server, and report what is there.',
  bad_gateway: 'Check the source: [fetched content](../how-to/fetched-content.md).',
  gateway_timeout: 'Check the source, or raise `[fetch] timeout`.',
  unavailable: 'Repeat the request after `Retry-After`, with the same `vk`.',
  storage_full: 'Free some space on the disk of the server; no restart is needed.',
};

const reasons: Readonly<Record<ProblemReason, readonly [meaning: string, strict: 'yes' | 'no']>> = {
  unknown_field: ['No field has this name; `suggestion` is the nearest one.', 'yes'],
  wrong_type: ['The value has the wrong JSON type.', 'yes'],
  not_for_kind: ['The field exists, but not for this kind.', 'yes'],
  bad_format: ['The value has the right type but not the right form.', 'yes'],
  out_of_range: ['The number, length or count is out of range.', 'yes'],
  unknown_engine: ['No engine has this name.', 'yes'],
  missing: ['A required member is missing.', 'yes'],
  no_row: ['The value refers to a row that does not exist.', 'yes'],
  unreachable_private: [
    'The source or the URL of a webhook is in a private network that `allow_private` of `[fetch]` or `[webhook]` does not name.',
    'no',
  ],
  no_effect: ['The value is valid but has no effect.', 'no'],
  shadowed: ['Another source takes precedence over the rule, or the reverse.', 'no'],
};

const problemsTable = markdownTable(
  ['reason', 'meaning', 'refused by strict'],
  Object.entries(reasons).map(([reason, [meaning, strict]]) => [`\`${reason}\``, meaning, strict]),
);
