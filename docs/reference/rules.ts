import { engineSchemas } from '../../src/modules/rules/operations/enginedata.ts';
import { kindSchemas } from '../../src/modules/rules/operations/kind-schemas.ts';
import { fieldDefinitions } from '../../src/modules/rules/operations/fields.ts';
import { ruleSchema } from '../../src/modules/rules/operations/rule-schema.ts';
import { conditionTypes } from '../../src/core/pipeline/conditions/table.ts';
import { hookSchema } from '../../src/modules/webhooks/operations/hook-schema.ts';
import { knownEventTypes } from '../../src/core/log/events/event-types.ts';
import type { JsonObject } from '../../src/core/values/json/json.ts';
import { ruleKinds, type RuleKind } from '../../src/modules/rules/rule.ts';
import { markdownTable, membersTable } from './schema-text.ts';

const kindTexts: Readonly<Record<RuleKind, string>> = {
  content: 'A stored page: `content`, or an `engine` with `enginedata`.',
  'content.fetch': "Another server's content, as if it were a page of this site.",
  resolve: 'A breadcrumb: a stable key or path whose target may change.',
  'edit-record': 'A page that changes a row of `table`, by the engine `form`.',
  'insert-record': 'A page that adds a row to `table`, by the engine `form`.',
  'delete-record': 'A page that removes a row of `table`, by the engine `form`.',
};

/** The reference of the fields of page rules. */
export function rulesPage(): string {
  const meanings = ruleSchema.fields;
  const rows = [...fieldDefinitions].map(([name, { kinds, types, expects }]) => {
    const { description } = meanings[name] ?? {};
    const all = kinds.length === ruleKinds.length;
    return [
      `\`${name}\``,
      `${types.map((type) => ({ string: 'text', number: 'number', object: 'object' })[type]).join(' or ')}: ${expects}`,
      textOf(description),
      all ? 'all' : kinds.map((kind) => `\`${kind}\``).join(', '),
    ];
  });
  const server = Object.entries(ruleSchema.server).map(([name, { description }]) => [
    `\`${name}\``,
    textOf(description),
  ]);
  return `# Page rules

A page rule says how the server answers requests for a path, or a key. \`svc1.userinterface.insert\` adds one; see
[its operations](operations.md#userinterface). \`path\` is needed; without \`kind\` it is \`content\`.

## Kinds

${markdownTable(
  ['kind', 'what it is'],
  ruleKinds.map((kind) => [`\`${kind}\``, kindTexts[kind]]),
)}

## Fields

${markdownTable(['field', 'value', 'meaning', 'kinds'], rows)}

Fields that are not valid wait in \`_unknowns_\`: see [problems of a write](errors.md#problems-of-a-write).

## Members that the server adds

${markdownTable(
  ['member', 'meaning'],
  [
    ['`id`', 'A UUIDv7.'],
    ['`seq`', 'The version: its position in the log, for `if_seq` and `If-Match`.'],
    ['`_unknowns_`', 'Fields that were sent and are not valid yet.'],
    ...server,
  ],
)}

The order of rules that match the same request: see [precedence and matching](../explanation/precedence.md).
`;
}

