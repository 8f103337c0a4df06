import { replyField, type Asking, type FieldList, type Reply } from '../http/reply.ts';
import type { Duplex } from 'node:stream';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import { isLoop, viaName } from './request-fields.ts';
import type { SourceHealth } from './source-health.ts';
import {
  sendToSource,
  createSourceRequest,
  requireTargets,
  type SourceRequestParts,
} from './source-request.ts';
import { loopReply, replyToClient } from './source-reply.ts';
import { allowedMethods, fetchPlan, type FetchPlan, type FetchRule } from './fetch-plan.ts';
import type { Asked, Outcome } from '../rules/source.ts';

/** The source of content that other servers have (docs/design/fetching.md#sources). */
export interface Fetcher {
  /**
   * Answers a request with what the rule's source answers, streamed. Rejects with
   * `method_not_allowed`, `too_large` (the request's content), `not_found` (a path that would leave
   * the source), `bad_gateway` or `gateway_timeout`. The content of the answer fails when the
   * source breaks off; destroying it, or aborting the request, aborts the fetch.
   */
  respond(rule: FetchRule, request: ContentRequest): Promise<Reply>;
  /**
   * Opens the websocket that a request asks for, or resolves to what the source answers instead.
   * Rejects as respond does, and with `not_found` where the rule does not list UPGRADE.
   */
  openWebsocket(rule: FetchRule, request: ContentRequest): Promise<OpenedWebsocket | Reply>;
  /**
   * What respond would come to, as far as that is known without asking the source; throws what it
   * refuses before it asks, a loop and content left aside.
   */
  explain(rule: FetchRule, asked: Asked): Outcome;
}

/** A websocket that a source has opened. */
export interface OpenedWebsocket {
  /** The fields of the 101 but Connection and Upgrade. */
  readonly fields: FieldList;
  /** The connection to the source, from the first byte behind its 101 on. */
  readonly connection: Duplex;
  /** As in Reply. */
  readonly source: string;
}

/** What fetching stands on. */
interface FetcherParts extends SourceRequestParts {
  readonly health: SourceHealth;
}

/** Makes the source of fetched content. */
export function createFetcher(parts: FetcherParts): Fetcher {
  const { health, via } = parts;
  // A rule that is edited is another one.
  const plans = new WeakMap<FetchRule, FetchPlan>();
  const planOf = (rule: FetchRule): FetchPlan => {
    let plan = plans.get(rule);
    if (plan === undefined) {
      plan = fetchPlan(rule);
      plans.set(rule, plan);
    }
    return plan;
  };
  return {
    async respond(rule, request) {
      const plan = requireMethod(planOf(rule), rule, request.method);
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      const question = createSourceRequest(parts, plan, request);
      const { answer, fields } = await sendToSource(question, health);
      return replyToClient(answer, { request, plan, fields });
    },
    async openWebsocket(rule, request) {
      const plan = planOf(rule);
      if (!plan.upgrades) throw new Failure('not_found', 'There is no websocket here.');
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      const { answer, fields } = await sendToSource(
        createSourceRequest(parts, plan, request, 'websocket'),
        health,
      );
      const { connection } = answer;
      if (connection === undefined) return replyToClient(answer, { request, plan, fields });
      if (replyField(answer, 'upgrade')?.toLowerCase() !== 'websocket') {
        answer.discard();
        throw new Failure('bad_gateway', 'The source opens something else than a websocket.');
      }
      return { fields, connection, source: `rule:${plan.id}` };
    },
    explain(rule, asked) {
      const plan = requireMethod(planOf(rule), rule, asked.method);
      requireTargets(plan, asked);
      return { status: null, notes: [sourceStatusNote(rule), ...setAsideNotes(plan, health)] };
    },
  };
}

function sourceStatusNote({ httpresponse }: FetchRule): string {
  const replaced = httpresponse === undefined ? '' : `; in place of its 200, ${httpresponse}`;
  return `The status is that of the source, which was not asked${replaced}.`;
}

/** A plan for a method that it takes. */
function requireMethod(plan: FetchPlan, rule: FetchRule, method: string): FetchPlan {
  if (plan.methods.includes(method)) return plan;
  throw new Failure('method_not_allowed', 'This page does not take that method.', {
    allow: allowedMethods(rule),
  });
}

/** Which of several sources are set aside at this moment, a sentence each. */
function setAsideNotes({ sources }: FetchPlan, health: SourceHealth): readonly string[] {
  if (sources.length === 1) return [];
  return health.setAside(sources.map(({ origin }) => origin)).map(({ origin, leftMs }) => {
    const again =
      leftMs === undefined ? 'now' : `in ${Math.ceil(leftMs / 1000)} s, or as a last resort`;
    return `${origin} has failed and is set aside: it is tried again ${again}.`;
  });
}

/** A source that could not be had. */
interface FetchFailure {
  readonly code: 'bad_gateway' | 'gateway_timeout';
  readonly message: string;
  /** The id of the page rule that names the source. */
  readonly id: string;
}

/**
 * Tells of each failure of a source (docs/design/fetching.md#sources); a client that has gone is
 * none.
 */
export function withFailureEvents(fetch: Fetcher, tell: (failure: FetchFailure) => void): Fetcher {
  const failing =
    ({ id }: FetchRule, { signal }: Asking) =>
    (error: unknown): never => {
      if (error instanceof Failure && !signal.aborted) {
        const { code, message } = error;
        const isSource = code === 'bad_gateway' || code === 'gateway_timeout';
        if (isSource) tell({ code, message, id });
      }
      throw error;
    };
  return {
    ...fetch,
    respond: (rule, request) => fetch.respond(rule, request).catch(failing(rule, request)),
    openWebsocket: (rule, request) =>
      fetch.openWebsocket(rule, request).catch(failing(rule, request)),
  };
}
