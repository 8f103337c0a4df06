import { parametersOf } from '../../core/http/query.ts';
import { type Visitor, needsUser } from '../../core/http/visitor.ts';
import {
  type Call,
  type OperationResult,
  defineOperation,
} from '../../core/operations/operation.ts';
import { type Place, parseOrigin } from '../../core/operations/place.ts';
import { timeThen } from '../../core/operations/records/moment.ts';
import { turnsOf } from '../../core/operations/turns.ts';
import { type Dependencies, joinedDependencies } from '../../core/pipeline/conditions/when.ts';
import type { SiteAccess } from '../rules/site-access.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import {
  type PreparedJson,
  preparedList,
  preparedObject,
} from '../../core/values/json/prepared-json.ts';
import type { StaticInput } from '../../core/values/json/static.ts';
import { MIB } from '../../core/values/units.ts';
import type { FoundRule } from '../rules/rule.ts';
import {
  type PageParts,
  contentPlace,
  placeInput,
  siteFor,
  visibleRule,
  visitorAt,
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

/** Pages in one call. */
const renderPathsMax = 100;

const input = {
  type: 'object',
  required: ['origin'],
  properties: {
    ...placeInput.properties,
    path: { ...placeInput.properties.path, nullable: true },
    paths: {
      description:
        `Up to ${renderPathsMax} paths instead of one: the answer has \`pages\`, one for each of ` +
        'them in their order, each with its data or its error.',
      oneOf: [
        { type: 'string', nullable: true },
        { type: 'array', minItems: 1, maxItems: renderPathsMax, items: { type: 'string' } },
      ],
    },
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

const renderProperties = [
  ...['id', 'seq', 'origin', 'path', 'query', 'capture', 'kind', 'lang', 'engine'],
  ...['enginedata', 'enginereference', 'table', 'meta', 'script', 'user'],
];

const renderInformation: JsonObject = {
  title: 'RenderInformation',
  type: 'object',
  required: renderProperties,
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

const renderedPages: JsonObject = {
  title: 'RenderedPages',
  type: 'object',
  required: ['pages'],
  properties: {
    pages: {
      type: 'array',
      description: 'One for each of `paths`, in their order.',
      items: {
        type: 'object',
        required: ['path'],
        properties: {
          path: { ...text, description: 'As the call names it.' },
          data: renderInformation,
          error: {
            title: 'RenderError',
            type: 'object',
            required: ['code', 'message'],
            properties: {
              code: text,
              message: text,
              field: text,
              retry_after: { type: 'integer', description: 'Seconds; of rate_limited.' },
            },
            description: 'Why the path has no data; the others have theirs.',
          },
        },
      },
    },
  },
};

const renderOutput: JsonObject = { anyOf: [renderInformation, renderedPages] };

/**
 * userinterface.get_render: the data with which a generic page renders itself
 * (docs/design/rendering.md#generic-pages).
 */
export const getRender = defineOperation({
  name: 'svc1.userinterface.get_render',
  scope: 'render',
  effect: 'reads',
  inDrafts: true,
  optionalArgument: 'path',
  summary: 'The data that a generic page needs to render itself for an origin, path and query.',
  input,
  output: renderOutput,
  etag: true,
  failures: ['not_found'],
  run:
    ({ view, ...parts }: PageParts) =>
    async (v, call) => {
      const { path, paths } = v;
      if ((path === undefined) === (paths === undefined)) throw pathOrPaths(path);
      const nowMs = timeThen(parts.store, v.as_of);
      const previewed = await previewFor(v, call, { nowMs, locationOf: parts.locationOf });
      const origin = parseOrigin(v.origin);
      const visitor = previewed?.visitor ?? visitorAt(call, { origin });
      await visitor.prepare(needsUser);
      // Throws for all paths what none of them decides.
      const site = siteFor(parts, v, call);
      const query = queryText(v.query);
      const at = (one: string) =>
        renderedAt(
          { view, site, live: parts.site },
          { origin, path: one, query },
          { call, previewed, visitor },
        );
      if (paths !== undefined) {
        const turns = turnsOf(call);
        return renderedEach([paths].flat(), async (one) => {
          if (turns.isOver()) await turns.next();
          await call.countPage?.({ origin, path: one });
          return at(one);
        });
      }
      const { data, found, ...shared } = await at(path ?? '');
      return renderAnswer(data, found, shared);
    },
});

/** Bytes of all pages of an answer. */
const renderBytesMax = 4 * MIB;

/** Bytes of all pages that are made for an answer, with those that do not fit. */
const renderTriedBytesMax = 2 * renderBytesMax;

/** The data of one page, and who may share it. */
interface RenderedPage {
  readonly data: object;
  readonly found: FoundRule;
  readonly isForAll: boolean;
  readonly dependencies: Dependencies | undefined;
}

/** The views of the site for a call: what a moment or preview shows, and what is live. */
interface RenderSite {
  readonly view: PageParts['view'];
  readonly site: SiteAccess;
  /** Its access rules are those of now. */
  readonly live: SiteAccess;
}

async function renderedAt(
  { view, site, live }: RenderSite,
  place: Place,
  {
    call,
    previewed,
    visitor,
  }: {
    readonly call: Call;
    readonly previewed: Awaited<ReturnType<typeof previewFor>>;
    readonly visitor: Visitor;
  },
): Promise<RenderedPage> {
  const user = visitor.user();
  const where = contentPlace(place, view, call.caller);
  const lookup = { fields: previewed?.fields ?? call.fields, caller: call.caller };
  const find = () => winningRule(site, where, lookup);
  const found = await visibleRule({ site: live }, where, { call, find });
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
  return { data, found, isForAll, dependencies: rendered.dependencies };
}

/**
 * The answer with several pages. Each counts for the rates of its path, and is held to its access
 * rules, as if a call of its own asked for it; what fails, fails alone.
 */
async function renderedEach(
  paths: readonly string[],
  render: (path: string) => Promise<RenderedPage>,
): Promise<OperationResult> {
  const pages: PreparedJson[] = [];
  const rendered: RenderedPage[] = [];
  let [bytes, triedBytes] = [0, 0];
  for (const path of paths) {
    const isSpent = triedBytes > renderTriedBytesMax;
    const page = isSpent ? tooLarge() : await orFailure(render(path));
    const shown = page instanceof Failure ? undefined : preparedObject({ path, data: page.data });
    triedBytes += shown?.bytes.length ?? 0;
    const failure = page instanceof Failure ? page : tooLarge();
    if (
      shown === undefined ||
      page instanceof Failure ||
      bytes + shown.bytes.length > renderBytesMax
    ) {
      pages.push(preparedObject({ path, error: errorOf(failure) }));
      continue;
    }
    bytes += shown.bytes.length;
    pages.push(shown);
    rendered.push(page);
  }
  const all = rendered.flatMap(({ dependencies }) => dependencies ?? []);
  return renderAnswer(
    { pages: preparedList(pages) },
    { variesByLanguage: rendered.some(({ found }) => found.variesByLanguage) },
    {
      // What one visitor may not see, another one may.
      isForAll: rendered.length === pages.length && rendered.every(({ isForAll }) => isForAll),
      dependencies: all.length === 0 ? undefined : joinedDependencies(all),
    },
  );
}

/** What a page is, or the failure of it alone; rejects with what is a bug. */
async function orFailure(page: Promise<RenderedPage>): Promise<RenderedPage | Failure> {
  try {
    return await page;
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code !== 'internal') return thrown;
    throw thrown;
  }
}

function errorOf({ code, message, field, retryAfterSeconds }: Failure): JsonObject {
  return {
    code,
    message,
    ...(field !== undefined && { field }),
    ...(retryAfterSeconds !== undefined && { retry_after: retryAfterSeconds }),
  };
}

function tooLarge(): Failure {
  return new Failure(
    'too_large',
    `All pages of an answer have at most ${renderBytesMax / MIB} MiB: ask for this one alone.`,
  );
}

function pathOrPaths(path: string | undefined): Failure {
  return path === undefined
    ? new Failure('invalid', 'path is missing.', { field: 'path' })
    : new Failure('invalid', 'Name one path, or paths, not both.', { field: 'paths' });
}

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
