import { type Reply, privateReply } from '../../core/http/reply.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import type { Step } from '../../core/pipeline/pipeline.ts';
import type { SwitchedProtocol } from '../../core/pipeline/source.ts';
import { failureFrom } from '../../core/values/failure.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import type { AccessGuard } from './access-guard.ts';
import { admittedReply, explainPlace } from './place-access.ts';

/**
 * The step of `[access.<name>]`: only those whom the guard admits get on. It checks the path of the
 * client, and again each one inside the server. Without access rules, it only explains
 * the sections that page rules name: those are closed.
 */
export function accessStep(guard: AccessGuard | undefined): Step {
  const explain: Step['explain'] = (request, next) => {
    const explained = next(request);
    return request.inside === undefined ? explainPlace(guard, request, explained) : explained;
  };
  if (guard === undefined) return { at: 'access', explain };
  return {
    at: 'access',
    handle: (request, next) => guarded(guard, request, next),
    open: (request, next) => guarded(guard, request, next),
    explain,
  };
}

/** The answer to a request that the guard admits, or the reply that it makes instead. */
function guarded<T extends Reply | SwitchedProtocol | undefined>(
  guard: AccessGuard,
  sent: ContentRequest,
  next: (admitted: ContentRequest) => T | Promise<T>,
): T | Reply | Promise<T | Reply> {
  const admit = (given: ContentRequest): T | Reply | Promise<T | Reply> => {
    const { trailers } = given;
    const request = trailers ? { ...given, trailers: () => guard.trailersOf(trailers()) } : given;
    return admittedReply(guard.admit(request), request, next);
  };
  return sent.inside === undefined ? forItsClient(guard, sent, admit) : admit(sent);
}

/**
 * The answer to a whole request: a reply that depends on an access rule, also that of a page inside
 * another one, is for its client only.
 */
function forItsClient<T extends Reply | SwitchedProtocol | undefined>(
  guard: AccessGuard,
  request: ContentRequest,
  respond: (request: ContentRequest) => T | Promise<T>,
): T | Promise<T> {
  const accessRules = new Set<string>();
  const admits = (): Reply['admits'] => guard.reuseFor([...accessRules]);
  const mark = (reply: T): T => {
    if (accessRules.size === 0 || reply === undefined || 'connection' in reply) return reply;
    return privateReply({ ...reply, admits: admits() }) as T;
  };
  const fail = (thrown: unknown): never => {
    throw accessRules.size === 0 ? thrown : failureFrom(thrown).forClient(admits());
  };
  try {
    const answer = whenReady(respond({ ...request, accessRules }), mark);
    return answer instanceof Promise ? answer.catch(fail) : answer;
  } catch (thrown) {
    return fail(thrown);
  }
}
