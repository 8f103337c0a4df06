import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Cleaning } from '../../folder.ts';
import type { TestSite } from '../../harness.ts';

/** The result of a tool, parsed: the JSON behind the notice, or the failure. */
export interface ToolAnswer {
  readonly isError: boolean;
  readonly text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- each test knows the fields that it reads
  readonly data: any;
  readonly error?: { readonly code: string; readonly message: string };
}

/** A connected client of the official SDK. */
export interface ToolClient {
  readonly client: Client;
  readonly tool: (name: string, args?: Record<string, unknown>) => Promise<ToolAnswer>;
}

/** The revisions of the protocol: with a handshake and sessions, and without. */
export const revisions = ['2025-11-25', '2026-07-28'] as const;

/** Connects the client of the SDK over HTTP, with a key and one revision of the protocol. */
export async function connectTool(
  t: Cleaning,
  site: Pick<TestSite, 'url'>,
  {
    apikey,
    revision = '2025-11-25',
    query = '',
  }: { readonly apikey: string; readonly revision?: string; readonly query?: string },
): Promise<ToolClient> {
  const client = new Client(
    { name: 'test-client', version: '1.0' },
    {
      versionNegotiation: {
        mode: revision === '2025-11-25' ? 'legacy' : { pin: revision },
      },
    },
  );
  const url = new URL(`${site.url}/svc1/mcp${query}`);
  const requestInit = { headers: { authorization: `Bearer ${apikey}` } };
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit }));
  t.after(() => client.close());
  return toolClient(client);
}

/** A client with parsed results of its tools. */
export function toolClient(client: Client): ToolClient {
  return {
    client,
    async tool(name, args = {}) {
      const { content, isError = false } = await client.callTool({ name, arguments: args });
      const [first] = content as readonly { readonly type: string; readonly text?: string }[];
      const text = first?.text ?? '';
      const json = JSON.parse(text.slice(text.indexOf('{'))) as Omit<ToolAnswer, 'text'>;
      return { ...json, isError, text };
    },
  };
}
