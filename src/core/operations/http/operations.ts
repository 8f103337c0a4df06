import { Readable } from 'node:stream';
import { previewToken } from '../../../modules/drafts/draft.ts';
import { isOfLivePage, withoutScripts } from '../../../modules/drafts/preview-answer.ts';
import type { Allocation, SharedLimit } from '../../fair/shared-limit.ts';
import { pageFields } from '../../http/content/page.ts';
import { takeBreadcrumbToken, takeParameter } from '../../http/query.ts';
import { type FieldList, type Reply, noBody } from '../../http/reply.ts';
import { isStrictPreferred } from '../../http/representation/negotiation.ts';
import { etagListed } from '../../http/representation/preconditions.ts';
import type { Fields, RequestTarget } from '../../http/request.ts';
import type { Visitor } from '../../http/visitor.ts';
import { readBody, requirePlain } from '../../pipeline/body.ts';
import type { Exchange } from '../../pipeline/exchange.ts';
import type { DraftSite, Serving } from '../../pipeline/serving.ts';
import { operationBodyBytesMax } from '../../server/limits.ts';
import { type Cancellation, Failure } from '../../values/failure.ts';
import { jsonBytes, jsonDigest } from '../../values/json/prepared-json.ts';
import { type Caller, canWrite } from '../../values/key.ts';
import { authorise } from '../execute.ts';
import { readBodyBytesMax } from '../limits.ts';
import type { Effect, Feed, Operation, OperationResult } from '../operation.ts';
import { turnsOf } from '../turns.ts';
import {
  type Envelope,
  envelopeFromBody,
  envelopeFromLines,
  envelopeFromQuery,
  envelopeInTurns,
  isLinesBody,
  isLongJson,
  requireNoQuery,
} from './envelope.ts';
import { countForPlace, createPageCount } from './operation-rates.ts';

/** A validated request for an operation over HTTP. */
interface OperationRequest {
  /** The name of the operation in the path: `svc1.<family>.<operation>`. */
  readonly name: string;
  readonly exchange: Exchange;
  readonly target: RequestTarget;
  readonly fields: Fields;
  readonly caller: Caller;
  readonly visitor: Visitor;
  readonly signal: () => AbortSignal;
  /** Limits the bytes of unanswered requests. */
  readonly requests: SharedLimit;
}

/** The operation at a breadcrumb's own address. */
export const linkName = 'svc1.userinterface.link.htm';

/** The operation that runs others, and is of no family. */
const batchName = 'svc1.batch';

/**
 * Returns the operation that a path below `/svc1` names: `/userinterface/read`, `/batch`, or the
 * dotted `/userinterface.link.htm`.
 */
export function operationName(path: string): string | undefined {
  if (path === '/userinterface.link.htm' || path === '/userinterface/link.htm') return linkName;
  if (path === '/batch') return batchName;
  const match = /^\/([a-z]+)\/([a-z_]+)$/.exec(path);
  return match === null ? undefined : `svc1.${match[1] ?? ''}.${match[2] ?? ''}`;
}

/** The path of an operation over HTTP; that of websockets for a text that names none. */
export function operationPath(name: string, base: string): string {
  if (name === batchName) return `${base}/svc1/batch`;
  const [, family, rest] = /^svc1\.([a-z]+)\.([a-z_]+|link\.htm)$/.exec(name) ?? [];
  return `${base}/svc1/${family === undefined || rest === undefined ? 'ws' : `${family}/${rest}`}`;
}

/**
 * Runs an operation over HTTP (docs/design/operations.md#one-definition): GET or POST if it only
 * reads, POST if it writes. Rejects with the failure of the operation; with `method_not_allowed`,
 * `invalid`, `too_large`, `rate_limited` or `unavailable` for the request itself; and with
 * `unauthenticated` for a key revoked meanwhile.
 */
export async function answerOperation(
  serving: OperationServing,
  request: OperationRequest,
): Promise<Reply> {
  const held = request.requests.allocation(request.caller);
  try {
    return await answerHeld(serving, request, held);
  } finally {
    held.free();
  }
}

/** The parts of a Serving that an operation uses. */
type OperationServing = Pick<
  Serving,
  'execute' | 'publicAnswers' | 'refresh' | 'requireUnrevoked' | 'callerEnds' | 'previews' | 'rates'
>;

