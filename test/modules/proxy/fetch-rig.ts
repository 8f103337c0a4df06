import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { TestContext } from 'node:test';
import type { Body, Reply } from '../../../src/core/http/reply.ts';
import type { ContentRequest, Fields } from '../../../src/core/http/request.ts';
import { createLookup } from '../../../src/core/outbound/dns-lookup.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { Failure } from '../../../src/core/values/failure.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import type { FetchRule } from '../../../src/modules/proxy/fetch-plan.ts';
import { type Fetcher, createFetcher } from '../../../src/modules/proxy/fetcher.ts';
import { HealthChecks } from '../../../src/modules/proxy/health-checks.ts';
import { SourceHealth } from '../../../src/modules/proxy/source-health.ts';
import { SourceNames, createServiceLookup } from '../../../src/modules/proxy/source-names.ts';
import { ServerPlaces } from '../../../src/core/outbound/server-places.ts';
import { SourceStatistics } from '../../../src/modules/proxy/source-statistics.ts';
import { testDialler } from '../../core/outbound/sources.ts';
import { pathOf } from '../../request-path.ts';
import { someVisitor } from '../../visitor.ts';

/** A content.fetch rule, by default for `/shop/*`. */
export function fetchRule(
  enginedata: JsonObject,
  { id = 'r1', path = '/shop/*', ...others }: Partial<FetchRule> = {},
): FetchRule {
  return { id, path, enginedata, ...others };
}

/** A visitor's request, by default a GET of `http://visible.example/shop/` from 192.0.2.7. */
export function visit({
  path = '/shop/',
  ...options
}: Omit<Partial<ContentRequest>, 'fields' | 'path'> & {
  readonly path?: string;
  readonly fields?: Readonly<Record<string, string>>;
} = {}): ContentRequest {
  return {
    origin: 'http://visible.example',
    ...pathOf(path),
    query: '',
    method: 'GET',
    address: '192.0.2.7',
    visitor: someVisitor(),
    body: undefined,
    signal: new AbortController().signal,
    ...options,
    fields: options.fields ?? {},
  };
}

/** The source of fetched content for the time of a test. */
export function testFetch(
  t: TestContext,
  {
    bodyBytesMax = 1_000,
    timeoutMs = 20_000,
    monotonicMs = () => performance.now(),
    lookup = createLookup(),
    lookUpService = createServiceLookup(),
  } = {},
): Fetcher {
  const dialler = testDialler(t, { timeoutMs });
  const diallers = { of: () => dialler };
  const health = new SourceHealth({ monotonicMs, log: silentLog });
  const names = new SourceNames({ lookup, lookUpService });
  const checks = new HealthChecks({ diallers, names, health, monotonicMs });
  t.after(() => {
    checks.close();
  });
  return createFetcher({
    ...{ diallers, health, names, checks },
    statistics: new SourceStatistics({ now: Date.now }),
    places: new ServerPlaces(),
    bodyBytesMax,
    via: { ofLog: 'waymark', ofNode: 'waymark' },
  });
}

/** The content of a reply as text. */
export async function replyText({ body }: Reply): Promise<string> {
  switch (body.kind) {
    case 'none':
      return '';
    case 'bytes':
      return body.bytes.toString('latin1');
    case 'stream':
      return text(body.stream);
    case 'file':
      return fileText(body);
  }
}

async function fileText({ file, parts }: Body & { readonly kind: 'file' }): Promise<string> {
  let sent = '';
  try {
    for (const part of parts) {
      if (Buffer.isBuffer(part)) sent += part.toString('latin1');
      else
        for (let at = part.first; at <= part.last;) {
          const buffer = Buffer.alloc(Math.min(65_536, part.last + 1 - at));
          const bytesRead = await file.read(buffer, at);
          if (bytesRead === 0) throw new Error('the file is shorter');
          sent += buffer.toString('latin1', 0, bytesRead);
          at += bytesRead;
        }
    }
    return sent;
  } finally {
    await file.close();
  }
}

/** A small server that answers by rules, to test what a client gets. */
export async function front(
  t: TestContext,
  { fetch, rules }: { readonly fetch: Fetcher; readonly rules: () => readonly FetchRule[] },
): Promise<string> {
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '/';
    const gone = new AbortController();
    response.on('close', () => {
      gone.abort();
    });
    const rule = rules().find((one) => path.startsWith(one.path.replace('*', '')));
    if (rule === undefined) return void response.writeHead(404).end();
    const fields = request.headers as Fields & Record<string, string>;
    const body = request.method === 'GET' ? undefined : request;
    const method = request.method ?? 'GET';
    const asked = visit({ path, method, fields, body, signal: gone.signal });
    try {
      const reply = await fetch.respond(rule, asked);
      response.writeHead(reply.status, reply.fields as string[]);
      if (reply.body.kind === 'stream') await pipeline(reply.body.stream, response);
      else response.end(reply.body.kind === 'bytes' ? reply.body.bytes : undefined);
    } catch (error) {
      if (response.headersSent) response.destroy();
      else response.writeHead(502).end(error instanceof Failure ? error.code : String(error));
    }
  };
  const server = http.createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(async () => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
