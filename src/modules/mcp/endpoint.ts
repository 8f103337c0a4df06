import type { ServicePath } from '../../core/operations/http/service-path.ts';
import { failureMember } from '../../core/pipeline/failures.ts';
import { isLoopback, namesOrigin } from '../../core/config/config.ts';
import type { Allocation, SharedLimit } from '../../core/fair/shared-limit.ts';
import { pageFields } from '../../core/http/content/page.ts';
import { type FieldList, type Reply, noBody } from '../../core/http/reply.ts';
import {
  isLongJson,
  parseInput,
  parseInputInTurns,
  requireParsable,
} from '../../core/operations/http/envelope.ts';
import { readBodyBytesMax } from '../../core/operations/limits.ts';
import { turnsOf } from '../../core/operations/turns.ts';
import { readBody, requirePlain } from '../../core/pipeline/body.ts';
import type { Exchange } from '../../core/pipeline/exchange.ts';
import type { IncomingRequest } from '../../core/pipeline/incoming-request.ts';
import type { Serving } from '../../core/pipeline/serving.ts';
import { operationBodyBytesMax } from '../../core/server/limits.ts';
import { newId, now } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { outlineJson } from '../../core/values/json/json-outline.ts';
import { isJsonObject } from '../../core/values/json/json.ts';
import { type Caller, canWrite } from '../../core/values/key.ts';
import type { DocsFiles } from '../docs/docs-files.ts';
import { asAuthInfo, mcpHandler } from './protocol.ts';
import {
  type Conversation,
  type Reach,
  type ToolOperations,
  callerWithin,
  clientName,
  conversationField,
  conversationOf,
  givenConversation,
  newSessionId,
  reaches,
} from './tools.ts';

/** The endpoint of automated tools; `toolsNow` has the tools of the configuration. */
export const mcpPath =
  (toolsNow: () => ToolOperations, docs: DocsFiles): ServicePath =>
  (serving, { path, identify, hold, fail, ...request }) => {
    if (path !== '/mcp') return undefined;
    const caller = identify();
    const failed = (operation: string, thrown: unknown): object => {
      const { failure, id } = fail(thrown);
      return failureMember(serving, operation, failure, id);
    };
    const known = { tools: toolsNow(), docs };
    return answerMcp(serving, { ...request, ...known, caller, failed }).then((reply) => {
      hold(reply, caller);
      return reply;
    });
  };

/** A request for the endpoint, whose caller is known. */
interface EndpointRequest {
  readonly exchange: Exchange;
  readonly incoming: IncomingRequest;
  readonly caller: Caller;
  readonly signal: () => AbortSignal;
  /** Limits the bytes of unanswered requests. */
  readonly requests: SharedLimit;
  /** The member `error` of an answer, after the failure is logged. */
  readonly failed: (operation: string, thrown: unknown) => object;
  readonly tools: ToolOperations;
  readonly docs: DocsFiles;
}

/**
 * Answers `{base}/svc1/mcp`: the Model Context Protocol over Streamable HTTP
 * (docs/design/tools.md). Each request has its answer and nothing is stored between two, so there
 * is no stream of its own (GET) and no session to end (DELETE), which the protocol leaves to the
 * server. Rejects with `not_found` if it is off or the session has ended, `forbidden` for a page of
 * another site, `unauthenticated` without a key, `method_not_allowed`, and as readBody does.
 */
async function answerMcp(serving: Serving, request: EndpointRequest): Promise<Reply> {
  const { exchange, incoming, caller } = request;
  const { fields, target } = incoming;
  requireOn(serving);
  requireOwnPage(serving, incoming);
  requireKey(caller);
  if (exchange.head.method !== 'POST') {
    throw new Failure('method_not_allowed', 'Send the messages of MCP by POST.', {
      allow: ['POST'],
    });
  }
  const reached = callerWithin(caller, reachOf(target.query));
  const held = request.requests.allocation(caller);
  try {
    const sent = await readMessage(request, held, reached);
    serving.refresh();
    serving.requireUnrevoked(caller);
    const conversation = conversationFrom(fields['mcp-session-id'], fields[conversationField]);
    const response = await mcpHandler().fetch(webRequest(request), {
      parsedBody: sent,
      authInfo: asAuthInfo({
        ...{ serving, conversation, failed: request.failed },
        ...{ tools: request.tools, docs: request.docs },
        call: {
          ...{ caller: reached, origin: target.origin, fields },
          visitor: serving.visitors.visitorOf(incoming),
          ...{ transport: 'http', method: 'POST', signal: request.signal },
        },
      }),
    });
    return await replyOf(response, sessionFields(sent, response));
  } finally {
    held.free();
  }
}

