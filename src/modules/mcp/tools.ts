import { type ToolUse, visibleText } from '../../core/log/change.ts';
import { authorise } from '../../core/operations/execute.ts';
import type { OperationDescription } from '../../core/operations/operation.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import { type Caller, type Scope, hasScope } from '../../core/values/key.ts';
import { envelopeMembers, familyOf, shownInput } from '../docs/envelope.ts';
import { exampleInput, published } from '../docs/schemas.ts';

/** Limits of the endpoint for automated tools, each with its unit in its name. */

/** Characters of the name of a client with its version, and of the id of a conversation. */
const clientCharactersMax = 64;
const conversationCharactersMax = 64;

/** How long a client may use one session, in milliseconds: 30 days. It then starts another one. */
const sessionMsMax = 30 * 86_400_000;

/** The header field by which a client without sessions names its conversation. */
export const conversationField = 'waymark-conversation';
const sessionId = /^([\da-f]{8}-[\da-f]{4}-7[\da-f]{3}-[\da-f]{4}-[\da-f]{12})\.([\w-]{1,344})$/;

/** A tool for automated clients: an operation, as tools/list describes it. */
interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonObject & { readonly type: 'object' };
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
}

/** The most that the tools of a client may do: `key` is what its key may. */
export const reaches = ['read', 'draft', 'key'] as const;

/** See reaches. */
export type Reach = (typeof reaches)[number];

/** Families for browsers, other nodes and people who manage keys and sessions. */
const otherFamilies: ReadonlySet<string> = new Set([
  ...['session', 'login', 'key', 'log', 'node', 'outbox'],
]);

/** The operations that are tools, by the names of the tools: `userinterface_edit`. */
export type ToolOperations = ReadonlyMap<string, OperationDescription>;

/** Makes tools of the operations that automated clients may use. */
export function toolsOf(operations: readonly OperationDescription[]): ToolOperations {
  return new Map(
    operations
      .filter((one) => one.effect !== 'streams' && one.query === undefined)
      .filter((one) => !otherFamilies.has(familyOf(one)))
      .map((one) => [one.name.split('.').slice(1).join('_'), one]),
  );
}

/** The tools that a caller may use. */
export function toolsFor(tools: ToolOperations, caller: Caller): readonly Tool[] {
  return [...tools].flatMap(([name, operation]) => {
    return isUsable(operation, caller) ? [describedTool(name, operation, caller)] : [];
  });
}

/** The name of the operation of a tool. Throws `not_found` if there is no such tool. */
export function operationOfTool(tools: ToolOperations, name: string): string {
  const found = tools.get(name);
  if (found !== undefined) return found.name;
  const shown = JSON.stringify(name.slice(0, 80));
  throw new Failure('not_found', `There is no tool ${shown}. tools/list has all.`);
}

/**
 * Throws `forbidden` for a tool that would change the live site without the scope `publish`,
 * whichever other scopes the caller has.
 */
export function requireReach(
  operation: OperationDescription,
  caller: Caller,
  draft: string | undefined,
): void {
  if (!changesLive(operation) || draft !== undefined || hasScope(caller, 'publish')) return;
  const advice =
    operation.inDrafts === true
      ? 'Name a draft in the member draft; draft_insert makes one.'
      : 'A draft cannot have this change.';
  throw new Failure(
    'forbidden',
    `${operation.name} changes the live site, for which a tool needs the scope publish. ${advice}`,
    { field: 'draft' },
  );
}

/** Whether an operation changes more than a draft. */
function changesLive({ effect, scope }: OperationDescription): boolean {
  return effect === 'writes' && scope !== 'draft';
}

function isUsable(operation: OperationDescription, caller: Caller): boolean {
  if (!mayCall(operation, caller)) return false;
  if (!changesLive(operation) || hasScope(caller, 'publish')) return true;
  // Who works in a draft has to read it.
  return operation.inDrafts === true && hasScope(caller, 'read');
}

/** Whether a caller may call an operation, at least in a draft. */
export function mayCall(operation: OperationDescription, caller: Caller): boolean {
  try {
    authorise(operation, caller, { mayDraft: true });
    return true;
  } catch {
    return false;
  }
}

function describedTool(name: string, operation: OperationDescription, caller: Caller): Tool {
  const { summary, effect, inDrafts } = operation;
  const needsDraft = changesLive(operation) && !hasScope(caller, 'publish');
  const v = inlined(shownInput(operation));
  const isRequired = ((v.required ?? []) as readonly Json[]).length > 0;
  const members = Object.entries(envelopeMembers(operation)).map(
    ([member, schema]) => [member, inlined(schema as JsonObject)] as const,
  );
  const v0 = exampleInput(operation);
  const example = needsDraft ? { draft: 'spring', v: v0 } : { v: v0 };
  return {
    name,
    title: operation.name,
    description: [
      summary,
      ...(has(v, 'confirm') ? ['Call it without confirm first: it then only reports.'] : []),
      ...(has(v, 'dry_run') ? ['Call it with dry_run first.'] : []),
      ...(needsDraft ? ['It changes a draft, which the member draft names.'] : []),
      ...(inDrafts === true && !needsDraft ? ['With draft it works in that draft.'] : []),
      `Example: ${JSON.stringify(example)}`,
    ].join(' '),
    inputSchema: {
      type: 'object',
      properties: { v, ...Object.fromEntries(members) },
      required: [...(isRequired ? ['v'] : []), ...(needsDraft ? ['draft'] : [])],
      additionalProperties: false,
      examples: [example],
    },
    annotations: {
      readOnlyHint: effect === 'reads',
      destructiveHint: changesLive(operation) && !needsDraft,
      idempotentHint: effect === 'reads' || operation.envelope?.vk !== undefined,
      openWorldHint: false,
    },
  };
}

/** Whether an input has a field. */
function has({ properties }: JsonObject, field: string): boolean {
  return properties !== undefined && Object.hasOwn(properties as JsonObject, field);
}

/** A schema in the keywords of JSON Schema 2020-12, with the parts of it in their places. */
function inlined(schema: JsonObject): JsonObject {
  const components = new Map<string, JsonObject>();
  const resolved = (value: Json): Json => {
    if (Array.isArray(value)) return (value as readonly Json[]).map(resolved);
    if (typeof value !== 'object' || value === null) return value;
    const { $ref } = value as JsonObject;
    const name = typeof $ref === 'string' ? $ref.split('/').at(-1) : undefined;
    if (name !== undefined) return resolved(components.get(name) ?? {});
    return Object.fromEntries(
      Object.entries(value as JsonObject).map(([key, one]) => [key, resolved(one)]),
    );
  };
  return resolved(published(schema, components)) as JsonObject;
}

/** A caller that may do no more than its key may, and no more than a reach allows. */
export function callerWithin(caller: Caller, reach: Reach): Caller {
  if (reach === 'key') return caller;
  const kept: readonly Scope[] = ['render', 'read', 'record.read', 'verify'];
  const allowed = reach === 'draft' ? [...kept, 'draft' as const] : kept;
  const ofTables = [...caller.scopes].filter((one) => one.startsWith('record.read:'));
  const scopes = new Set([...allowed.filter((one) => hasScope(caller, one)), ...ofTables]);
  return { ...caller, scopes };
}

/** The client of a tool call and its conversation, for the history of what it changes. */
export type Conversation = Omit<ToolUse, 'tool'>;

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
