import type { Reply } from '../../core/http/reply.ts';
import type { AccessClient, ContentRequest } from '../../core/http/request.ts';
import type { Explanation } from '../../core/pipeline/explanation.ts';
import type { AccessPlace, PlaceAccess } from '../../core/pipeline/place-access.ts';
import { Failure } from '../../core/values/failure.ts';
import { pathOfText, requestPathOf } from '../../core/values/path.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { type AccessGuard, type Admission, explainNoSection, noSection } from './access-guard.ts';
import type { GuardedRequest } from './access-request.ts';

/** The access of a configuration for content and operations; `guard`: undefined without rules. */
export function createPlaceAccess(guard: AccessGuard | undefined): PlaceAccess {
  const admitTo = (name: string, request: GuardedRequest): Admission | Promise<Admission> => {
    if (guard === undefined) throw noSection(name);
    return guard.admitTo(name, request);
  };
  return {
    hasRules: guard !== undefined,
    admitted(section, request, respond) {
      if (section === undefined) return respond(request);
      return admittedReply(admitTo(section, request), request, respond);
    },
    explainSections(sections, visitor) {
      const names = new Set(sections.filter((name) => name !== undefined));
      return [...names].map((name) => guard?.explainNamed(name, visitor) ?? explainNoSection(name));
    },
    explainPlace: (place, explanation) => explainPlace(guard, place, explanation),
    requirePlace: (...asked) => guard && requireAdmission(guard.admit(clientRequest(...asked))),
    requireSection(section, ...asked) {
      if (section === undefined) return undefined;
      return requireAdmission(admitTo(section, clientRequest(...asked)));
    },
  };
}

/** The reply of an admission, or that to the admitted request. */
export function admittedReply<T>(
  made: Admission | Promise<Admission>,
  request: ContentRequest,
  respond: (admitted: ContentRequest) => T | Promise<T>,
): T | Reply | Promise<T | Reply> {
  return whenReady<Admission, T | Reply>(made, (admission) => {
    if ('reply' in admission) return admission.reply;
    const { fields, query = request.query, passed, password, isPersonal } = admission;
    if (passed === undefined && fields === request.fields) return respond(request);
    const passedAccess = new Set([...(request.passedAccess ?? []), ...(passed ?? [])]);
    return respond({
      ...{ ...request, fields, query, passedAccess },
      ...(password !== undefined && { password }),
      ...(isPersonal && { isPersonal }),
    });
  });
}

/** As PlaceAccess.explainPlace. */
export function explainPlace(
  guard: Pick<AccessGuard, 'explain'> | undefined,
  { origin, path, visitor }: Parameters<PlaceAccess['explainPlace']>[0],
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

/** A client's request for a place, as the guard takes it. */
function clientRequest(
  { origin, path, query = '' }: AccessPlace,
  client: AccessClient,
  accessRules?: Set<string>,
): GuardedRequest {
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

/** An operation does not give the answer of another server to its caller: it only refuses. */
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