function requireOn({ config }: Serving): void {
  if (config.mcp.enabled) return;
  throw new Failure('not_found', 'MCP is off here: [mcp] enabled = yes turns it on.');
}

/**
 * Throws `forbidden` for a page of another site. A page can give its own name to an address of
 * this machine (DNS rebinding), so the name has to be one of the configuration.
 */
function requireOwnPage(
  { config }: Serving,
  { fields: { origin }, target }: IncomingRequest,
): void {
  if (origin === undefined) return;
  if (URL.canParse(origin)) {
    const isHere = origin === target.origin && isLoopback(new URL(origin).hostname);
    if (isHere || namesOrigin(config, origin)) return;
  }
  throw new Failure('forbidden', 'Pages of this origin may not use MCP here.');
}

function requireKey({ keyId, sessionId }: Caller): void {
  if (keyId !== undefined && sessionId === undefined) return;
  const message = 'MCP needs an API key: send it as apikey or as bearer token.';
  throw new Failure('unauthenticated', message, { challenge: 'Bearer' });
}

/** What the query allows the tools to do. Throws `invalid` for another query. */
function reachOf(query: string): Reach {
  if (query === '') return 'key';
  const [, word] = /^scope=([a-z]+)$/.exec(query) ?? [];
  const reach = reaches.find((one) => one === word);
  if (reach !== undefined) return reach;
  throw new Failure('invalid', `The query may only be scope=${reaches.join(', scope=')}.`, {
    field: 'scope',
  });
}

/** Reads a message, which may be as long as the operations that the caller may call. */
async function readMessage(
  { exchange: { body }, incoming: { fields }, signal }: EndpointRequest,
  held: Allocation,
  caller: Caller,
): Promise<unknown> {
  requirePlain(fields);
  const effect = canWrite(caller) ? 'writes' : 'reads';
  const bytesMax = effect === 'writes' ? operationBodyBytesMax : readBodyBytesMax;
  const bytes = await readBody({ body, fields }, bytesMax, held);
  const outline = outlineJson(bytes, []);
  requireParsable(outline, effect);
  const sent = isLongJson(bytes)
    ? await parseInputInTurns(bytes, outline, turnsOf({ caller, signal }))
    : parseInput(bytes.toString(), outline);
  if (isJsonObject(sent)) return sent;
  throw new Failure('invalid', 'Send one message of JSON-RPC at a time.');
}

/** Throws `not_found` for a session that has ended: the client then starts a new one. */
function conversationFrom(
  session: string | undefined,
  given: string | undefined,
): Partial<Conversation> {
  const own = givenConversation(given);
  const named = own !== undefined && { conversation: own };
  if (session === undefined) return { ...named };
  const found = conversationOf(session, now());
  if (found !== undefined) return { ...found, ...named };
  throw new Failure('not_found', 'This session has ended. Start a new one by initialize.');
}

/** The id of a new session, for the answer to `initialize`. */
function sessionFields(sent: unknown, { ok }: Response): FieldList {
  if (!ok || !isJsonObject(sent) || sent.method !== 'initialize') return [];
  const { params } = sent;
  const info = isJsonObject(params) && isJsonObject(params.clientInfo) ? params.clientInfo : {};
  return ['Mcp-Session-Id', newSessionId(clientName(info), newId)];
}

/** The request for the handler, which only reads these fields: the content is parsed. */
function webRequest({ incoming, signal }: EndpointRequest): Request {
  const { fields, target } = incoming;
  const headers = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']) {
    const value = fields[name];
    if (value !== undefined) headers.set(name, value);
  }
  return new Request(`${target.origin}/`, { method: 'POST', headers, signal: signal() });
}

/** Fields that the server decides itself. */
const ownNames: ReadonlySet<string> = new Set(['connection', 'cache-control', 'content-length']);

/** The whole answer in memory, where it counts as unread until the client has it. */
async function replyOf(response: Response, further: FieldList): Promise<Reply> {
  const fields = [
    ...[...response.headers].filter(([name]) => !ownNames.has(name)).flat(),
    ...further,
    ...['Cache-Control', 'no-store, no-transform'],
    ...pageFields,
  ];
  const { status, body } = response;
  if (body === null) return { status, fields, body: noBody, source: 'svc1' };
  const bytes = Buffer.from(await response.arrayBuffer());
  const length = ['Content-Length', String(bytes.length)];
  return { status, fields: [...fields, ...length], body: { kind: 'bytes', bytes }, source: 'svc1' };
}
