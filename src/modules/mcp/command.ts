import { Readable } from 'node:stream';
import {
  type JSONRPCMessage,
  type RequestId,
  SdkHttpError,
  StreamableHTTPClientTransport,
  isJSONRPCErrorResponse,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
} from '@modelcontextprotocol/client';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { Option } from 'commander';
import { type DefineCommand, type Terminal, UsageError, writeLine } from '../../cli/command.ts';
import {
  type ApiTarget,
  type ApiTargetOptions,
  apiOptions,
  apiTargetOf,
} from '../../cli/remote/api-client.ts';
import { newId } from '../../core/values/clock.ts';
import { isJsonObject } from '../../core/values/json/json.ts';
import { type Reach, conversationField, reaches } from './tools.ts';

interface McpCommandOptions extends ApiTargetOptions {
  readonly scope: Reach;
}

/** `waymark mcp`: passes the messages of a tool on to a server, until the tool ends. */
export const defineMcp: DefineCommand = (command, terminal) => {
  command
    .description(
      'Let an automated tool use a server by the Model Context Protocol, over standard input ' +
        'and output. By default the tool may read and change drafts, whatever else the API key ' +
        'may do.',
    )
    .addOption(
      new Option('--scope <scope>', 'the most that the tool may do; key is all that the key may')
        .choices(reaches)
        .default('draft'),
    );
  for (const option of apiOptions()) command.addOption(option);
  command.action(async ({ scope, ...options }: McpCommandOptions) => {
    const api = await apiTargetOf(options, terminal);
    if (api.apikey === undefined || api.apikey === '') {
      throw new UsageError('there is no API key. Give --apikey, or set WAYMARK_APIKEY.');
    }
    await passMessages(api, scope, terminal);
  });
};

/** Passes messages on in both directions, until the input has ended and all are answered. */
async function passMessages(
  { url, apikey = '' }: ApiTarget,
  scope: Reach,
  { input, out, err }: Terminal,
): Promise<void> {
  const headers = { apikey, [conversationField]: newId() };
  const endpoint = new URL(`${url}/svc1/mcp?scope=${scope}`);
  const http = new StreamableHTTPClientTransport(endpoint, { requestInit: { headers } });
  const unanswered = new Set<RequestId>();
  const ended = Promise.withResolvers<undefined>();
  let hasInput = true;
  const endIfDone = (): void => {
    if (!hasInput && unanswered.size === 0) ended.resolve(undefined);
  };
  // The transport answers nothing after the end of its input.
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield* input();
    hasInput = false;
    endIfDone();
    await ended.promise;
  }
  const stdio = new StdioServerTransport(Readable.from(whole()), out);
  const answer = async (message: JSONRPCMessage): Promise<void> => {
    await stdio.send(message);
    if (!isJSONRPCResultResponse(message) && !isJSONRPCErrorResponse(message)) return;
    if (message.id !== undefined) unanswered.delete(message.id);
    endIfDone();
  };
  const failed = (error: unknown): void => {
    writeLine(err, `waymark mcp: ${reasonOf(error)}`);
  };
  stdio.onmessage = (message) => {
    if (isJSONRPCRequest(message)) unanswered.add(message.id);
    http.send(message).catch((error: unknown) => {
      if (!isJSONRPCRequest(message)) return;
      const { id } = message;
      const refusal = { code: serverError, message: reasonOf(error) };
      answer({ jsonrpc: '2.0', id, error: refusal }).catch(ended.reject);
    });
  };
  http.onmessage = (message) => {
    keepVersion(http, message);
    answer(message).catch(ended.reject);
  };
  stdio.onerror = failed;
  await http.start();
  await stdio.start();
  await ended.promise;
  await http.close();
}

/** The code of errors that a server defines itself (JSON-RPC 2.0 §5.1). */
const serverError = -32_000;

/** After `initialize`, each request names the revision of the protocol that both have agreed on. */
function keepVersion(http: StreamableHTTPClientTransport, message: JSONRPCMessage): void {
  if (!isJSONRPCResultResponse(message)) return;
  const { protocolVersion } = message.result;
  if (typeof protocolVersion === 'string') http.setProtocolVersion(protocolVersion);
}

/** Why a message was not answered: what the server says, or why there is no answer. */
function reasonOf(error: unknown): string {
  const text = error instanceof SdkHttpError ? error.data.text : undefined;
  if (typeof text === 'string') {
    const said = messageIn(text);
    if (said !== undefined) return said;
  }
  return error instanceof Error ? error.message : String(error);
}

/** The message of a failure in an answer of an operation; undefined for other text. */
function messageIn(text: string): string | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    return isJsonObject(error) && typeof error.message === 'string' ? error.message : undefined;
  } catch {
    return undefined;
  }
}
