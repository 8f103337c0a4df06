import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { axios } from 'acme-client';
import { acmeAnswerBytesMax } from './limits.ts';
import type { Dialler } from '../outbound/dialler.ts';
import type { SourceResponse } from '../outbound/exchange.ts';
import { outboundUrl } from '../outbound/url.ts';

/** What carries the requests of acme-client. */
type Transport = Extract<typeof axios.defaults.adapter, (...given: never[]) => unknown>;
type TransportRequest = Parameters<Transport>[0];

/**
 * Has acme-client's requests go through a dialler, over https alone (RFC 8555 §6.1): an ACME server
 * names the URLs that are asked next. `refused` hears of answers that tell us to come later, with
 * their Retry-After. Rejects with an Error whose message names host and reason.
 */
export function acmeTransport(
  dialler: Pick<Dialler, 'send'>,
  refused: (retryAfter: string) => void,
): Transport {
  return async (request) => {
    const url = outboundUrl(request.url ?? '');
    if (url.protocol !== 'https:') throw new Error(`${url.origin} is not asked: it is not https.`);
    try {
      const answer = await send(dialler, url, request);
      const { status } = answer;
      const headers = fieldsByName(answer.fields);
      const retryAfter = headers['retry-after'];
      if ((status === 429 || status === 503) && retryAfter !== undefined) refused(retryAfter);
      return {
        status,
        headers,
        data: await text(answer.content()),
        statusText: '',
        config: request,
      };
    } catch (error) {
      throw new Error(`${url.host}: ${reasonOf(error)}`, { cause: error });
    }
  };
}

function send(
  dialler: Pick<Dialler, 'send'>,
  url: URL,
  { method = 'get', data, headers }: TransportRequest,
): Promise<SourceResponse> {
  const body = data === undefined ? undefined : Buffer.from(String(data));
  const named = Object.entries(headers.toJSON()).flatMap(([name, value]) => [name, String(value)]);
  const framing = body === undefined ? [] : ['Content-Length', String(body.length)];
  return dialler.send({
    origin: url.origin,
    target: url.pathname + url.search,
    method: method.toUpperCase(),
    fields: [...named, ...framing],
    body: body && Readable.from([body]),
    // The thread ends with the order.
    signal: new AbortController().signal,
  });
}

function fieldsByName(fields: readonly string[]): Record<string, string> {
  const named: Record<string, string> = {};
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at]?.toLowerCase() ?? '';
    const value = fields[at + 1] ?? '';
    named[name] = name in named ? `${named[name] ?? ''}, ${value}` : value;
  }
  return named;
}

async function text(content: Buffer | Readable): Promise<string> {
  if (Buffer.isBuffer(content)) return content.toString();
  let bytes = 0;
  const limited = content.map((chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > acmeAnswerBytesMax) throw new Error('the answer is too large');
    return chunk;
  });
  return (await buffer(limited)).toString();
}

/** What was the matter with a connection: the operator may know, unlike who asks for a page. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  if (cause instanceof AggregateError) {
    return cause.errors.map((one) => (one as Error).message).join('; ');
  }
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
