import { coversOrigin } from '../../../core/values/network/origin-pattern.ts';
import type { StaticInput } from '../../../core/values/json/static.ts';
import { conditionTypes } from '../../../core/pipeline/conditions/table.ts';
import { methodBytesMax } from '../../../core/http/limits.ts';
import { takeBreadcrumbToken, takeParameter } from '../../../core/http/query.ts';
import type { RequestTarget } from '../../../core/http/request.ts';
import {
  lossCodes,
  sourceNames,
  type Explanation,
  type Winner,
} from '../../../core/pipeline/explanation.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { Caller } from '../../../core/values/key.ts';
import { servicePath, urlOf } from '../../../core/values/path.ts';
import { ruleKinds } from '../rule.ts';
import { boundExplanation } from '../bounds/explanation.ts';
import { requireInside } from '../bounds/rules.ts';
import { asOfProperty, timeThen } from '../../../core/operations/records/moment.ts';
import { defineOperation } from '../../../core/operations/operation.ts';
import type { KeyVisit } from '../../breadcrumbs/key-visits.ts';
import type { SiteAccess } from '../site-access.ts';
import { siteFor, type PageParts } from './page-lookup.ts';
import {
  parseOrigin,
  parsePlace,
  parseQueryText,
  parseUrl,
  requireBreadcrumbKey,
} from '../../../core/operations/place.ts';
import {
  previewOf,
  previewProperties,
  previewVisitor,
  type Preview,
  type Previewed,
} from './preview.ts';
import { storedRules } from '../log/family.ts';

/** The parts that userinterface.explain needs. */
interface ExplainParts extends PageParts {
  /** Whether the ini file says that an origin leads to this server. */
  readonly namesOrigin: (origin: string) => boolean;
}

/** An explanation with its first sentence and the request in canonical form. */
interface ExplainAnswer extends Explanation {
  readonly says: string;
  readonly request: object;
}

const optionalText = { type: 'string', nullable: true } as const;
const text = { type: 'string' } as const;
const source = { ...text, enum: sourceNames } as const;
const mount = { ...text, description: 'Name of a mount of the ini file.' } as const;
const proxy = { ...text, description: 'Name of a proxy of the ini file.' } as const;
const rewrite = { ...text, description: 'Name of a rewrite of the ini file.' } as const;
const redirect = { ...text, description: 'Name of a redirect of the ini file.' } as const;
const id = { ...text, description: 'Id of a page rule.' } as const;
const status = {
  type: ['integer', 'null'],
  description: 'HTTP status of the answer; null if only another server knows it.',
} as const;

/** The reasons why a branch is not taken; that of a condition is its name. */
const branchLossCodes = ['invalid', 'earlier_branch', ...conditionTypes.map(({ name }) => name)];

const candidate = {
  type: 'object',
  required: ['origin', 'path'],
  properties: {
    mount,
    proxy,
    redirect,
    rewrite,
    id,
    kind: { ...text, enum: ruleKinds as readonly string[] },
    origin: text,
    path: text,
    lost: {
      type: 'object',
      required: ['code', 'says'],
      properties: {
        code: { ...text, enum: lossCodes },
        says: { ...text, description: 'The reason as a sentence.' },
      },
      description: 'Why it does not answer; absent if it does, or leads on to the next key.',
    },
    branches: {
      type: 'array',
      description: 'The branches of a breadcrumb that was followed, in order.',
      items: {
        type: 'object',
        required: ['branch'],
        properties: {
          branch: { ...text, description: 'when[0], when[1] and so on, or default.' },
          lost: {
            type: 'object',
            required: ['code', 'says'],
            properties: { code: { ...text, enum: branchLossCodes }, says: text },
            description: 'The first condition that does not hold; absent if the branch is taken.',
          },
        },
      },
    },
  },
} as const;

const output = {
  title: 'Explanation',
  type: 'object',
  required: ['says', 'request', 'winner', 'status', 'tried', 'notes'],
  properties: {
    says: { ...text, description: 'The outcome in a sentence.' },
    request: {
      type: 'object',
      additionalProperties: true,
      description:
        'The request. Its path is the canonical one, which mounts and rules match; sent_path is ' +
        'what the source of a content.fetch rule gets under its *.',
    },
    winner: {
      type: ['object', 'null'],
      required: ['source', 'status'],
      properties: { source, redirect, mount, proxy, id, status },
    },
    status,
    access: {
      type: 'array',
      description: 'The access rules of the place; a visitor must satisfy all of them.',
      items: {
        type: 'object',
        required: ['rule', 'passes', 'says'],
        properties: {
          rule: { ...text, description: 'Name of an access rule of the ini file.' },
          passes: {
            type: ['boolean', 'null'],
            description: 'Null if the input does not tell, as with a password.',
          },
          status: { type: 'integer', description: 'HTTP status of the refusal.' },
          says: text,
        },
      },
    },
    tried: {
      type: 'array',
      items: {
        type: 'object',
        required: ['source', 'candidates'],
        properties: {
          source,
          key: { ...text, description: 'Key of the breadcrumb that was looked up.' },
          candidates: { type: 'array', items: candidate },
          omitted: { type: 'integer', description: 'Number of further candidates.' },
        },
      },
    },
    headers: {
      type: 'array',
      items: text,
      description: 'What changes the header fields of the answer, in order; absent for nothing.',
    },
    notes: { type: 'array', items: text, description: 'Further sentences about the answer.' },
  },
} as const;

