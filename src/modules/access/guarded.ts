import { explainNoSection, noSection, type AccessGuard, type Admission } from './access-guard.ts';
import type { ResolvedBreadcrumb } from '../breadcrumbs/resolve.ts';
import { privateReply, type Reply } from '../../core/http/reply.ts';
import type { AccessClient, ContentRequest } from '../../core/http/request.ts';
import type { AccessExplanation, Explanation } from '../../core/pipeline/explanation.ts';
import { Failure, failureFrom } from '../../core/values/failure.ts';
import { pathOfText, requestPathOf } from '../../core/values/path.ts';
import { accessOf, type Rule } from '../rules/rule.ts';
import type { Visitor } from '../../core/http/visitor.ts';
import type { PageRequest } from '../../core/pipeline/source.ts';
import type { GuardedRequest } from './access-request.ts';
import type { Precedence } from '../../core/pipeline/precedence.ts';
import type { SwitchedProtocol } from '../proxy/fetcher.ts';

/**
 * The reply to a request that the guard admits, or the reply that it makes instead. Throws or
 * rejects as AccessGuard.admit.
 */
export function guardedReply<T>(
  guard: AccessGuard | undefined,
  { request: sent, depth }: GuardedPage,
  respond: (admitted: ContentRequest) => T | Promise<T>,
): T | Reply | Promise<T | Reply> {
  if (guard === undefined) return respond(sent);
  const { trailers } = sent;
  const request = trailers ? { ...sent, trailers: () => guard.trailersOf(trailers()) } : sent;
  return admittedReply(guard.admit(request, depth), request, respond);
}

/** A request, and the number of generic pages around it. */
interface GuardedPage {
  readonly request: ContentRequest;
  readonly depth: number;
}

/**
 * The reply of a page rule to a request that its own `access` admits; otherwise as guardedReply.
 * The guard has admitted it to the path before.
 */
export function guardedRule<T>(
  guard: AccessGuard | undefined,
  rule: Rule,
  { request, depth }: GuardedPage,
  respond: (admitted: ContentRequest) => T | Promise<T>,
): T | Reply | Promise<T | Reply> {
  const name = accessOf(rule);
  if (name === undefined) return respond(request);
  if (guard === undefined) throw noSection(name);
  return admittedReply(guard.admitTo(name, request, depth), request, respond);
}

/** The reply of an admission, or that to the admitted request. */
function admittedReply<T>(
  made: Admission | Promise<Admission>,
  request: ContentRequest,
  respond: (admitted: ContentRequest) => T | Promise<T>,
): T | Reply | Promise<T | Reply> {
  const answer = (admission: Admission): T | Reply | Promise<T | Reply> => {
    if ('reply' in admission) return admission.reply;
    const { fields, query = request.query, passed, password, isPersonal } = admission;
    if (passed === undefined && fields === request.fields) return respond(request);
    const passedAccess = new Set([...(request.passedAccess ?? []), ...(passed ?? [])]);
    return respond({
      ...{ ...request, fields, query, passedAccess },
      ...(password !== undefined && { password }),
      ...(isPersonal && { isPersonal }),
    });
  };
  return made instanceof Promise ? made.then(answer) : answer(made);
}

/** The same sources for those whom the guard admits. */
export function guardedPrecedence(guard: AccessGuard | undefined, order: Precedence): Precedence {
  if (guard === undefined) return order;
  return {
    respond: (request, depth) =>
      guardedReply(guard, { request, depth }, (admitted) => order.respond(admitted, depth)),
    explain: (request, depth) => order.explain(request, depth),
  };
}

/**
 * Makes the answers of a site to whole requests: a reply that depends on an access rule, also that
 * of a page inside another one, is for its client only.
 */
export function withPrivacy<T extends Reply | SwitchedProtocol>(
  guard: AccessGuard | undefined,
  respond: (request: ContentRequest) => T | Promise<T>,
): (request: ContentRequest) => T | Promise<T> {
  if (guard === undefined) return respond;
  return (request) => {
    const accessRules = new Set<string>();
    const admits = (): Reply['admits'] => guard.reuseFor([...accessRules]);
    const mark = (reply: T): T => {
      if (accessRules.size === 0 || 'connection' in reply) return reply;
      return privateReply({ ...reply, admits: admits() }) as T;
    };
    const fail = (thrown: unknown): never => {
      throw accessRules.size === 0 ? thrown : failureFrom(thrown).forClient(admits());
    };
    try {
      const answer = respond({ ...request, accessRules });
      return answer instanceof Promise ? answer.then(mark, fail) : mark(answer);
    } catch (thrown) {
      return fail(thrown);
    }
  };
}

