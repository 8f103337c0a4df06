import type { JSONSchemaType } from 'ajv';
import { takeParameter } from '../../http/query.ts';
import type { Explanation, Winner } from '../../model/explanation.ts';
import { Failure } from '../../model/failure.ts';
import { methodBytesMax } from '../../http/limits.ts';
import { servicePath, urlOf } from '../../model/path.ts';
import { explainDescription } from './explain-description.ts';
import { siteThen, type Crumb, type GetOperations, type SiteAccess } from './gets.ts';
import { asOfProperty, timeThen } from '../records/moment.ts';
import type { Handler } from '../operation.ts';
import {
  parseOrigin,
  parsePlace,
  parseQueryText,
  parseUrl,
  requireBreadcrumbKey,
  type Place,
} from './place.ts';
import {
  previewOf,
  previewProperties,
  previewVisitor,
  type Preview,
  type Previewed,
} from './preview.ts';

interface Question {
  url?: string;
  origin?: string;
  path?: string;
  query?: string;
  k?: string;
  method?: string;
  as_of?: string;
}

/** An explanation with the question as it was understood, and its first sentence. */
interface Explained extends Explanation {
  readonly says: string;
  readonly request: object;
}

const text = { type: 'string', nullable: true } as const;

/**
 * userinterface.explain: how a request, or a breadcrumb's key, would be answered
 * (docs/design/operations.md#explain). It asks no other server and reads no file. The visitor is
 * the one that the question describes, of whom nothing else is known.
 */
export function explainRequest({ view, ...parts }: GetOperations): Handler<Question> {
  return {
    ...explainDescription,
    input: {
      type: 'object',
      properties: {
        url: text,
        origin: text,
        path: text,
        query: text,
        k: text,
        method: {
          ...text,
          pattern: "^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
          maxLength: methodBytesMax,
        },
        ...previewProperties,
        as_of: asOfProperty,
      },
    } as unknown as JSONSchemaType<Question>,
    run: async (v, call) => {
      const question = withoutNull(v);
      const site = siteThen(parts, question, call);
      const explained = explain(site, question, {
        origin: call.origin,
        base: view.base,
        namesOrigin: parts.namesOrigin,
        ...(await previewVisitor(previewOf(question), {
          nowMs: timeThen(parts.store, question.as_of) ?? call.visitor.nowMs,
          place: call.visitor.place(),
          locationOf: parts.locationOf,
        })),
      });
      const then = `Page rules and time are those of ${v.as_of ?? ''}; all else is as it is now.`;
      const notes = question.as_of === undefined ? waiting(parts, explained.winner) : [then];
      return { kind: 'data', data: { ...explained, notes: [...explained.notes, ...notes] } };
    },
  };
}

/** What the rule that answers does not heed, for it is not valid. */
function waiting({ store }: Pick<GetOperations, 'store'>, winner: Winner | null): string[] {
  const rule = winner?.id === undefined ? undefined : store.rule(winner.id)?.rule;
  const names = Object.keys(rule?._unknowns_ ?? {});
  return names.length === 0 ? [] : [`Not valid, and kept in _unknowns_: ${names.join(', ')}.`];
}

/** A field that is null is one that was not sent. */
function withoutNull(v: Question): Question {
  const sent = Object.entries(v).filter(([, value]) => (value as unknown) !== null);
  return Object.fromEntries(sent);
}

/** By whom, and under which origin and prefix, a question is asked. */
interface Asking extends Previewed {
  readonly origin: string;
  readonly base: string;
  readonly namesOrigin: (origin: string) => boolean;
}