async function answerHeld(
  serving: OperationServing,
  { name, exchange, target, fields, caller, visitor, signal }: OperationRequest,
  held: Allocation,
): Promise<Reply> {
  const { execute, publicAnswers } = serving;
  const { method } = exchange.head;
  const operation = execute.require(name);
  if (method === 'OPTIONS') return optionsReply(operation);
  if (operation.effect === 'streams' && operation.ndjson === undefined) throw websocketOnly(name);
  requireMethod(operation, method);
  // A caller without the scope gets an answer before its body is read.
  authorise(operation, caller, { mayDraft: true });
  const read = readEnvelope(
    operation,
    { exchange, fields, query: target.query },
    { held, caller, signal },
  );
  const sent = read instanceof Promise ? await whole(read, serving, caller) : read;
  const { v, vk, qk, prefer, draft, isText } = sent;
  const { origin } = target;
  const rated = { name, v, origin, fields, caller, visitor, countedFor: [target.path] };
  const counted = countForPlace(serving.rates, rated);
  if (counted !== undefined) await counted;
  const preview = previewOf(serving, fields, visitor);
  const outcome = await execute.run(name, v, {
    caller,
    vk,
    qk,
    draft,
    preview: preview?.draft.id,
    origin: target.origin,
    fields,
    visitor,
    transport: 'http',
    method,
    isText,
    isStrict: isStrictPreferred(prefer, fields.prefer),
    countPage: createPageCount(serving, rated),
    signal,
  });
  if (outcome.kind === 'stream') {
    if (operation.ndjson === undefined || typeof outcome.stream !== 'function') {
      throw websocketOnly(name);
    }
    const reading = { linesOf: operation.ndjson, caller, signal: exchange.signal };
    return linesReply(serving, outcome.stream, reading);
  }
  // A browser may open the answer as a page of this site.
  const isSandboxed = draft !== undefined || preview?.isTrusted === false;
  if (outcome.kind === 'reply' && isSandboxed) return withoutScripts(outcome.reply);
  if (outcome.kind === 'reply') return outcome.reply;
  const envelope = { r: name, ...outcomeMembers(outcome) };
  const bytes = (): Buffer => jsonBytes(envelope);
  const asked = { method, fields };
  if (outcome.forAll === undefined) return envelopeReply(operation, outcome, asked, bytes());
  const vary = outcome.forAll.variesByLanguage ? 'Accept-Language' : undefined;
  return publicAnswers.respond({ bytes, digest: jsonDigest(envelope) }, vary, asked);
}

/** The draft that the browser of a request previews. */
function previewOf(
  { previews }: Pick<Serving, 'previews'>,
  fields: Fields,
  { nowMs }: Visitor,
): DraftSite | undefined {
  const token = previewToken(fields.cookie);
  const found = token === undefined ? undefined : previews.find(token, nowMs);
  return found !== undefined && isOfLivePage(found, fields) ? undefined : found;
}

/** Reads the posted envelope, then checks the key again: it may be revoked by then. */
async function whole(
  read: Promise<Envelope>,
  { refresh, requireUnrevoked }: Pick<Serving, 'refresh' | 'requireUnrevoked'>,
  caller: Caller,
): Promise<Envelope> {
  const envelope = await read;
  refresh();
  requireUnrevoked(caller);
  return envelope;
}

/** The packets of a feed as lines of JSON, until the client leaves or may read no more. */
function linesReply(
  { requireUnrevoked, callerEnds }: Pick<Serving, 'requireUnrevoked' | 'callerEnds'>,
  feed: Feed,
  {
    linesOf,
    caller,
    signal,
  }: Pick<OperationRequest, 'caller'> & {
    readonly linesOf: NonNullable<Operation['ndjson']>;
    /** Aborts when the client closes its side: while nothing happens, no write tells that. */
    readonly signal: Cancellation;
  },
): Reply {
  const abort = new AbortController();
  const lines = async function* (): AsyncGenerator<string, void, undefined> {
    for await (const packet of feed(abort.signal)) {
      requireUnrevoked(caller);
      for (const line of linesOf(packet)) yield `${JSON.stringify(line)}\n`;
    }
  };
  const generator = lines();
  const iterator: AsyncIterableIterator<string> = {
    next: () => generator.next(),
    // A generator that waits for a packet returns only when that wait ends.
    return: () => {
      abort.abort();
      return generator.return();
    },
    [Symbol.asyncIterator]: () => iterator,
  };
  const stream = Readable.from(iterator, { objectMode: false });
  const unwatch = callerEnds.watch(caller, (failure) => {
    stream.destroy(failure);
  });
  const leave = (): void => {
    stream.destroy();
  };
  signal.addEventListener('abort', leave);
  if (signal.aborted) leave();
  stream.once('close', () => {
    unwatch();
    signal.removeEventListener('abort', leave);
  });
  return {
    status: 200,
    fields: ['Content-Type', 'application/x-ndjson', 'Cache-Control', 'no-store', ...pageFields],
    body: { kind: 'stream', stream, bytesLength: undefined },
    source: 'svc1',
  };
}

function websocketOnly(name: string): Failure {
  return new Failure('invalid', `${name} answers over the websocket only, at svc1/ws.`);
}

/** Returns the members of an answer's envelope besides its `r` and `id`. */
export function outcomeMembers(outcome: Extract<OperationResult, { kind: 'data' }>): object {
  const { data, vk, replayed } = outcome;
  return { data, ...(vk !== undefined && { vk }), ...(replayed === true && { replayed }) };
}

