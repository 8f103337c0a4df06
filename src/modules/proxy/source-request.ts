import { Readable, finished } from 'node:stream';
import { requireIntactBody } from '../../core/http/content/content.ts';
import { proxyHeader } from '../../core/http/reading/proxy-protocol.ts';
import { type FieldList, withoutFields } from '../../core/http/reply.ts';
import type { Release } from '../../core/fair/shared-limit.ts';
import type { ContentRequest } from '../../core/http/request.ts';
import { countPassedBytes } from '../../core/outbound/connection.ts';
import type { OutboundRequest } from '../../core/outbound/dialler.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { Failure } from '../../core/values/failure.ts';
import { type Balancer, stickyCookie } from './balancer.ts';
import { type SendTo, isConnectionFailure, isSourceFailure, sendWithFailover } from './failover.ts';
import {
  type FetchPlan,
  type PlannedSource,
  type SourceTarget,
  type TargetRequest,
  sourceTargets,
} from './fetch-plan.ts';
import type { ContentCopy, Mirror } from './mirror.ts';
import { requestFields, requestTrailers } from './request-fields.ts';
import { responseFields } from './response-fields.ts';
import type { SourceDiallers } from './source-diallers.ts';
import type { SourceHealth } from './source-health.ts';
import type { SourceNames } from './source-names.ts';
import type { ViaNames } from '../../core/outbound/own-names.ts';
import type { ServerPlaces } from '../../core/outbound/server-places.ts';
import type { CountedRequest, SourceStatistics } from './source-statistics.ts';

/**
 * The dependencies of requests: `via` has this server's names in Via fields, `bodyBytesMax` limits
 * the content of a request.
 */
export interface SourceRequestParts {
  readonly diallers: Pick<SourceDiallers, 'of'>;
  readonly health: SourceHealth;
  readonly balancer: Balancer;
  readonly names: SourceNames;
  readonly mirror: Mirror;
  readonly places: ServerPlaces;
  readonly statistics: SourceStatistics;
  readonly bodyBytesMax: number;
  readonly via: ViaNames;
}

/** The response of a source, with its fields as the client gets them. */
export interface FetchedResponse {
  readonly answer: SourceResponse;
  readonly fields: FieldList;
  /** Fields for this client only, which no cache stores. */
  readonly ownFields: FieldList | undefined;
}

/**
 * Sends a request to the source of a plan, or to several until one answers. Rejects as the dialler
 * does, with `not_found` if the path of the request would leave every source, and `too_large`.
 */
export async function sendToSource(
  parts: SourceRequestParts,
  plan: FetchPlan,
  request: ContentRequest,
  upgrade?: string,
): Promise<FetchedResponse> {
  const { diallers, health, balancer, names, mirror, statistics, via } = parts;
  const { method, signal, interim } = request;
  const bodyBytesMax = plan.ini?.bodyBytesMax ?? parts.bodyBytesMax;
  const dialler = diallers.of(plan);
  // A gap of time in front of the check of the content, which may break in it.
  const sources = plan.isResolved ? await names.serversOf(plan) : plan.sources;
  const body = bodyOf(request, bodyBytesMax);
  const targets = requireTargets(plan.isResolved ? { ...plan, sources } : plan, request);
  const sent = {
    method,
    fields: requestFields(plan, request, body !== undefined, via),
    signal,
    timeoutMs: plan.timeoutMs,
    ...(body !== undefined && contentExtras(plan, request)),
    ...(upgrade !== undefined && { upgrade }),
    ...preambleOf(plan, request.address),
  };
  const isCopied = plan.mirror !== undefined && upgrade === undefined;
  const copy = isCopied ? mirror.copy(plan, request, sent, body !== undefined) : undefined;
  const clientFields = visibleFields(plan, request);
  let resends = -1;
  const sendNow = (to: SourceTarget, release: Release, begun?: () => void) => {
    resends += 1;
    const counted = statistics.start(to.source.server);
    const answer = dialler.send({
      ...sent,
      ...placeOf(plan, to.source, sent.fields),
      target: to.target,
      resends,
      body: body && limitBody(body, bodyBytesMax, copy),
      // A 1xx has no content (RFC 9110 §8.6).
      interim:
        interim &&
        ((status, fields, version) => {
          interim(status, withoutFields(clientFields({ fields, version }, to), 'content-length'));
        }),
      ...(begun !== undefined && { begun }),
    });
    return countAnswer(answer, { counted, release }, request);
  };
  // Websockets and other protocols have a limit of their own, which counts them to their end.
  const sendTo: SendTo =
    upgrade === undefined
      ? inPlaces(parts.places, { plan, request, body }, sendNow)
      : (to, begun) => sendNow(to, nothing, begun);
  const [only] = targets;
  if (sources.length === 1) {
    const answer = await sendTo(only);
    return { answer, fields: clientFields(answer, only), ownFields: undefined };
  }
  const ordered = balancer.order(plan, targets, request).slice(0, plan.retries + 1);
  const tried = { method, body, signal };
  const { target, answer } = await sendWithFailover(ordered, tried, {
    ...{ sendTo, health },
    checkPath: plan.health?.path,
  });
  const cookie = stickyCookie(plan, target, request);
  return {
    answer,
    fields: clientFields(answer, target),
    ownFields: cookie === undefined ? undefined : ['Set-Cookie', cookie],
  };
}

