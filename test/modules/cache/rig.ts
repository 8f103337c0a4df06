import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { TestContext } from 'node:test';
import { formatHttpDate } from '../../../src/core/http/date.ts';
import { replyField, type Reply } from '../../../src/core/http/reply.ts';
import type { JsonObject } from '../../../src/core/values/json/json.ts';
import { cachedFetch } from '../../../src/modules/cache/cached-fetch.ts';
import type { CacheStore } from '../../../src/modules/cache/cache-store.ts';
import { openCacheStore, prepareCacheStore } from '../../../src/modules/cache/open-cache-store.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import type { FetchRule } from '../../../src/modules/proxy/fetch-plan.ts';
import { temporaryFolder } from '../../folder.ts';
import { httpSource } from '../../core/outbound/sources.ts';
import { fetchRule, replyText, testFetch, visit } from '../proxy/fetch-rig.ts';

/** A request of a visitor: by default a GET of `/shop/` for the rule of the rig. */
export interface Asking {
  readonly path?: string;
  readonly query?: string;
  readonly method?: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  readonly body?: Readable;
  readonly rule?: FetchRule;
}

/** A response as a visitor sees it. */
export interface Seen {
  readonly status: number;
  readonly text: string;
  /** `hit`, or why the request was forwarded. */
  readonly cache: string;
  field(name: string): string | undefined;
}

/** Answers a request at the source; `count` is the number of requests so far. */
export type Handler = (request: IncomingMessage, response: ServerResponse, count: number) => void;

/** A cache in front of a source on a real socket, with a clock that the test sets. */
export interface Rig {
  readonly rule: FetchRule;
  /** The requests that the source received. */
  readonly requests: readonly IncomingMessage[];
  readonly reply: (asking?: Asking) => Promise<Reply>;
  readonly ask: (asking?: Asking) => Promise<Seen>;
  /** Advances the time by some seconds. */
  readonly pass: (seconds: number) => void;
  /** Sets the clock forward or back by some seconds, after all changes are on disk. */
  readonly setClock: (seconds: number) => Promise<void>;
  /** The time of the rig plus some seconds, as an HTTP-date. */
  readonly date: (seconds?: number) => string;
  /** Stops the source. */
  stopSource(): Promise<void>;
}

/** Starts a source with a handler, and a cache in front of it. */
export async function startRig(
  t: TestContext,
  handler: Handler,
  {
    enginedata = {},
    bytesMax = 100_000_000,
    answersOf = (answers) => answers,
    identityFields = [],
  }: {
    readonly enginedata?: JsonObject;
    readonly bytesMax?: number;
    /** Replaces parts of the cache's store. */
    readonly answersOf?: (answers: CacheStore) => CacheStore;
    readonly identityFields?: readonly string[];
  } = {},
): Promise<Rig> {
  const requests: IncomingMessage[] = [];
  let [nowMs, uptimeMs] = [Date.now(), 3_600_000];
  const date = (seconds = 0): string => formatHttpDate(nowMs + seconds * 1000);
  const { origin, server } = await httpSource(t, (request, response) => {
    request.resume();
    requests.push(request);
    response.setHeader('Date', date());
    handler(request, response, requests.length);
  });
  const answers = await startAnswers(t, { bytesMax, now: () => nowMs, uptimeMs: () => uptimeMs });
  let lastId = 0;
  const fetch = cachedFetch({
    fetch: testFetch(t),
    answers: answersOf(answers),
    now: () => nowMs,
    newId: () => `answer-${(lastId += 1)}`,
    via: { ofLog: 'waymark', ofNode: 'waymark' },
    identityFields,
  });
  const rule = fetchRule({ source: `${origin}/*`, ...enginedata });
  const reply = ({ rule: other = rule, ...asking }: Asking = {}): Promise<Reply> =>
    fetch.respond(other, visit(asking));
  return {
    rule,
    requests,
    reply,
    ask: async (asking) => seen(await reply(asking)),
    pass: (seconds) => {
      nowMs += seconds * 1000;
      uptimeMs += seconds * 1000;
    },
    setClock: async (seconds) => {
      await answers.settled();
      nowMs += seconds * 1000;
    },
    date,
    async stopSource() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Opens a cache store in a folder of its own for the time of a test. */
async function startAnswers(
  t: TestContext,
  given: {
    readonly bytesMax: number;
    readonly now: () => number;
    readonly uptimeMs: () => number;
  },
): Promise<CacheStore> {
  const data = await temporaryFolder(t);
  await prepareCacheStore(data);
  const config = { server: { data, workers: 1 }, fetch: { cacheBytesMax: given.bytesMax } };
  const answers = openCacheStore(config, { ...given, log: silentLog });
  t.after(() => answers.close());
  return answers;
}

/** Reads a response to its end. */
export async function seen(reply: Reply): Promise<Seen> {
  const said = replyField(reply, 'cache-status') ?? '';
  return {
    status: reply.status,
    text: await replyText(reply),
    cache: /^waymark; (?:fwd=)?([a-z-]+)/.exec(said)?.[1] ?? said,
    field: (name) => replyField(reply, name),
  };
}

/** A source whose responses have the number of the request as their content. */
export function counting(fields: Readonly<Record<string, string>>): Handler {
  return (request, response, count) => {
    response.writeHead(200, fields).end(request.method === 'HEAD' ? undefined : `answer ${count}`);
  };
}
