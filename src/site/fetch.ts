import type { Duplex, Readable } from 'node:stream';
import { replyField, withoutFields, type FieldList, type Reply } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { Answer } from '../outbound/exchange.ts';
import { bodyTooLarge, meteredBody } from './fetch-body.ts';
import { answerFields, isLoop, viaName } from './fetch-fields.ts';
import { createSentFields, type SentFields } from './fetch-sent.ts';
import { askOneOf, type Ask, type Answered } from './fetch-asking.ts';
import type { FetchHealth } from './fetch-health.ts';
import { loopReply, replyWith } from './fetch-reply.ts';
import {
  allowedMethods,
  fetchPlan,
  fetchWays,
  type FetchPlan,
  type FetchRule,
  type FetchWay,
} from './fetch-source.ts';
import type { Asked, Outcome } from './source.ts';

/** The source of content that other servers have (contract §8). */
export interface Fetch {
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
  open(rule: FetchRule, request: ContentRequest): Promise<Opened | Reply>;
  /**
   * What respond would come to, as far as that is known without asking the source; throws what it
   * refuses before it asks, a loop and content left aside.
   */
  foresee(rule: FetchRule, asked: Asked): Outcome;
}

/** A websocket that a source has opened. */
export interface Opened {
  /** The fields of the 101 but Connection and Upgrade. */
  readonly fields: FieldList;
  /** The connection to the source, from the first byte behind its 101 on. */
  readonly connection: Duplex;
  /** As in Reply. */
  readonly source: string;
}

/**
 * What fetching stands on: `via` is this server's name in Via fields, `bodyBytesMax` bounds the
 * content of a request.
 */
interface FetchParts {
  readonly dialler: Dialler;
  readonly health: FetchHealth;
  readonly bodyBytesMax: number;
  readonly via: string;
}

/** Makes the source of fetched content. */
export function createFetch(parts: FetchParts): Fetch {
  const { health, via } = parts;
  const asking = { ...parts, sentFields: createSentFields(via) };
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
      const plan = taking(planOf(rule), rule, request.method);
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      const { answer, fields } = await ask(asking, plan, request);
      return replyWith(answer, { request, plan, fields });
    },
    async open(rule, request) {
      const plan = planOf(rule);
      if (!plan.upgrades) throw new Failure('not_found', 'There is no websocket here.');
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      const { answer, fields } = await ask(asking, plan, request, 'websocket');
      const { connection } = answer;
      if (connection === undefined) return replyWith(answer, { request, plan, fields });
      if (replyField(answer, 'upgrade')?.toLowerCase() !== 'websocket') {
        answer.discard();
        throw new Failure('bad_gateway', 'The source opens something else than a websocket.');
      }
      return { fields, connection, source: `rule:${plan.id}` };
    },
    foresee(rule, asked) {
      const plan = taking(planOf(rule), rule, asked.method);
      requireWays(plan, asked);
      return { status: null, notes: [notAsked(rule), ...setAside(plan, health)] };
    },
  };
}

/** Asks a source of a plan; resolves to its answer and the fields as the client has to see them. */
async function ask(
  {
    dialler,
    health,
    bodyBytesMax,
    via,
    sentFields,
  }: FetchParts & { readonly sentFields: SentFields },
  plan: FetchPlan,
  request: ContentRequest,
  upgrade?: 'websocket',
): Promise<{ readonly answer: Answer; readonly fields: string[] }> {
  const { origin, path, method, signal, interim } = request;
  const body = bodyOf(request, bodyBytesMax);
  const ways = requireWays(plan, request);
  const fields = sentFields(plan, request, body !== undefined);
  const askBy: Ask = ({ source, target }, begun) =>
    dialler.send({
      origin: source.origin,
      target,
      method,
      fields,
      body: body && meteredBody(body, bodyBytesMax),
      signal,
      interim:
        interim &&
        ((status, said) => {
          const seen = answerFields(said, { plan, source, target, origin, path }, via);
          // It has no content (RFC 9110 §8.6), whatever its source says.
          interim(status, withoutFields(seen, 'content-length'));
        }),
      ...(begun !== undefined && { begun }),
      ...(upgrade !== undefined && { upgrade }),
    });
  const [only] = ways;
  const { way, answer }: Answered =
    plan.sources.length === 1
      ? { way: only, answer: await askBy(only) }
      : await askOneOf(ways, { method, body, signal }, { ask: askBy, health });
  requireMeaning(answer);
  const { source, target } = way;
  const fetched = { plan, source, target, origin, path };
  return { answer, fields: answerFields(answer.fields, fetched, via) };
}

/**
 * Refuses an answer that nobody could make anything of: content that is compressed in its framing,
 * which nobody has asked for (RFC 9112 §6.1, §7.2) and without the field nobody could tell; a
 * status that is none (RFC 9110 §15), and cannot be sent over HTTP/2.
 */
function requireMeaning(answer: Answer): void {
  const isCompressed = compressing.test(replyField(answer, 'transfer-encoding') ?? '');
  if (!isCompressed && answer.status <= lastStatus) return;
  answer.discard();
  const what = isCompressed ? 'a transfer coding that is not asked for' : 'a status that is none';
  throw new Failure('bad_gateway', `The source answers with ${what}.`);
}

/** The transfer codings that are registered (RFC 9112 §12.2) besides chunks. */
const compressing = /(?:^|[\s,])(?:deflate|(?:x-)?(?:gzip|compress))(?:[\s,;]|$)/i;

const lastStatus = 599;

function notAsked({ httpresponse }: FetchRule): string {
  const replaced = httpresponse === undefined ? '' : `; in place of its 200, ${httpresponse}`;
  return `The status is that of the source, which was not asked${replaced}.`;
}

/** The content of a GET or HEAD means nothing (RFC 9110 §9.3.1) and is not passed on. */
function bodyOf({ method, fields, body }: ContentRequest, bytesMax: number): Readable | undefined {
  if (body === undefined || method === 'GET' || method === 'HEAD') return undefined;
  if (Number(fields['content-length'] ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
  return body;
}

/** A plan for a method that it takes. */
function taking(plan: FetchPlan, rule: FetchRule, method: string): FetchPlan {
  if (plan.methods.includes(method)) return plan;
  throw new Failure('method_not_allowed', 'This page does not take that method.', {
    allow: allowedMethods(rule),
  });
}

/** Which of several sources are set aside at this moment, a sentence each. */
function setAside({ sources }: FetchPlan, health: FetchHealth): readonly string[] {
  if (sources.length === 1) return [];
  return health.setAside(sources.map(({ origin }) => origin)).map(({ origin, leftMs }) => {
    const again =
      leftMs === undefined ? 'now' : `in ${Math.ceil(leftMs / 1000)} s, or as a last resort`;
    return `${origin} has failed and is set aside: it is tried again ${again}.`;
  });
}

function requireWays(
  plan: FetchPlan,
  asked: { readonly path: string; readonly query: string },
): readonly [FetchWay, ...FetchWay[]] {
  const [first, ...others] = fetchWays(plan, asked);
  if (first === undefined) throw new Failure('not_found', 'There is no page here.');
  return [first, ...others];
}
