import { finished, Readable } from 'node:stream';
import { notePassedBytes } from '../outbound/passed-bytes.ts';
import { replyField, withoutFields, type Asking, type FieldList } from '../http/reply.ts';
import type { ContentRequest } from '../http/request.ts';
import { Failure } from '../model/failure.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import { responseFields } from './response-fields.ts';
import { sendWithFailover, type SendTo, type TargetAnswer } from './failover.ts';
import { requestFields } from './request-fields.ts';
import type { SourceHealth } from './source-health.ts';
import { sourceTargets, type FetchPlan, type SourceTarget } from './fetch-plan.ts';

/**
 * What questions are asked through: `via` is this server's name in Via fields, `bodyBytesMax`
 * bounds the content of a request.
 */
export interface SourceRequestParts {
  readonly dialler: Dialler;
  readonly bodyBytesMax: number;
  readonly via: string;
}

/** What a request asks of the sources of a plan. */
interface SourceRequest {
  readonly plan: FetchPlan;
  readonly request: ContentRequest;
  readonly targets: readonly [SourceTarget, ...SourceTarget[]];
  readonly body: Readable | undefined;
  readonly send: (way: SourceTarget, asking: Asking, begun?: () => void) => Promise<SourceResponse>;
  /** The fields of a source's answer as the client has to see them. */
  readonly clientFields: (fields: FieldList, way: SourceTarget) => FieldList;
}

/**
 * Makes a request ready to be sent; throws `not_found` where its path would leave every source, and
 * `too_large`.
 */
export function createSourceRequest(
  { dialler, bodyBytesMax, via }: SourceRequestParts,
  plan: FetchPlan,
  request: ContentRequest,
  upgrade?: 'websocket',
): SourceRequest {
  const { origin, path, method } = request;
  const body = bodyOf(request, bodyBytesMax);
  const ways = requireTargets(plan, request);
  const fields = requestFields(plan, request, body !== undefined, via);
  const seen = (said: FieldList, { source, target }: SourceTarget): FieldList =>
    responseFields(said, { plan, source, target, origin, path }, via);
  return {
    plan,
    request,
    targets: ways,
    body,
    send: (way, { signal, interim }, begun) =>
      dialler.send({
        origin: way.source.origin,
        target: way.target,
        method,
        fields,
        body: body && limitBody(body, bodyBytesMax),
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
    clientFields: seen,
  };
}

/** Asks a source of a plan; resolves to its answer and the fields as the client has to see them. */
export async function sendToSource(
  question: SourceRequest,
  health: SourceHealth,
): Promise<{ readonly answer: SourceResponse; readonly fields: FieldList }> {
  const { plan, request, targets: ways, body } = question;
  const { method, signal } = request;
  const askBy: SendTo = (way, begun) => question.send(way, request, begun);
  const [only] = ways;
  const { way, answer }: TargetAnswer =
    plan.sources.length === 1
      ? { way: only, answer: await askBy(only) }
      : await sendWithFailover(ways, { method, body, signal }, { ask: askBy, health });
  requireUsable(answer);
  return { answer, fields: question.clientFields(answer.fields, way) };
}

/**
 * Refuses an answer that nobody could make anything of: content that is compressed in its framing,
 * which nobody has asked for (RFC 9112 §6.1, §7.2) and without the field nobody could tell; a
 * status that is none (RFC 9110 §15), and cannot be sent over HTTP/2.
 */
function requireUsable(answer: SourceResponse): void {
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
export function requireTargets(
  plan: FetchPlan,
  asked: { readonly path: string; readonly query: string },
): readonly [SourceTarget, ...SourceTarget[]] {
  const [first, ...others] = sourceTargets(plan, asked);
  if (first === undefined) throw new Failure('not_found', 'There is no page here.');
  return [first, ...others];
}

/**
 * The content of a request on its way to a source, at the source's speed. Fails with `too_large`
 * past `bytesMax`, or with what the content itself failed with. Destroying it leaves the request's
 * own stream paused and whole, since its connection still has to carry the answer.
 */
export function limitBody(body: Readable, bytesMax: number): Readable {
  let bytes = 0;
  let isRead = false;
  const metered = new Readable({
    read() {
      // To listen is to read: what a source is never sent stays with the request.
      if (!isRead) body.on('data', take);
      isRead = true;
      body.resume();
    },
    destroy(error, done) {
      // What it has failed with may still have to be told: to nobody, it would end the process.
      if (body.destroyed) body.on('error', () => undefined);
      stopWatching();
      body.off('data', take).pause();
      done(error);
    },
  });
  const take = (chunk: Buffer): void => {
    bytes += chunk.length;
    notePassedBytes(chunk.length);
    if (bytes > bytesMax) metered.destroy(bodyTooLarge(bytesMax));
    else if (!metered.push(chunk)) body.pause();
  };
  const stopWatching = finished(body, { writable: false }, (error) => {
    if (error) metered.destroy(error);
    else metered.push(null);
  });
  // The sender stops listening when it has its answer.
  metered.on('error', () => undefined);
  return metered;
}

/** What a client is told whose request's content is more than a source is sent. */
export function bodyTooLarge(bytesMax: number): Failure {
  return new Failure('too_large', `At most ${bytesMax} bytes can be sent to this page.`, {
    limit: 'content_size',
  });
}