/** The reference of enginedata, by kind and by engine. */
export function enginedataPage(): string {
  const kinds = Object.entries(kindSchemas).map(
    ([kind, schema]) => `## Of the kind \`${kind}\`\n\n${membersTable(schema)}\n`,
  );
  const engines = [...engineSchemas].map(([engine, schema]) => {
    const { description, examples } = schema;
    const [example] = (examples ?? []) as readonly JsonObject[];
    const shown =
      example === undefined
        ? ''
        : `\n\nAn example:\n\n\`\`\`json\n${JSON.stringify(example, undefined, 2)}\n\`\`\``;
    return `## Of the engine \`${engine}\`\n\n${textOf(description)}\n\n${membersTable(schema)}${shown}\n`;
  });
  return `# Enginedata

The field \`enginedata\` of a page rule is an object, whose members depend on the rule's kind, or else on its engine.
\`when\`, a list of branches with [conditions](conditions.md), is a member of every engine's data: the first branch whose
\`if\` holds adds its \`enginedata\`.

${[...kinds, ...engines].join('\n')}
## Of an engine of your own

Any members: \`[engine.<name>]\` of the [ini file](ini-file.md) names its script, which gets them.
`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The value and meaning of each condition. */
const conditionTexts: Readonly<Record<string, readonly [string, string]>> = {
  user: ['text or list', 'Users by name, or `*` for all signed-in users.'],
  role: ['text or list', 'Users with a role.'],
  country: ['text or list', "The visitor's country, as an ISO 3166-1 code."],
  region: ['text or list', 'The region by code (`ZH`, `CH-ZH`) or name; case does not matter.'],
  city: ['text or list', 'The city by name; case does not matter.'],
  place: ['text or list', 'The `[node] place` of the answering server: a shop, a branch.'],
  ip: ['text or list', 'Addresses and networks, such as `10.0.0.0/8`.'],
  lang: ['text or list', 'The language that Accept-Language prefers: `de` includes de-CH.'],
  device: [
    'text or list',
    '`mobile`, `tablet`, `desktop`, `bot`, `ios`, `android`, `windows`, `macos`, `linux`.',
  ],
  referer: [
    'text or list',
    'The host of the page that links here: `www.example.com`, or `*.example.com` for the hosts below it.',
  ],
  caller: [
    'text or list',
    'What requests the page: `navigation`, `iframe`, `image`, `script`, `fetch`, or by Accept: `navigation`, `image`, `api`.',
  ],
  query: ['object', 'Parameters of the query by name: a value, a list of values, or `*` for any.'],
  after: ['text', 'Times from a date or date-time on (UTC without an offset).'],
  before: ['text', 'Times up to a date or date-time (UTC without an offset).'],
  percent: ['number', 'A share of all visitors, 0 to 100. A visitor stays in its share.'],
};

/** The reference of conditions. Throws for a condition without a text. */
export function conditionsPage(): string {
  const rows = conditionTypes.map(({ name, vary, preview }) => {
    const text = conditionTexts[name];
    if (text === undefined) throw new Error(`The condition ${name} has no text in rules.ts.`);
    const previews = Object.keys(preview).map((one) => `\`${one}\``);
    return [
      `\`${name}\``,
      ...text,
      vary.map((one) => `\`${one}\``).join(', '),
      previews.join(', '),
    ];
  });
  return `# Conditions

The \`if\` of a branch, in \`enginedata.when\` of a breadcrumb or of a page with an engine, has one or more of these
members. All have to hold; in a list, any one value matches. "Preview" names the input fields by which
\`waymark explain\` and \`get_resolve\` answer for an imaginary visitor.

${markdownTable(['condition', 'value', 'holds for', 'Vary', 'preview'], rows)}

\`\`\`json
{
  "when": [
    { "if": { "country": ["CH", "LI"], "lang": "fr" }, "target": "/fr/ete", "status": 307 },
    { "if": { "percent": 10 }, "target": "key:summer-experiment" }
  ],
  "target": "/offers/"
}
\`\`\`
`;
}

/** The reference of hooks. */
export function hooksPage(): string {
  const schema = {
    required: hookSchema.required,
    properties: hookSchema.fields,
  } as unknown as JsonObject;
  return `# Hooks

A hook sends events to a URL. \`svc1.webhook.insert\` adds one, and answers with its secret; see
[its operations](operations.md#webhook). \`/svc1/webhooks\` is the page for the people who receive the requests.

## Fields

${membersTable(schema)}

## Members that the server adds

${membersTable({ properties: { ...hookSchema.server, ...hookSchema.inserted } })}
`;
}

/** The reference of event types. */
export function eventsPage(): string {
  const parts = knownEventTypes.map(({ type, summary, own, schema }) => {
    const { examples } = schema as { readonly examples: readonly JsonObject[] };
    const raised = own ? ' Waymark raises it itself.' : ' Applications insert it.';
    const example = JSON.stringify(examples[0], undefined, 2);
    return `## ${type}

${summary}${raised}

${membersTable(schema)}

\`\`\`json
${example}
\`\`\`
`;
  });
  return `# Event types

These are the types that Waymark knows. Applications may insert any other type. \`data\` of an event may have further
members. A delivery is signed as [Standard Webhooks](https://www.standardwebhooks.com) describes.

${parts.join('\n')}`;
}