function explain(site: SiteAccess, question: Question, asking: Asking): Explained {
  const { k, query = '' } = question;
  const visit = { fields: asking.fields, visitor: asking.visitor };
  const about = previewOf(question);
  if (k !== undefined) {
    requireOnly(question, 'k', ['url', 'path']);
    const origin = parseOrigin(question.origin ?? asking.origin);
    return explainKey(site, { key: k, origin, query: parseQueryText(query), ...visit }, about);
  }
  const place = readPlace(question, asking.origin);
  const own = servicePath(place.path, asking.base);
  if (own !== undefined) return explainOwn(site, own, { ...place, ...visit }, about);
  const method = (question.method ?? 'GET').toUpperCase();
  if (method === 'CONNECT') {
    throw new Failure('invalid', 'CONNECT asks for no page.', { field: 'method' });
  }
  const explanation = site.explain({ ...place, method, ...visit });
  const isOwn =
    place.origin === asking.origin ||
    asking.namesOrigin(place.origin) ||
    isForOrigin(explanation, place.origin);
  return {
    says: sentence(
      `${method} ${urlOf(place)}${isOwn ? '' : ', if it reaches this server,'}`,
      explanation,
    ),
    request: { method, ...place, ...about },
    ...explanation,
    notes: isOwn ? explanation.notes : [foreignOrigin(place.origin), ...explanation.notes],
  };
}

/** Whether what answers was made for an origin, and not for `*`. */
function isForOrigin({ tried }: Explanation, origin: string): boolean {
  const winners = tried.flatMap(({ candidates }) =>
    candidates.filter(({ lost }) => lost === undefined),
  );
  return winners.some((candidate) => candidate.origin === origin);
}

function foreignOrigin(origin: string): string {
  return (
    `Nothing says that ${origin} leads here: listen, public_url, the names of [tls.<host>] and ` +
    'the origins of mounts do not name it. What is for every origin (*) answers under any name.'
  );
}

function readPlace(question: Question, ownOrigin: string): Required<Place> {
  const { url, path, origin = ownOrigin, query = '' } = question;
  if (url === undefined) {
    if (path !== undefined) return parsePlace({ origin, path, query });
    throw new Failure('invalid', 'Give a url, a path (and its origin), or the k of a breadcrumb.', {
      field: 'url',
    });
  }
  requireOnly(question, 'url', ['origin', 'path']);
  return parseUrl(url, { origin: ownOrigin, query });
}

function requireOnly(
  question: Question,
  given: keyof Question,
  others: readonly (keyof Question)[],
): void {
  const field = others.find((name) => question[name] !== undefined);
  if (field === undefined) return;
  throw new Failure('invalid', `Leave out ${field}, or ${given}: each says what is asked for.`, {
    field,
  });
}

function explainKey(site: SiteAccess, crumb: Crumb, about: Preview): Explained {
  const { key: k, origin, query } = crumb;
  requireBreadcrumbKey(k);
  const explanation = site.explainKey(crumb);
  return {
    says: sentence(`The breadcrumb ${k} of ${origin}`, explanation),
    request: { k, origin, query, ...about },
    ...explanation,
  };
}

/** What is below `{base}/svc1` is never content; a breadcrumb's own address is one nevertheless. */
function explainOwn(
  site: SiteAccess,
  own: string,
  { path, ...asked }: Required<Place> & Omit<Crumb, 'key'>,
  about: Preview,
): Explained {
  const key = takeParameter(asked.query, 'k');
  if (/^\/userinterface[./]link\.htm$/.test(own) && key !== undefined) {
    return explainKey(site, { ...asked, key: key.value, query: key.rest }, about);
  }
  const { origin, query } = asked;
  return {
    says:
      `${urlOf({ origin, path, query })} is Waymark's own: ` +
      'no source of content is asked for it.',
    request: { origin, path, query, ...about },
    winner: null,
    status: null,
    tried: [],
    notes: [],
  };
}

function sentence(subject: string, { winner, status }: Explanation): string {
  if (winner === null) return `${subject} is answered by no source: the status is ${status ?? ''}.`;
  const ending = status === null ? 'with the status of its source' : `with ${status}`;
  return `${subject} is answered by ${describe(winner)}, ${ending}.`;
}

function describe({ source, mount, id = '' }: Winner): string {
  if (mount === undefined) return `the page rule ${id}`;
  return source === 'fallback' ? `the fallback file of the mount ${mount}` : `the mount ${mount}`;
}
