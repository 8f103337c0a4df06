import type { Readable } from 'node:stream';
import { replyField, withoutFields, type Asking, type FieldList } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import { answerFields } from './answer-fields.ts';
import { askOneOf, type Ask, type Answered } from './fetch-asking.ts';
import { bodyTooLarge, meteredBody } from './fetch-body.ts';
import { requestFields } from './fetch-fields.ts';
import type { FetchHealth } from './fetch-health.ts';
import { fetchWays, type FetchPlan, type FetchWay } from './fetch-source.ts';

/**
 * What questions are asked through: `via` is this server's name in Via fields, `bodyBytesMax`
 * bounds the content of a request.
 */
export interface QuestionParts {
  readonly dialler: Dialler;
  readonly bodyBytesMax: number;
  readonly via: string;
}

/** What a request asks of the sources of a plan. */
interface Question {
  readonly plan: FetchPlan;
  readonly request: ContentRequest;
  readonly ways: readonly [FetchWay, ...FetchWay[]];
  readonly body: Readable | undefined;
  readonly send: (way: FetchWay, asking: Asking, begun?: () => void) => Promise<SourceResponse>;
  /** The fields of a source's answer as the client has to see them. */
  readonly seen: (fields: FieldList, way: FetchWay) => FieldList;
}

/**
 * Makes a request ready to be sent; throws `not_found` where its path would leave every source, and
 * `too_large`.
 */
export function questionOf(
  { dialler, bodyBytesMax, via }: QuestionParts,
  plan: FetchPlan,
  request: ContentRequest,
  upgrade?: 'websocket',
): Question {
  const { origin, path, method } = request;
  const body = bodyOf(request, bodyBytesMax);
  const ways = requireWays(plan, request);
  const fields = requestFields(plan, request, body !== undefined, via);
  const seen = (said: FieldList, { source, target }: FetchWay): FieldList =>
    answerFields(said, { plan, source, target, origin, path }, via);
  return {
    plan,
    request,
    ways,
    body,
    send: (way, { signal, interim }, begun) =>
      dialler.send({
        origin: way.source.origin,
        target: way.target,
        method,
        fields,
        body: body && meteredBody(body, bodyBytesMax),
        signal,
        interim:
          interim &&
          ((status, said) => {
            // It has no content (RFC 9110 §8.6), whatever its source says.
            interim(status, withoutFields(seen(said, way), 'content-length'));
          }),
        ...(begun !== undefined && { begun }),
        ...(upgrade !== undefined && { upgrade }),
      }),
    seen,
  };
}

/** Asks a source of a plan; resolves to its answer and the fields as the client has to see them. */
export async function ask(
  question: Question,
  health: FetchHealth,
): Promise<{ readonly answer: SourceResponse; readonly fields: FieldList }> {
  const { plan, request, ways, body } = question;
  const { method, signal } = request;
  const askBy: Ask = (way, begun) => question.send(way, request, begun);
  const [only] = ways;
  const { way, answer }: Answered =
    plan.sources.length === 1
      ? { way: only, answer: await askBy(only) }
      : await askOneOf(ways, { method, body, signal }, { ask: askBy, health });
  requireMeaning(answer);
  return { answer, fields: question.seen(answer.fields, way) };
}

/**
 * Refuses an answer that nobody could make anything of: content that is compressed in its framing,
 * which nobody has asked for (RFC 9112 §6.1, §7.2) and without the field nobody could tell; a
 * status that is none (RFC 9110 §15), and cannot be sent over HTTP/2.
 */
function requireMeaning(answer: SourceResponse): void {
  const isCompressed = compressing.test(replyField(answer, 'transfer-encoding') ?? '');
  if (!isCompressed && answer.status <= lastStatus) return;
  answer.discard();
  const what = isCompressed ? 'a transfer coding that is not asked for' : 'a status that is none';
  throw new Failure('bad_gateway', `The source answers with ${what}.`);
}

/** The transfer codings that are registered (RFC 9112 §12.2) besides chunks. */
const compressing = /(?:^|[\s,])(?:deflate|(?:x-)?(?:gzip|compress))(?:[\s,;]|$)/i;

const lastStatus = 599;

/** The content of a GET or HEAD means nothing (RFC 9110 §9.3.1) and is not passed on. */
function bodyOf({ method, fields, body }: ContentRequest, bytesMax: number): Readable | undefined {
  if (body === undefined || method === 'GET' || method === 'HEAD') return undefined;
  if (Number(fields['content-length'] ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
  return body;
}

/** The ways to an answer; throws `not_found` where there is none. */
export function requireWays(
  plan: FetchPlan,
  asked: { readonly path: string; readonly query: string },
): readonly [FetchWay, ...FetchWay[]] {
  const [first, ...others] = fetchWays(plan, asked);
  if (first === undefined) throw new Failure('not_found', 'There is no page here.');
  return [first, ...others];
}
