import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { axios } from 'acme-client';
import { outboundUrl } from '../../core/outbound/address.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { MIB } from '../../core/values/units.ts';

export const acmeAnswerBytesMax = MIB;

/** The function that sends the requests of acme-client: an adapter of axios. */
type Transport = Extract<typeof axios.defaults.adapter, (...given: never[]) => unknown>;
type TransportRequest = Parameters<Transport>[0];

/**
 * Sends acme-client's requests through a dialler, because the ACME server names the URLs of further
 * requests, and over https only (RFC 8555 §6.1). Calls `retryLater` with the Retry-After of each
 * 429 and 503. Rejects with an Error whose message names the host and the reason.
 */
export function acmeTransport(
  dialler: Pick<Dialler, 'send'>,
  retryLater: (retryAfter: string) => void,
): Transport {
  return async (request) => {
    const url = outboundUrl(request.url ?? '');
    if (url.protocol !== 'https:') {
      throw new Error(`The ACME server names ${url.origin}, which is not an https URL.`);
    }
    try {
      const answer = await send(dialler, url, request);
      const { status } = answer;
      const headers = fieldsByName(answer.fields);
      const retryAfter = headers['retry-after'];
      if ((status === 429 || status === 503) && retryAfter !== undefined) {
        retryLater(retryAfter);
      }
      return {
        status,
        headers,
        data: await answerText(answer.content()),
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

/** Reads the content of an answer, which is short; rejects if it is not. */
export async function answerText(content: Buffer | Readable): Promise<string> {
  if (Buffer.isBuffer(content)) return content.toString();
  let bytes = 0;
  const limited = content.map((chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > acmeAnswerBytesMax) throw new Error('the response is too large');
    return chunk;
  });
  return (await buffer(limited)).toString();
}

/** The reason of a failed connection. It names addresses, which the operator may see. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error;
  if (cause instanceof AggregateError) {
    return cause.errors.map((one) => (one as Error).message).join('; ');
  }
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
}
