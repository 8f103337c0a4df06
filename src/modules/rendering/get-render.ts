import { parametersOf } from '../../core/http/query.ts';
import { needsUser } from '../../core/http/visitor.ts';
import { defineOperation } from '../../core/operations/operation.ts';
import { timeThen } from '../../core/operations/records/moment.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { StaticInput } from '../../core/values/json/static.ts';
import {
  type PageParts,
  contentPlace,
  placeInput,
  siteFor,
  visibleRule,
  winningRule,
} from '../rules/operations/page-lookup.ts';
import { previewFor, previewProperties } from '../rules/operations/preview.ts';
import {
  preparedEnginedata,
  preparedServerFields,
  publicData,
  renderAnswer,
  renderRule,
} from '../rules/operations/rule-view.ts';
import { type Rule, ruleKinds } from '../rules/rule.ts';

const input = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    ...placeInput.properties,
    query: {
      description: 'The query as a text, or its parameters as get_render answers them.',
      oneOf: [
        { type: 'string', nullable: true },
        {
          type: 'object',
          additionalProperties: {
            oneOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
          },
        },
      ],
    },
    ...previewProperties,
  },
} as const;

type RenderInput = StaticInput<typeof input>;

const text = { type: 'string' } as const;
const textOrNull = { type: ['string', 'null'] } as const;

const output: JsonObject = {
  title: 'RenderInformation',
  type: 'object',
  required: [
    ...['id', 'seq', 'origin', 'path', 'query', 'capture', 'kind', 'lang', 'engine'],
    ...['enginedata', 'enginereference', 'table', 'meta', 'script', 'user'],
  ],
  properties: {
    id: text,
    seq: { type: 'integer' },
    origin: { ...text, description: 'The origin of the request, in canonical form.' },
    path: { ...text, description: 'The path of the request, in canonical form.' },
    query: {
      type: 'object',
      additionalProperties: { oneOf: [text, { type: 'array', items: text }] },
      description: 'The parameters of the query; a list for one that occurs more than once.',
    },
    capture: {
      ...textOrNull,
      description: 'The part of the path that the * of the rule matches.',
    },
    kind: { ...text, enum: ruleKinds },
    lang: textOrNull,
    engine: textOrNull,
    enginedata: { type: 'object', additionalProperties: true },
    enginereference: { ...textOrNull, description: 'URL of the documentation of the engine.' },
    table: textOrNull,
    meta: {
      type: ['object', 'null'],
      additionalProperties: true,
      description: 'JSON Schema of a row of the table; null for a rule without one.',
    },
    matched: {
      ...text,
      description: 'The branch of enginedata.when that holds; only in a preview.',
    },
    script: { ...textOrNull, description: 'The script of an engine of the ini file.' },
    user: {
      type: ['object', 'null'],
      required: ['name', 'roles'],
      properties: { name: text, roles: { type: 'array', items: text } },
      description: 'The signed-in user.',
    },
  },
};

/**
 * userinterface.get_render: the data with which a generic page renders itself
 * (docs/design/rendering.md#generic-pages).
 */
export const getRender = defineOperation({
  name: 'svc1.userinterface.get_render',
  scope: 'render',
  effect: 'reads',
  inDrafts: true,
  summary: 'The data that a generic page needs to render itself for an origin, path and query.',
  input,
  output,
  etag: true,
  failures: ['not_found'],
  run:
    ({ view, ...parts }: PageParts) =>
    async (v, call) => {
      const nowMs = timeThen(parts.store, v.as_of);
      const previewed = await previewFor(v, call, { nowMs, locationOf: parts.locationOf });
      const { visitor } = previewed ?? call;
      await visitor.prepare(needsUser);
      const user = visitor.user();
      const where = contentPlace({ ...v, query: queryText(v.query) }, view, call.caller);
      const lookup = { fields: previewed?.fields ?? call.fields, caller: call.caller };
      const find = () => winningRule(siteFor(parts, v, call), where, lookup);
      const found = await visibleRule(parts, where, { call, find });
      const { stored, capture } = found;
      const { rule, seq } = stored;
      const isHidden = rule.kind === 'content.fetch' || rule.kind === 'resolve';
      const rendered = await renderRule(found, { visitor, query: where.query });
      const data = {
        id: rule.id,
        seq,
        origin: where.origin,
        path: where.path,
        query: parametersOf(where.query),
        capture: capture ?? null,
        kind: rule.kind,
        lang: rule.lang ?? null,
        engine: rule.engine ?? null,
        enginedata: isHidden ? {} : shownEnginedata(rule, rendered.enginedata),
        enginereference: null,
        table: rule.table ?? null,
        meta: null,
        script: view.engines.find(({ name }) => name === rule.engine)?.script ?? null,
        ...preparedServerFields(rule, view, call.origin),
        user: user === undefined ? null : { name: user.name, roles: user.roles },
        ...(previewed !== undefined && { matched: rendered.matched }),
      };
      const isForAll = call.caller.keyId === undefined && user === undefined;
      return renderAnswer(data, found, { isForAll, dependencies: rendered.dependencies });
    },
});

/**
 * The public part of an enginedata. An invalid `submit` waits in `_unknowns_`, and null stands for
 * it: a form without `submit` would store its record here.
 */
function shownEnginedata({ _unknowns_: unknowns }: Rule, enginedata: JsonObject): object {
  const waiting = unknowns?.enginedata;
  const isWaiting = isJsonObject(waiting) && waiting.submit !== undefined;
  if (!isWaiting || enginedata.submit !== undefined) return preparedEnginedata(enginedata);
  return { ...publicData(enginedata), submit: null };
}

/** A query as the text of a URL. */
function queryText(query: RenderInput['query']): string {
  if (typeof query === 'string') return query;
  const parameters = new URLSearchParams();
  for (const [name, values] of Object.entries(query ?? {})) {
    for (const value of [values].flat()) parameters.append(name, value);
  }
  return parameters.toString();
}
