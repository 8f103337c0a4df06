import type { Explanation, Winner } from '../model/explanation.ts';
import { Failure } from '../model/failure.ts';
import { headerBlockBytesMax, methodCharactersMax } from '../model/limits.ts';
import { encodePath, servicePath } from '../model/path.ts';
import { explainDescription } from './explain-description.ts';
import { siteThen, type GetOperations, type SiteAccess } from './gets.ts';
import { asOfProperty } from './moment.ts';
import type { Handler } from './operation.ts';
import { parseOrigin, parsePlace, parseUrl, requireBreadcrumbKey, type Place } from './place.ts';

interface Question {
  url?: string;
  origin?: string;
  path?: string;
  query?: string;
  k?: string;
  method?: string;
  lang?: string;
  country?: string;
  device?: string;
  user?: string;
  role?: string;
  ip?: string;
  as_of?: string;
}

/** An explanation with the question as it was understood, and its first sentence. */
interface Explained extends Explanation {
  readonly says: string;
  readonly request: object;
}

const text = { type: 'string', nullable: true } as const;

/**
 * userinterface.explain: how a request, or a breadcrumb's key, would be answered (contract §5). It
 * asks no other server and reads no file. What only the conditions of breadcrumbs depend on
 * (country, device, user, role, ip) is taken; it decides nothing as long as those are not
 * evaluated, and an explanation in which it would says so.
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
          maxLength: methodCharactersMax,
        },
        lang: { ...text, pattern: '^[\\t\\x20-\\x7e]*$', maxLength: headerBlockBytesMax },
        country: text,
        device: text,
        user: text,
        role: text,
        ip: text,
        as_of: asOfProperty,
      },
    },
    run: (v, call) => {
      const question = withoutNull(v);
      const site = siteThen(parts, question, call);
      const explained = explain(site, question, { origin: call.origin, base: view.base });
      const then = `Page rules are those of ${v.as_of ?? ''}; all else is as it is now.`;
      const notes = question.as_of === undefined ? [] : [then];
      return { kind: 'data', data: { ...explained, notes: [...explained.notes, ...notes] } };
    },
  };
}

/** A field that is null is one that was not sent. */
function withoutNull(v: Question): Question {
  const sent = Object.entries(v).filter(([, value]) => (value as unknown) !== null);
  return Object.fromEntries(sent);
}

function explain(
  site: SiteAccess,
  question: Question,
  { origin, base }: { readonly origin: string; readonly base: string },
): Explained {
  const { k, query = '', lang } = question;
  if (k !== undefined) {
    requireOnly(question, 'k', ['url', 'path']);
    return explainKey(site, k, { origin: parseOrigin(question.origin ?? origin), query });
  }
  const place = readPlace(question, origin);
  const own = servicePath(place.path, base);
  if (own !== undefined) return explainOwn(site, own, place);
  const method = (question.method ?? 'GET').toUpperCase();
  if (method === 'CONNECT') {
    throw new Failure('invalid', 'CONNECT asks for no page.', { field: 'method' });
  }
  const fields = lang === undefined ? {} : { 'accept-language': lang };
  const explanation = site.explain({ ...place, method, fields });
  return {
    says: sentence(`${method} ${urlOf(place)}`, explanation),
    request: { method, ...place, ...(lang !== undefined && { lang }) },
    ...explanation,
  };
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

function explainKey(
  site: SiteAccess,
  k: string,
  { origin, query }: { readonly origin: string; readonly query: string },
): Explained {
  requireBreadcrumbKey(k);
  const explanation = site.explainKey({ key: k, origin, query });
  return {
    says: sentence(`The breadcrumb ${k} of ${origin}`, explanation),
    request: { k, origin, query },
    ...explanation,
  };
}

/** What is below `{base}/svc1` is never content; a breadcrumb's own address is one nevertheless. */
function explainOwn(site: SiteAccess, own: string, place: Required<Place>): Explained {
  const parameters = new URLSearchParams(place.query);
  const k = parameters.get('k');
  parameters.delete('k');
  if (own === '/userinterface.link.htm' && k !== null) {
    return explainKey(site, k, { origin: place.origin, query: parameters.toString() });
  }
  return {
    says: `${urlOf(place)} is Waymark's own: no source of content is asked for it.`,
    request: place,
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

function urlOf({ origin, path, query }: Required<Place>): string {
  return `${origin}${encodePath(path)}${query === '' ? '' : `?${query}`}`;
}