/**
 * Throws or rejects as AccessGuard.admit unless a client of operations may see a place; undefined
 * if that is known at once. `path` is canonical, or the key of a breadcrumb.
 */
export function requireAccess(
  guard: AccessGuard | undefined,
  place: { readonly origin: string; readonly path: string; readonly query?: string },
  client: AccessClient,
  accessRules?: Set<string>,
): Promise<void> | undefined {
  return guard && requireAdmission(guard.admit(clientRequest(place, client, accessRules), 0));
}

/** As requireAccess, for the `access` of a page rule itself, which answers at a place. */
export function requireRuleSection(
  guard: AccessGuard | undefined,
  rule: Rule,
  ...asked: Parameters<typeof clientRequest>
): Promise<void> | undefined {
  const name = accessOf(rule);
  if (name === undefined) return undefined;
  if (guard === undefined) throw noSection(name);
  return requireAdmission(guard.admitTo(name, clientRequest(...asked), 0));
}

/** A client's request for a place, as the guard takes it. */
function clientRequest(
  place: { readonly origin: string; readonly path: string; readonly query?: string },
  client: AccessClient,
  accessRules?: Set<string>,
): GuardedRequest {
  const { origin, path, query = '' } = place;
  const both = requestPathOf(pathOfText(rooted(path)));
  const { fields, visitor } = client;
  const asked = { origin, ...both, query, method: 'GET', fields, visitor, client };
  return accessRules === undefined ? asked : { ...asked, accessRules };
}

function requireAdmission(admission: Admission | Promise<Admission>): Promise<void> | undefined {
  if (admission instanceof Promise) return admission.then(refuseReply);
  refuseReply(admission);
  return undefined;
}

/**
 * Requires access to all keys that a breadcrumb has led over, and to their rules; as requireAccess.
 * `isFirstAdmitted` is whether the client has been admitted to the rule of the first one.
 */
export async function requireHops(
  guard: AccessGuard | undefined,
  {
    resolved: { hops },
    origin,
    isFirstAdmitted,
  }: {
    readonly resolved: Pick<ResolvedBreadcrumb, 'hops'>;
    readonly origin: string;
    readonly isFirstAdmitted: boolean;
  },
  client: AccessClient,
  accessRules?: Set<string>,
): Promise<void> {
  for (const [at, { key, stored }] of hops.entries()) {
    const place = { origin, path: key ?? stored.rule.path };
    if (key !== undefined) await requireAccess(guard, place, client, accessRules);
    if (at === 0 && isFirstAdmitted) continue;
    await requireRuleSection(guard, stored.rule, place, client, accessRules);
  }
}

/** The answer of another server is none of an operation: it only refuses. */
function refuseReply(admission: Admission): void {
  if (!('reply' in admission)) return;
  const { status, source } = admission.reply;
  throw new Failure(
    status === 401 ? 'unauthenticated' : 'forbidden',
    'Another server, which decides about this page, refuses it.',
    { source },
  );
}

/** Keys need no slash in front; the patterns of access rules have one. */
function rooted(path: string): string {
  return path.startsWith('/') ? path : `/${path}`;
}

/** A place, or the key of a breadcrumb as its path. */
type KeyPlace = Pick<PageRequest, 'origin' | 'visitor'> & { readonly path: string };

/** Adds the access rules of a place to an explanation; one that refuses decides the status. */
export function withAccess(
  guard: AccessGuard | undefined,
  { origin, path, visitor }: KeyPlace,
  explanation: Explanation,
): Explanation {
  const ofPath = guard?.explain({ origin, path: rooted(path), visitor }) ?? [];
  const names = new Set(ofPath.map(({ rule }) => rule));
  const ofRules = explanation.access?.filter(({ rule }) => !names.has(rule)) ?? [];
  const access = [...ofPath, ...ofRules];
  if (access.length === 0) return explanation;
  const refusing = access.find(({ passes }) => passes === false);
  const notes = [...access.map(({ says }) => says), ...explanation.notes];
  return { ...explanation, access, notes, status: refusing?.status ?? explanation.status };
}

/** Whether the sections that page rules name let a described visitor in. */
export function explainRuleAccess(
  guard: AccessGuard | undefined,
  rules: readonly Rule[],
  visitor: Visitor,
): readonly AccessExplanation[] {
  const names = new Set(rules.map(accessOf).filter((name) => name !== undefined));
  return [...names].map((name) => guard?.explainNamed(name, visitor) ?? explainNoSection(name));
}