const explainInput = {
  type: 'object',
  properties: {
    url: optionalText,
    origin: optionalText,
    path: optionalText,
    query: optionalText,
    k: optionalText,
    method: {
      ...optionalText,
      pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
      maxLength: methodBytesMax,
    },
    ...previewProperties,
    as_of: asOfProperty,
  },
} as const;

type ExplainInput = StaticInput<typeof explainInput>;

/**
 * userinterface.explain: how the server would answer a request, or a breadcrumb's key
 * (docs/design/operations.md#explain). It sends no request to another server and reads no file. The
 * visitor has only the properties that the input gives.
 */
export const explainRequest = defineOperation({
  name: 'svc1.userinterface.explain',
  scope: 'read',
  effect: 'reads',
  inDrafts: true,
  summary: 'How a request would be answered, and why: every source and candidate in order.',
  input: explainInput,
  output,
  run:
    ({ view, ...parts }: ExplainParts) =>
    async (v, call) => {
      const input = withoutNulls(v);
      const site = siteFor(parts, input, call);
      const { caller } = call;
      const whole = explain(site, input, {
        caller,
        origin: call.origin,
        base: view.base,
        namesOrigin: parts.namesOrigin,
        ...(await previewVisitor(previewOf(input), {
          nowMs: timeThen(parts.store, input.as_of) ?? call.visitor.nowMs,
          place: call.visitor.place(),
          locationOf: parts.locationOf,
        })),
      });
      const explained =
        caller.bounds === undefined ? whole : boundExplanation(whole, caller.bounds);
      const then = `Page rules and time are those of ${v.as_of ?? ''}; the rest is as it is now.`;
      const notes = input.as_of === undefined ? waitingFields(parts, explained.winner) : [then];
      return { kind: 'data', data: { ...explained, notes: [...explained.notes, ...notes] } };
    },
});

/** A note about fields of the winning rule that have no effect because they are not valid. */
function waitingFields({ store }: Pick<PageParts, 'store'>, winner: Winner | null): string[] {
  const rule = winner?.id === undefined ? undefined : store.of(storedRules).rule(winner.id)?.rule;
  const names = Object.keys(rule?._unknowns_ ?? {});
  return names.length === 0 ? [] : [`Not valid, and kept in _unknowns_: ${names.join(', ')}.`];
}

/** An input without the fields that are null, which stands for a field that is not sent. */
function withoutNulls(v: ExplainInput): ExplainInput {
  const sent = Object.entries(v).filter(([, value]) => (value as unknown) !== null);
  return Object.fromEntries(sent);
}

/** The visitor of an explanation, and the origin and base of the service. */
interface Surroundings extends Previewed {
  readonly caller: Caller;
  readonly origin: string;
  readonly base: string;
  readonly namesOrigin: (origin: string) => boolean;
}

function explain(site: SiteAccess, input: ExplainInput, around: Surroundings): ExplainAnswer {
  const { k, query = '' } = input;
  const { caller } = around;
  const visit = { fields: around.fields, visitor: around.visitor, caller };
  const preview = previewOf(input);
  if (k !== undefined) {
    requireOnly(input, 'k', ['url', 'path']);
    const origin = parseOrigin(input.origin ?? around.origin);
    return explainKey(site, { key: k, origin, query: parseQueryText(query), ...visit }, preview);
  }
  const place = readPlace(input, around.origin);
  const own = servicePath(place.path, around.base);
  if (own !== undefined) return explainOwn(site, own, { ...place, ...visit }, preview);
  requireInside(caller, place, input.url === undefined ? 'path' : 'url');
  const method = (input.method ?? 'GET').toUpperCase();
  if (method === 'CONNECT') {
    throw new Failure('invalid', 'CONNECT requests no page. Give another method.', {
      field: 'method',
    });
  }
  const { fields, visitor } = around;
  const explanation = site.explain({ ...place, method, fields, visitor });
  const isOwn =
    place.origin === around.origin ||
    around.namesOrigin(place.origin) ||
    isForOrigin(explanation, place.origin);
  return {
    says: sentence(
      `${method} ${urlOf(place)}${isOwn ? '' : ', if it reaches this server,'}`,
      explanation,
    ),
    request: { method, ...shownTarget(place), ...preview },
    ...explanation,
    notes: isOwn ? explanation.notes : [foreignOrigin(place.origin), ...explanation.notes],
  };
}

