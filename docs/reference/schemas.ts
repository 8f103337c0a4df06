import { recordSchemas } from '../../src/core/operations/records/schema.ts';
import { engineSchemas } from '../../src/modules/rules/operations/enginedata.ts';
import { kindSchemas } from '../../src/modules/rules/operations/kind-schemas.ts';
import { ruleSchema } from '../../src/modules/rules/operations/rule-schema.ts';
import { hookSchema } from '../../src/modules/webhooks/operations/hook-schema.ts';
import { operations } from '../../src/modules.ts';
import type { Json, JsonObject } from '../../src/core/values/json/json.ts';
import { describedKeys } from './ini-file.ts';
import { markdownTable } from './schema-text.ts';

const dialect = 'https://json-schema.org/draft/2020-12/schema';

/** The JSON Schemas for editors, by their file names without `.json`. */
export function jsonSchemas(): ReadonlyMap<string, JsonObject> {
  return new Map([
    ['ini', { $schema: dialect, ...iniSchema() }],
    ['page-rule', { $schema: dialect, ...pageRuleSchema() }],
    ['hook', { $schema: dialect, ...recordSchemas(hookSchema).insert }],
    ['ndjson-line', { $schema: dialect, ...lineSchema() }],
  ]);
}

/** The ini file as the object of sections that ini parsers make of it. */
function iniSchema(): JsonObject {
  const bySection = Map.groupBy(describedKeys(), ({ section }) => section);
  const fixed: Record<string, Json> = {};
  const named: Record<string, Json> = {
    '^disk\\.[^.]+\\.headers$': { type: 'object', description: 'Header fields of a mount.' },
  };
  for (const [section, keys] of bySection) {
    const properties = keys.map(({ name, about, example, form, key }) => {
      const value: JsonObject = {
        type: ['string', 'number', 'boolean', ...(key.isList ? ['array'] : [])],
        description: `${about} Value: ${form}.`,
        examples: [example],
        ...(key.defaultText !== undefined && { default: key.defaultText }),
      };
      return [name, value] as const;
    });
    const lists = keys
      .filter(({ key }) => key.isList)
      .map(({ name, about }) => [`${name}[]`, { description: about }] as const);
    const schema: JsonObject = {
      type: 'object',
      properties: Object.fromEntries<Json>([...properties, ...lists]),
      additionalProperties: false,
    };
    if (section.includes('<'))
      named[`^${section.replace('.', '\\.').replace(/<.*>/, '.+')}$`] = schema;
    else fixed[section] = schema;
  }
  fixed.variables = { type: 'object', description: 'Values for ${NAME}.' };
  return {
    title: 'The ini file of Waymark',
    type: 'object',
    required: ['server'],
    properties: fixed,
    patternProperties: named,
    additionalProperties: false,
  };
}

/** A new page rule, with enginedata by its kind or engine. */
function pageRuleSchema(): JsonObject {
  const byField = (field: string, value: string, schema: JsonObject): JsonObject => ({
    if: { required: [field], properties: { [field]: { const: value } } },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { properties: { enginedata: { ...schema, $schema: undefined as unknown as Json } } },
  });
  const all = [
    ...Object.entries(kindSchemas).map(([kind, schema]) => byField('kind', kind, schema)),
    ...[...engineSchemas].map(([engine, schema]) => byField('engine', engine, schema)),
  ];
  return JSON.parse(
    JSON.stringify({ ...recordSchemas(ruleSchema).insert, allOf: all }),
  ) as JsonObject;
}

/** A line of an NDJSON file for `waymark import`: a rule, or an envelope. */
function lineSchema(): JsonObject {
  const insertions = operations.filter(({ name, effect }) => {
    return (
      effect === 'writes' &&
      ['userinterface', 'webhook'].some((one) => name === `svc1.${one}.insert`)
    );
  });
  const envelopes = insertions.map(({ name, fields, input }) => ({
    title: name,
    type: 'object',
    required: ['a', 'v'],
    properties: { a: { const: name }, v: fields ?? input, vk: { type: 'string' } },
  }));
  return {
    title: 'A line of an import',
    oneOf: [{ ...pageRuleSchema(), not: { required: ['a'] } }, ...envelopes],
  };
}

/** The page about the schemas. */
export function schemasPage(): string {
  const uses: Readonly<Record<string, string>> = {
    ini: 'The ini file, as the object of sections that ini parsers make of it.',
    'page-rule': 'The fields of a new page rule, with enginedata by kind and engine.',
    hook: 'The fields of a new hook.',
    'ndjson-line': 'One line of a file for `waymark import`.',
  };
  const rows = [...jsonSchemas().keys()].map((name) => [
    `\`/svc1/docs/schemas/${name}.json\``,
    uses[name] ?? '',
  ]);
  return `# JSON Schemas

Editors check and complete files by these schemas (JSON Schema 2020-12). The addresses are stable; each server has the
schemas of its version.

${markdownTable(['address', 'what it describes'], rows)}

In Visual Studio Code, for files with one page rule each:

\`\`\`json
{
  "json.schemas": [
    { "fileMatch": ["rules/*.json"], "url": "http://localhost:8080/svc1/docs/schemas/page-rule.json" }
  ]
}
\`\`\`

\`/svc1/openapi.json\` and \`/svc1/asyncapi.json\` have the schemas of the operations, \`/svc1/engines/<name>\` as
\`application/schema+json\` those of engines. \`/svc1/docs/llms.txt\` lists these pages for language models,
\`/svc1/docs/llms-full.txt\` has all of them, and each page is also there as Markdown: \`.md\` in place of \`.html\`.
`;
}