/** Makes the fields that the client gets of an answer from a source. */
function visibleFields(plan: FetchPlan, { origin, path }: ContentRequest) {
  return (
    answer: Pick<SourceResponse, 'fields' | 'version'>,
    { source, target }: SourceTarget,
  ): FieldList => responseFields(answer, { plan, source, target, origin, path });
}

/**
 * Where to connect to for a source. Its certificate has the name of the source, whatever Host the
 * client has sent and whichever address is used.
 */
function placeOf(
  { host }: FetchPlan,
  { origin, server }: PlannedSource,
  fields: readonly string[],
): Pick<OutboundRequest, 'origin' | 'serverName' | 'fields'> {
  const isPlain = host !== 'client' || origin.startsWith('http:');
  if (server === origin && isPlain) return { origin, serverName: undefined, fields };
  const { protocol, hostname, host: authority } = new URL(origin);
  return {
    origin: server,
    serverName: protocol === 'https:' ? hostname : undefined,
    fields: host === 'source' ? [...fields, 'host', authority] : fields,
  };
}

const nothing: Release = () => undefined;

/** Sends a request in a place at its server, for which it may have to wait. */
function inPlaces(
  places: ServerPlaces,
  {
    plan,
    request,
    body,
  }: {
    readonly plan: FetchPlan;
    readonly request: ContentRequest;
    readonly body: Readable | undefined;
  },
  send: (to: SourceTarget, release: Release, begun?: () => void) => Promise<SourceResponse>,
): SendTo {
  return (to, begun) => {
    const place = places.of(to.source.server, plan, request);
    if (typeof place === 'function') return send(to, place, begun);
    // Content may break during the wait: without a listener, that would end the process.
    body?.on('error', nothing);
    return place.then((release) => send(to, release, begun));
  };
}

/** Counts the outcome of a request, and gives its place back; returns the answer unchanged. */
async function countAnswer(
  coming: Promise<SourceResponse>,
  { counted, release }: { readonly counted: CountedRequest; readonly release: Release },
  { signal, sourceAnswered }: ContentRequest,
): Promise<SourceResponse> {
  const ended = (): void => {
    counted.ended();
    release();
  };
  try {
    const answer = await coming;
    const ms = counted.answered(answer.status);
    sourceAnswered?.(ms);
    return trackEnd(answer, {
      cut: (failure) => {
        // Content that fails ends the answer, whose signal aborts then as well.
        if (isConnectionFailure(failure) && !signal.aborted) counted.failed(failure.message);
      },
      ended,
    });
  } catch (thrown) {
    if (isSourceFailure(thrown) && !signal.aborted) counted.failed(thrown.message);
    ended();
    throw thrown;
  }
}

/**
 * An answer that calls `ended` once, when its content has ended or is not wanted, and `cut` before
 * that if its content fails.
 */