const methods: Readonly<Record<Effect, readonly string[]>> = {
  reads: ['GET', 'HEAD', 'POST', 'OPTIONS'],
  writes: ['POST', 'OPTIONS'],
  streams: ['OPTIONS'],
};

function methodsOf({ effect, ndjson }: Operation): readonly string[] {
  return ndjson === undefined ? methods[effect] : ['GET', 'POST', 'OPTIONS'];
}

function requireMethod(operation: Operation, method: string): void {
  const allow = methodsOf(operation);
  if (allow.includes(method)) return;
  const taken = allow.includes('GET') ? 'GET or POST' : 'POST';
  throw new Failure('method_not_allowed', `${operation.name} takes ${taken}.`, { allow });
}

/**
 * Returns the longest request for an operation, in bytes. An anonymous request to write may be no
 * longer than one that only reads.
 */
export function operationBytesMax(
  { name, effect, scope }: Pick<Operation, 'name' | 'effect' | 'scope'>,
  caller: Caller,
): number {
  // The operations of a batch have scopes.
  const hasScope = scope !== undefined || name === batchName;
  const isLarge = effect === 'writes' && hasScope && canWrite(caller);
  return isLarge ? operationBodyBytesMax : readBodyBytesMax;
}

/** The parts of a request that its envelope is read from. */
type Asked = Pick<OperationRequest, 'exchange' | 'fields'> & Pick<RequestTarget, 'query'>;

/** Who reads it. */
interface Reader extends Pick<OperationRequest, 'caller' | 'signal'> {
  readonly held: Allocation;
}

function readEnvelope(
  operation: Operation,
  asked: Asked,
  reader: Reader,
): Envelope | Promise<Envelope> {
  if (asked.exchange.head.method === 'POST') return readPosted(operation, asked, reader);
  const { query } = asked;
  const { name } = operation;
  return name === linkName ? linkEnvelope(operation, query) : envelopeFromQuery(operation, query);
}

async function readPosted(
  operation: Operation,
  { exchange: { body }, fields, query }: Asked,
  { held, caller, signal }: Reader,
): Promise<Envelope> {
  const { name } = operation;
  requirePlain(fields);
  const sent = await readBody({ body, fields }, operationBytesMax(operation, caller), held);
  const contentType = fields['content-type'];
  if (isLinesBody(operation, contentType)) return envelopeFromLines(operation, sent, query);
  const envelope = isLongJson(sent)
    ? await envelopeInTurns(operation, sent, turnsOf({ caller, signal }))
    : envelopeFromBody(operation, sent, contentType);
  if (name === linkName) return { ...envelope, v: withLinkQuery(envelope.v, query) };
  requireNoQuery(operation, query);
  return envelope;
}

/**
 * Adds the query of a breadcrumb's own address, `?k=<key>&…`: forward_query passes the rest of it
 * on, without a token.
 */
function withLinkQuery(v: unknown, query: string): unknown {
  const key = takeParameter(query, 'k');
  if (key === undefined) return v;
  const token = takeBreadcrumbToken(key.rest);
  return {
    ...(v as object),
    k: key.value,
    query: token?.rest ?? key.rest,
    ...(token && { t: token.value }),
  };
}

/** A query that is only a key, with characters that need no decoding. */
const plainKey = /^k=([A-Za-z0-9._~/-]+)$/;

const emptyLink = envelopeFromQuery({ name: linkName, input: {} }, '');

function linkEnvelope(operation: Operation, query: string): Envelope {
  const [, k] = plainKey.exec(query) ?? [];
  if (k !== undefined) return { ...emptyLink, v: { k, query: '' } };
  const envelope = envelopeFromQuery(operation, query);
  return { ...envelope, v: withLinkQuery(envelope.v, query) };
}

function envelopeReply(
  { effect }: Operation,
  outcome: Extract<OperationResult, { kind: 'data' }>,
  { method, fields }: { readonly method: string; readonly fields: Fields },
  bytes: Buffer,
): Reply {
  const { etag } = outcome;
  const validators: FieldList = etag === undefined ? [] : ['ETag', etag];
  const usual: FieldList = ['Cache-Control', effect === 'reads' ? 'private, no-cache' : 'no-store'];
  const { caching = usual } = outcome;
  // A POST has no If-None-Match that counts (RFC 9110 §15.4.5).
  const known = method === 'POST' ? undefined : fields['if-none-match'];
  if (known !== undefined && etagListed(known, etag, 'weak')) {
    return { status: 304, fields: [...validators, ...caching], body: noBody, source: 'svc1' };
  }
  return {
    status: 200,
    fields: [
      'Content-Type',
      'application/json',
      'Content-Length',
      String(bytes.length),
      ...validators,
      ...caching,
      ...(outcome.fields ?? []),
      ...pageFields,
    ],
    body: { kind: 'bytes', bytes },
    source: 'svc1',
  };
}

function optionsReply(operation: Operation): Reply {
  return {
    status: 204,
    fields: ['Allow', methodsOf(operation).join(', ')],
    body: noBody,
    source: 'svc1',
  };
}
