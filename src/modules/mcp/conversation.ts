import type { ToolUse } from '../../core/log/change.ts';
import { visibleText } from '../../core/log/tool-use.ts';

/** Limits of the endpoint for automated tools, each with its unit in its name. */

/** Characters of the name of a client with its version, and of the id of a conversation. */
const clientCharactersMax = 64;
const conversationCharactersMax = 64;

/** How long a client may use one session, in milliseconds: 30 days. It then starts another one. */
const sessionMsMax = 30 * 86_400_000;

/** The client of a tool call and its conversation, for the history of what it changes. */
export type Conversation = Omit<ToolUse, 'tool'>;

/** The header field by which a client without sessions names its conversation. */
export const conversationField = 'waymark-conversation';

/**
 * The name and version that a client gives itself, on one line of visible characters. Everything
 * in it comes from the client.
 */
export function clientName(info: { readonly name?: unknown; readonly version?: unknown }): string {
  const [name, version] = [info.name, info.version].map((part) =>
    typeof part === 'string' ? part.slice(0, clientCharactersMax) : '',
  );
  const text = version === '' ? (name ?? '') : `${name}/${version}`;
  return visibleText(text).slice(0, clientCharactersMax) || 'unnamed client';
}

/**
 * The id of a new session: the id of the conversation (a UUIDv7, so it tells its age) and the name
 * of the client. The server stores no session, so any process of any node can answer the next
 * request, and there is nothing that could run full. It proves nothing: each request has the key.
 */
export function newSessionId(client: string, newId: () => string): string {
  return `${newId()}.${Buffer.from(client).toString('base64url')}`;
}

const sessionId = /^([\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12})\.([\w-]{1,344})$/;

/** The conversation of a session; undefined if there is no such session, or it has ended. */
export function conversationOf(id: string, nowMs: number): Conversation | undefined {
  const [, conversation = '', client = ''] = sessionId.exec(id) ?? [];
  const startedMs = Number.parseInt(conversation.replaceAll('-', '').slice(0, 12), 16);
  // The clocks of two nodes may differ a little.
  if (!(Math.abs(nowMs - startedMs) <= sessionMsMax)) return undefined;
  return {
    client: clientName({ name: Buffer.from(client, 'base64url').toString() }),
    conversation,
  };
}

/** The id of a conversation that a client has made itself; undefined if it is none. */
export function givenConversation(id: unknown): string | undefined {
  const isId = typeof id === 'string' && id.length <= conversationCharactersMax;
  return isId && /^[\w.-]+$/.test(id) ? id : undefined;
}

/** The id of the trace that a request belongs to (W3C Trace Context §3.2), from its traceparent. */
export function traceOf(traceparent: unknown): string | undefined {
  if (typeof traceparent !== 'string' || traceparent.length > conversationCharactersMax) {
    return undefined;
  }
  return /^[\da-f]{2}-([\da-f]{32})-[\da-f]{16}-[\da-f]{2}$/.exec(traceparent)?.[1];
}
