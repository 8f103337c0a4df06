import type { AccessGuard, Admission } from '../access/access-guard.ts';
import type { ResolvedBreadcrumb } from '../breadcrumbs/resolve.ts';
import { privateReply, type Reply } from '../http/reply.ts';
import type { AccessClient, ContentRequest } from '../http/request.ts';
import type { Explanation } from '../model/explanation.ts';
import { Failure, failureFrom } from '../model/failure.ts';
import { pathOfText, requestPathOf } from '../model/path.ts';
import type { PageRequest } from '../rules/source.ts';
import type { Precedence } from './precedence.ts';

/**
 * The reply to a request that the guard admits, or the reply that it makes instead. Throws or
 * rejects as AccessGuard.admit.
 */
export function guardedReply<T>(
  guard: AccessGuard | undefined,
  { request: sent, depth }: { readonly request: ContentRequest; readonly depth: number },
  respond: (admitted: ContentRequest) => T | Promise<T>,
): T | Reply | Promise<T | Reply> {
  if (guard === undefined) return respond(sent);
  const { trailers } = sent;
  const request = trailers ? { ...sent, trailers: () => guard.trailersOf(trailers()) } : sent;
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
  const admission = guard.admit(request, depth);
  return admission instanceof Promise ? admission.then(answer) : answer(admission);
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
export function withPrivacy(
  guard: AccessGuard | undefined,
  respond: (request: ContentRequest) => Reply | Promise<Reply>,
): (request: ContentRequest) => Reply | Promise<Reply> {
  if (guard === undefined) return respond;
  return (request) => {
    const accessRules = new Set<string>();
    const mark = (reply: Reply): Reply =>
      accessRules.size === 0
        ? reply
        : privateReply({ ...reply, admits: guard.reuseFor([...accessRules]) });
    const fail = (thrown: unknown): never => {
      throw accessRules.size === 0 ? thrown : failureFrom(thrown).forClient();
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
  const { origin, path, query = '' } = place;
  const both = requestPathOf(pathOfText(rooted(path)));
  const { fields, visitor } = client;
  const asked = { origin, ...both, query, method: 'GET', fields, visitor, client };
  const collected = accessRules === undefined ? asked : { ...asked, accessRules };
  const admission = guard?.admit(collected, 0);
  if (admission instanceof Promise) return admission.then(refuseReply);
  if (admission !== undefined) refuseReply(admission);
  return undefined;
}

/** Requires access to all keys that a breadcrumb has led over; as requireAccess. */
export async function requireHops(
  guard: AccessGuard | undefined,
  { resolved, origin }: { readonly resolved: ResolvedBreadcrumb; readonly origin: string },
  client: AccessClient,
  accessRules?: Set<string>,
): Promise<ResolvedBreadcrumb> {
  for (const { key } of resolved.hops) {
    if (key !== undefined) await requireAccess(guard, { origin, path: key }, client, accessRules);
  }
  return resolved;
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
  const access = guard?.explain({ origin, path: rooted(path), visitor }) ?? [];
  if (access.length === 0) return explanation;
  const refusing = access.find(({ passes }) => passes === false);
  const notes = [...access.map(({ says }) => says), ...explanation.notes];
  return { ...explanation, access, notes, status: refusing?.status ?? explanation.status };
}