/** A visit that a caller asks about. */
interface CallerVisit extends KeyVisit {
  readonly caller: Caller;
}

/** The target of a request, with both forms of its path. */
function shownTarget({ origin, path, sentPath, query }: RequestTarget): object {
  return { origin, path, sent_path: sentPath, query };
}

/** Whether the winner names the origin, and is not for `*`. */
function isForOrigin({ tried }: Explanation, origin: string): boolean {
  const winners = tried.flatMap(({ candidates }) =>
    candidates.filter(({ lost }) => lost === undefined),
  );
  return winners.some((winner) => winner.origin !== '*' && coversOrigin(winner.origin, origin));
}

function foreignOrigin(origin: string): string {
  return (
    `The configuration does not name ${origin}: not in listen, public_url, [tls.<host>] or the ` +
    'origins of mounts and proxies. What is for every origin (*) answers under any name.'
  );
}

function readPlace(input: ExplainInput, ownOrigin: string): RequestTarget {
  const { url, path, origin = ownOrigin, query = '' } = input;
  if (url === undefined) {
    if (path !== undefined) return parsePlace({ origin, path, query });
    throw new Failure('invalid', 'Give a url, a path (and its origin), or the k of a breadcrumb.', {
      field: 'url',
    });
  }
  requireOnly(input, 'url', ['origin', 'path']);
  return parseUrl(url, { origin: ownOrigin, query });
}

function requireOnly(
  input: ExplainInput,
  given: keyof ExplainInput,
  others: readonly (keyof ExplainInput)[],
): void {
  const field = others.find((name) => input[name] !== undefined);
  if (field === undefined) return;
  throw new Failure('invalid', `Give ${field} or ${given}, not both.`, { field });
}

function explainKey(
  site: SiteAccess,
  { caller, ...visit }: CallerVisit,
  preview: Preview,
): ExplainAnswer {
  const { key: k, origin, query } = visit;
  requireBreadcrumbKey(k);
  requireInside(caller, { origin, path: k }, 'k');
  const explanation = site.explainKey(visit);
  return {
    says: sentence(`The breadcrumb ${k} of ${origin}`, explanation),
    request: { k, origin, query, ...preview },
    ...explanation,
  };
}

/** Paths below `{base}/svc1` have no content, except the address of a breadcrumb. */
function explainOwn(
  site: SiteAccess,
  own: string,
  { path, sentPath, ...visit }: RequestTarget & Omit<CallerVisit, 'key'>,
  preview: Preview,
): ExplainAnswer {
  const key = takeParameter(visit.query, 'k');
  if (/^\/userinterface[./]link\.htm$/.test(own) && key !== undefined) {
    const query = takeBreadcrumbToken(key.rest)?.rest ?? key.rest;
    return explainKey(site, { ...visit, key: key.value, query }, preview);
  }
  const { origin, query } = visit;
  return {
    says: `${urlOf({ origin, path, query })} belongs to Waymark itself, not to the site.`,
    request: { ...shownTarget({ origin, path, sentPath, query }), ...preview },
    winner: null,
    status: null,
    tried: [],
    notes: [],
  };
}

function sentence(subject: string, { winner, status, access = [] }: Explanation): string {
  const refusing = access.find(({ passes }) => passes === false);
  if (refusing !== undefined) {
    return `${subject} is refused by the access rule ${refusing.rule}, with ${status ?? ''}.`;
  }
  const open = access.filter(({ passes }) => passes === null).map(({ rule }) => rule);
  const asking = open.length === 0 ? '' : `, for those whom ${open.join(' and ')} lets in`;
  const code = winner === null ? status : winner.status;
  if (winner === null) {
    return `${subject} is answered by no source${asking}: the status is ${code ?? ''}.`;
  }
  const ending = code === null ? 'with the status of its source' : `with ${code}`;
  return `${subject} is answered by ${describe(winner)}, ${ending}${asking}.`;
}

function describe(winner: Winner): string {
  const { source: winning, mount: name, proxy: app, redirect: moved, id: rule = '' } = winner;
  if (moved !== undefined) return `the redirect ${moved}`;
  if (app !== undefined) return `the proxy ${app}`;
  if (name === undefined) return `the page rule ${rule}`;
  const isMoved = winner.status !== null && winner.status >= 300 && winner.status <= 399;
  const isLine = winning === 'redirect' || (winning === 'fallback' && isMoved);
  if (isLine) return `the redirects of the mount ${name}`;
  return winning === 'fallback' ? `the fallback file of the mount ${name}` : `the mount ${name}`;
}
