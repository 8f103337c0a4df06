import type { Readable } from 'node:stream';
import { plainPage } from '../http/html.ts';
import {
  noBody,
  replyField,
  type Body,
  type Reply,
  isEmptyStatus,
  withoutFields,
} from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { Answer } from '../outbound/exchange.ts';
import { bodyTooLarge, meteredBody } from './fetch-body.ts';
import { answerFields, isLoop, requestFields, viaName } from './fetch-fields.ts';
import { askOneOf, type Ask, type Answered } from './fetch-asking.ts';
import type { FetchHealth } from './fetch-health.ts';
import {
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
   * What respond would come to, as far as that is known without asking the source; throws what it
   * refuses before it asks, a loop and content left aside.
   */
  foresee(rule: FetchRule, asked: Asked): Outcome;
}

/**
 * Makes the source: `via` is this server's name in Via fields, `bodyBytesMax` bounds the content of
 * a request.
 */
export function createFetch({
  dialler,
  health,
  bodyBytesMax,
  via,
}: {
  readonly dialler: Dialler;
  readonly health: FetchHealth;
  readonly bodyBytesMax: number;
  readonly via: string;
}): Fetch {
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
      const plan = taking(planOf(rule), request.method);
      if (isLoop(request.fields.via, viaName(via, plan.id))) return loopReply(plan);
      const ways = requireWays(plan, request);
      const asking = { ...request, body: bodyOf(request, bodyBytesMax) };
      const sent = requestFields(plan, asking, via);
      const ask: Ask = ({ source, target }, begun) =>
        dialler.send({
          origin: source.origin,
          target,
          method: request.method,
          fields: sent,
          body: asking.body && meteredBody(asking.body, bodyBytesMax),
          signal: request.signal,
          ...(begun !== undefined && { begun }),
        });
      const [only] = ways;
      const answered: Answered =
        plan.sources.length === 1
          ? { way: only, answer: await ask(only) }
          : await askOneOf(ways, asking, { ask, health });
      const { way, answer } = answered;
      const fetched = { plan, ...way, origin: request.origin, path: request.path };
      return replyWith(answer, {
        request,
        plan,
        fields: answerFields(answer.fields, fetched, via),
      });
    },
    foresee(rule, asked) {
      const plan = taking(planOf(rule), asked.method);
      requireWays(plan, asked);
      return { status: null, notes: [notAsked(rule), ...setAside(plan, health)] };
    },
  };
}

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
function taking(plan: FetchPlan, method: string): FetchPlan {
  if (plan.methods.includes(method)) return plan;
  throw new Failure('method_not_allowed', 'This page does not take that method.', {
    allow: plan.methods,
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

function replyWith(
  answer: Answer,
  {
    request,
    plan,
    fields,
  }: {
    readonly request: ContentRequest;
    readonly plan: FetchPlan;
    readonly fields: string[];
  },
): Reply {
  const status = answer.status === 200 ? (plan.httpresponse ?? 200) : answer.status;
  const source = `rule:${plan.id}`;
  if (request.method === 'HEAD' || isEmptyStatus(status)) {
    answer.discard();
    // RFC 9110 §8.6: a 204 has no Content-Length; that of a 304 or to a HEAD is the length a GET
    // would have had.
    const kept =
      status === 204 || status === 205 ? withoutFields(fields, 'content-length') : fields;
    return { status, fields: kept, body: noBody, source };
  }
  const body = bodyFrom(answer, replyField({ fields }, 'content-length'));
  if (body.kind === 'bytes' && replyField({ fields }, 'content-length') === undefined) {
    fields.push('Content-Length', String(body.bytes.length));
  }
  return { status, fields, body, source };
}

function bodyFrom(answer: Answer, contentLength: string | undefined): Body {
  const content = answer.content();
  if (Buffer.isBuffer(content)) return { kind: 'bytes', bytes: content };
  const bytesLength = contentLength === undefined ? undefined : Number(contentLength);
  return { kind: 'stream', stream: content, bytesLength };
}

/** RFC 5842 §7.2 in spirit: the request comes back to the rule that sent it. */
function loopReply({ id }: FetchPlan): Reply {
  const page = plainPage('508 Loop Detected', 'This page is fetched from itself.');
  const bytes = Buffer.from(page);
  return {
    status: 508,
    fields: [
      'Content-Type',
      'text/html; charset=utf-8',
      'Content-Length',
      String(bytes.length),
      'Cache-Control',
      'no-store',
    ],
    body: { kind: 'bytes', bytes },
    source: `rule:${id}`,
  };
}