function trackEnd(
  answer: SourceResponse,
  { cut, ended }: { readonly cut: (failure: Error) => void; readonly ended: () => void },
): SourceResponse {
  if (answer.connection !== undefined) {
    answer.connection.once('close', ended);
    return answer;
  }
  return {
    ...answer,
    content() {
      const content = answer.content();
      if (content instanceof Readable) content.once('error', cut).once('close', ended);
      else ended();
      return content;
    },
    discard() {
      answer.discard();
      ended();
    },
  };
}

/** The content of a request of any method: some servers search by that of a GET. */
function bodyOf({ fields, body }: ContentRequest, bytesMax: number): Readable | undefined {
  if (body === undefined) return undefined;
  if (Number(fields['content-length'] ?? 0) > bytesMax) throw bodyTooLarge(bytesMax);
  // It broke before it was read: the source would wait for the rest.
  requireIntactBody(body);
  if (body.destroyed && !body.readableEnded) {
    // An `error` event may still follow; without a listener it would end the process.
    body.on('error', () => undefined);
    throw new Failure('invalid', 'The content of the request is not complete.');
  }
  return body;
}

/** The header of the PROXY protocol in front of a request, if its source gets one. */
export function preambleOf(
  { ini }: Pick<FetchPlan, 'ini'>,
  clientAddress: string,
): Pick<OutboundRequest, 'preamble'> {
  const version = ini?.proxyProtocol;
  return version === undefined ? {} : { preamble: proxyHeader(version, clientAddress) };
}

/** What belongs to the content of a request: its trailer fields, and the decision about it. */
function contentExtras(
  plan: FetchPlan,
  { fields, trailers }: ContentRequest,
): Pick<OutboundRequest, 'trailers' | 'expectsContinue'> {
  // HTTP/1.1 needs another client for them, and a request says there that they follow.
  const hasTrailers = plan.isHttp2 || fields.trailer !== undefined;
  return {
    ...(hasTrailers &&
      trailers !== undefined && { trailers: () => requestTrailers(plan, trailers()) }),
    ...(fields.expect !== undefined && { expectsContinue: true }),
  };
}

/** The targets of a request; throws `not_found` if there are none. */
export function requireTargets(
  plan: Parameters<typeof sourceTargets>[0],
  asked: TargetRequest,
): readonly [SourceTarget, ...SourceTarget[]] {
  const [first, ...others] = sourceTargets(plan, asked);
  if (first === undefined) throw new Failure('not_found', 'There is no page here.');
  return [first, ...others];
}

/**
 * Passes on the content of a request as fast as the source reads. Fails with `too_large` beyond
 * `bytesMax`, or as the content fails. Destroying it leaves the request's own stream paused and
 * undestroyed, since the reply still goes out over its connection.
 */
export function limitBody(body: Readable, bytesMax: number, copy?: ContentCopy): Readable {
  let bytes = 0;
  let isRead = false;
  const metered = new Readable({
    read() {
      // A `data` listener starts the flow: content for a source that never reads must stay put.
      if (!isRead) body.on('data', take);
      isRead = true;
      body.resume();
    },
    destroy(error, done) {
      // An `error` event may still follow; without a listener it would end the process.
      if (body.destroyed) body.on('error', () => undefined);
      stopWatching();
      body.off('data', take).pause();
      done(error);
    },
  });
  const take = (chunk: Buffer): void => {
    bytes += chunk.length;
    countPassedBytes(chunk.length);
    copy?.add(chunk);
    if (bytes > bytesMax) metered.destroy(bodyTooLarge(bytesMax));
    else if (!metered.push(chunk)) body.pause();
  };
  const stopWatching = finished(body, { writable: false }, (error) => {
    if (error) metered.destroy(error);
    else {
      metered.push(null);
      copy?.end();
    }
  });
  // The sender removes its listener once it has the answer.
  metered.on('error', () => undefined);
  return metered;
}

/** The failure for a request whose content exceeds the limit. */
function bodyTooLarge(bytesMax: number): Failure {
  return new Failure(
    'too_large',
    `The content is too long: this page accepts up to ${bytesMax} bytes.`,
    {
      limit: 'content_size',
    },
  );
}
