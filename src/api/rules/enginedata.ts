import type { ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formSchema from '../../../public/engines/form.schema.json' with { type: 'json' };
import htmlSchema from '../../../public/engines/html.schema.json' with { type: 'json' };
import templateSchema from '../../../public/engines/template.schema.json' with { type: 'json' };
import { breadcrumbProblems } from '../../breadcrumbs/breadcrumb.ts';
import { renderWhenProblems } from '../../breadcrumbs/render-when.ts';
import { isTarget } from '../../model/target.ts';
import type { Json, JsonObject } from '../../model/json.ts';
import { breadcrumbBranchesMax, fetchSourcesMax } from '../../model/limits.ts';
import { parseSource } from '../../proxy/fetch-source.ts';
import type { RuleKind } from '../../model/rule.ts';
import { ownSchemas } from '../own-schemas.ts';

const texts = { type: 'array', maxItems: 64, items: { type: 'string' } } as const;
const sourceText = { type: 'string', maxLength: 4096 } as const;
const status = { type: 'integer', minimum: 200, maximum: 599 } as const;

/**
 * The shape of enginedata by kind (docs/design/rendering.md#generic-pages,
 * docs/design/fetching.md#sources); names not mentioned are free, as the seed has it.
 */
const kindSchemas: Readonly<Partial<Record<RuleKind, JsonObject>>> = {
  'content.fetch': {
    type: 'object',
    required: ['source'],
    properties: {
      source: {
        anyOf: [
          sourceText,
          {
            type: 'array',
            minItems: 1,
            maxItems: fetchSourcesMax,
            uniqueItems: true,
            items: sourceText,
          },
        ],
      },
      headers: {
        type: 'object',
        maxProperties: 32,
        propertyNames: { pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$" },
        additionalProperties: { type: 'string', pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$' },
      },
      methods: {
        type: 'array',
        minItems: 1,
        maxItems: 32,
        items: { type: 'string', pattern: '^[A-Z][A-Z-]{0,31}$' },
      },
      pass: texts,
    },
  },
  resolve: {
    type: 'object',
    properties: {
      target: { type: 'string' },
      html: { type: 'string' },
      status,
      forward_query: { type: 'boolean' },
      when: { type: 'array', maxItems: breadcrumbBranchesMax },
    },
  },
};

/** The shape of enginedata by engine: the very schemas that the engines' documentation shows. */
const engineSchemas: ReadonlyMap<string, JsonObject> = new Map<string, JsonObject>([
  ['html', htmlSchema],
  ['template', templateSchema],
  ['form', formSchema],
]);

const ajv = new Ajv2020(ownSchemas);
const compiled = new Map<JsonObject, ValidateFunction>();

/** Whether an object has the shape that its kind, or else its engine, asks of enginedata. */
export function validEnginedata(
  value: JsonObject,
  { kind, engine }: { readonly kind: RuleKind; readonly engine: string | undefined },
): boolean {
  const schema = kindSchemas[kind] ?? engineSchemas.get(engine ?? '');
  if (schema !== undefined && !validates(schema, value)) return false;
  if (kind === 'content.fetch')
    return [value.source].flat().every((one) => parseSource(one) !== undefined);
  if (kind === 'resolve') return typeof value.target !== 'string' || isTarget(value.target);
  return true;
}

/**
 * What in a valid enginedata says nothing and is kept all the same, as paths such as
 * `enginedata.when[0].if.colour`: a breadcrumb leaves such a branch out.
 */
export function unreadEnginedata(value: JsonObject, kind: RuleKind): readonly string[] {
  if (kind === 'content.fetch') return [];
  const problems = kind === 'resolve' ? breadcrumbProblems(value) : renderWhenProblems(value);
  return problems.map((path) => `enginedata.${path}`);
}

function validates(schema: JsonObject, value: Json): boolean {
  let validate = compiled.get(schema);
  if (validate === undefined) {
    validate = ajv.compile(schema);
    compiled.set(schema, validate);
  }
  return validate(value);
}
