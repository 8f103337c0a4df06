import { Readable } from 'node:stream';
import type { CustomFetch, CustomFetchOptions } from 'openid-client';
import { isEmptyStatus } from '../../core/http/reply.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { KIB } from '../../core/values/units.ts';
import { providerTimeoutMs } from './limits.ts';

const providerAnswerBytesMax = 1024 * KIB;

/**
 * Makes the `fetch` of openid-client: requests go through the dialler, so they have its limits, and
 * neither follow redirects nor last long. Rejects as the dialler does, and for a long answer.
 */
export function providerFetch(dialler: () => Dialler): CustomFetch {
  return async (address, options) => {
    const url = new URL(address);
    const body = bodyOf(options);
    const fields = Object.entries(options.headers).flat();
    const answer = await dialler().send({
      origin: url.origin,
      target: url.pathname + url.search,
      method: options.method,
      fields: body === undefined ? fields : [...fields, 'content-length', String(body.length)],
      body: body === undefined ? undefined : Readable.from([body]),
      signal: options.signal ?? AbortSignal.timeout(providerTimeoutMs),
      timeoutMs: providerTimeoutMs,
    });
    const content = await contentOf(answer, url);
    const headers = new Headers();
    for (let at = 0; at < answer.fields.length; at += 2) {
      headers.append(answer.fields[at] ?? '', answer.fields[at + 1] ?? '');
    }
    const { status } = answer;
    return new Response(isEmptyStatus(status) ? null : new Uint8Array(content), {
      status,
      headers,
    });
  };
}

/** The content of a request: openid-client sends forms and JSON. */
function bodyOf({ body }: CustomFetchOptions): Buffer | undefined {
  if (body === undefined || body === null) return undefined;
  if (typeof body === 'string' || body instanceof URLSearchParams) {
    return Buffer.from(body.toString());
  }
  if (body instanceof Uint8Array) return Buffer.from(body);
  throw new TypeError('openid-client sends content of another kind');
}

async function contentOf(answer: SourceResponse, { host, pathname }: URL): Promise<Buffer> {
  const content = answer.content();
  const chunks: Buffer[] = [];
  let bytes = 0;
  // Leaving the loop early destroys the stream, and so aborts the request.
  for await (const chunk of Readable.from(content) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > providerAnswerBytesMax) {
      throw new Error(`${host}${pathname} answers with more than ${providerAnswerBytesMax} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
