/** Bytes of the small, the large and the huge file. */
export const smallBytes = 1024;
export const largeBytes = 100 * 1024;
/** Bytes of the fetched text that the server compresses. */
export const textBytes = 20 * 1024;
export const hugeBytes = 100 * 1024 * 1024;

/** The files of a visit besides its page: 1.5 KB, 3 KB, … */
export const visitFiles = 20;
export const visitFileBytes = 1_500;

/**
 * How requests come: over HTTP/1.1 without TLS or with it, over a new connection for each request
 * without TLS, or over HTTP/2 with TLS: on kept connections, or on a new one for each request, with
 * a full handshake or one that resumes a session. A visit is a new connection of HTTP/2 with the
 * page of the scenario and `visitFiles` files beside it, and counts as one request. So does a
 * websocket, a new connection over HTTP/1.1 or HTTP/2 with `socketMessages` back and forth.
 */
export type Transport =
  | 'http'
  | 'https'
  | 'connection'
  | 'h2'
  | 'h2-new'
  | 'h2-resumed'
  | 'visit'
  | SocketTransport;
/** Websockets over TLS: after an Upgrade, and by an extended CONNECT (RFC 8441). */
export type SocketTransport = 'socket' | 'h2-socket';

/** Those over HTTP/2, and so over TLS. */
export const overHttp2: ReadonlySet<Transport> = new Set(['h2', 'h2-new', 'h2-resumed', 'visit']);

/** Whether the requests of a scenario are websockets. */
export function isSocket(transport: Transport | undefined): transport is SocketTransport {
  return transport === 'socket' || transport === 'h2-socket';
}

/** The messages on a websocket, each sent when the one before was answered. */
export const socketMessages = 100;
/** The message: an operation that needs no key and does nothing. */
export const socketMessage = '{"id":"1","a":"svc1.session.unsubscribe","v":{"id":"2"}}';

/** A request that every server gets repeatedly, each time with the headers of another visitor. */
export interface Scenario {
  /** The name in `--only` and in the JSON. */
  readonly id: string;
  readonly title: string;
  readonly path: string;
  readonly status: number;
  /**
   * Bytes of content that every server must send; undefined if the servers have different pages,
   * such as error pages.
   */
  readonly contentBytes: number | undefined;
  /**
   * Whether the request carries the ETag that the server gave as If-None-Match (RFC 9110 §13.1.2).
   */
  readonly conditional: boolean;
  /** Further headers of the request, in addition to those that differ by visitor. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The protocol of the request: HTTP/1.1 without TLS if absent. */
  readonly transport?: Transport;
  /** Requests at a time on each connection of HTTP/2; 1 if absent. */
  readonly streams?: number;
  /** Connections; if undefined, those of Effort. */
  readonly connections?: number;
  /** Seconds of a round, for long responses; if undefined, those of Effort. */
  readonly seconds?: number;
  /** Whether memory is measured too. */
  readonly watchesMemory?: boolean;
}

/** The header fields of a browser, without Accept-Encoding. */
export const browserFields: Readonly<Record<string, string>> = {
  'User-Agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
  Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8',
  'Accept-Language': 'de-CH,de;q=0.9,en;q=0.8',
};

/** Every scenario, in the order of the table; the paths are the same on all servers. */
export const scenarios: readonly Scenario[] = [
  scenarioOf({
    id: 'file-1k',
    title: '1 KB file',
    path: '/file/1k.html',
    contentBytes: smallBytes,
  }),
  scenarioOf({
    id: 'page-1k',
    title: '1 KB stored page (the others: a file)',
    path: '/page/1k.html',
    contentBytes: smallBytes,
  }),
  scenarioOf({
    id: 'tls-file-1k',
    title: '1 KB file over TLS',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'https',
  }),
  scenarioOf({
    id: 'tls-page-1k',
    title: '1 KB stored page over TLS',
    path: '/page/1k.html',
    contentBytes: smallBytes,
    transport: 'https',
  }),
  scenarioOf({
    id: 'h2-file-1k',
    title: '1 KB file over HTTP/2 with TLS',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'h2',
  }),
  scenarioOf({
    id: 'h2-page-1k',
    title: '1 KB stored page over HTTP/2 with TLS',
    path: '/page/1k.html',
    contentBytes: smallBytes,
    transport: 'h2',
  }),
  scenarioOf({
    id: 'h2-file-1k-8',
    title: '1 KB file over HTTP/2 with TLS, 8 at a time',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'h2',
    streams: 8,
  }),
  scenarioOf({
    id: 'visit',
    title: 'a visit over HTTP/2: a new connection, a page and 20 files, 10 at a time',
    path: '/file/visit/page.html',
    contentBytes: smallBytes,
    transport: 'visit',
    streams: 10,
  }),
  scenarioOf({
    id: 'h2-new-file-1k',
    title: '1 KB file over HTTP/2, a connection with a full handshake for each request',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'h2-new',
  }),
  scenarioOf({
    id: 'h2-resumed-file-1k',
    title: '1 KB file over HTTP/2, a connection that resumes a session for each request',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'h2-resumed',
  }),
  scenarioOf({
    id: 'h2-not-modified',
    title: '304 for the 1 KB file over HTTP/2, 8 at a time',
    path: '/file/1k.html',
    status: 304,
    contentBytes: 0,
    conditional: true,
    transport: 'h2',
    streams: 8,
  }),
  scenarioOf({
    id: 'new-file-1k',
    title: '1 KB file, a connection for each request',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'connection',
  }),
  scenarioOf({ id: 'not-found', title: '404', path: '/file/none.html', status: 404 }),
  scenarioOf({
    id: 'fetch-1k',
    title: '1 KB fetched, not cacheable',
    path: '/fetched/1k.html',
    contentBytes: smallBytes,
  }),
  scenarioOf({
    id: 'packed-20k',
    title: '20 KB fetched, compressed by gzip',
    path: '/packed/20k.html',
    headers: { 'Accept-Encoding': 'gzip' },
  }),
  scenarioOf({
    id: 'hit-1k',
    title: '1 KB fetched, from the cache',
    path: '/kept/1k.html',
    contentBytes: smallBytes,
  }),
  scenarioOf({
    id: 'not-modified',
    title: '304 for the 1 KB file',
    path: '/file/1k.html',
    status: 304,
    contentBytes: 0,
    conditional: true,
  }),
  scenarioOf({
    id: 'file-100k',
    title: '100 KB file',
    path: '/file/100k.html',
    contentBytes: largeBytes,
  }),
  scenarioOf({
    id: 'page-100k',
    title: '100 KB stored page (the others: a file)',
    path: '/page/100k.html',
    contentBytes: largeBytes,
  }),
  scenarioOf({
    id: 'file-100m',
    title: '100 MB file, 4 connections',
    path: '/file/100m.html',
    contentBytes: hugeBytes,
    ...{ connections: 4, seconds: 4, watchesMemory: true },
  }),
  scenarioOf({
    id: 'tls-file-100m',
    title: '100 MB file over TLS, 4 connections',
    path: '/file/100m.html',
    contentBytes: hugeBytes,
    transport: 'https',
    ...{ connections: 4, seconds: 4, watchesMemory: true },
  }),
  scenarioOf({
    id: 'h2-file-100m',
    title: '100 MB file over HTTP/2, 4 connections',
    path: '/file/100m.html',
    contentBytes: hugeBytes,
    transport: 'h2',
    ...{ connections: 4, seconds: 4, watchesMemory: true },
  }),
  scenarioOf({
    id: 'socket',
    title: 'a websocket over TLS: a new connection, 100 messages back and forth',
    path: '/svc1/ws',
    transport: 'socket',
    connections: 8,
  }),
  scenarioOf({
    id: 'h2-socket',
    title: 'a websocket over HTTP/2: a new connection, 100 messages back and forth',
    path: '/svc1/ws',
    transport: 'h2-socket',
    connections: 8,
  }),
];

/**
 * A stored page that Waymark matches and makes for each request, because it does not know the
 * field.
 */
export const pageMadeAnew: Scenario = scenarioOf({
  id: 'page-anew',
  title: '1 KB stored page, made anew',
  path: '/page/1k.html',
  contentBytes: smallBytes,
  headers: { 'X-Anew': '1' },
});

/** Whether the requests of a scenario come over TLS. */
export function isEncrypted({ transport }: Pick<Scenario, 'transport'>): boolean {
  return transport === 'https' || isSocket(transport) || overHttp2.has(transport ?? 'http');
}

/** A scenario of another benchmark, at one path. */
export function scenarioAt(
  path: string,
  more: Pick<Scenario, 'title'> & Partial<Omit<Scenario, 'path'>>,
): Scenario {
  return scenarioOf({ id: more.title, ...more, path });
}

function scenarioOf({
  status = 200,
  contentBytes,
  conditional = false,
  ...rest
}: Pick<Scenario, 'id' | 'title' | 'path'> & Partial<Scenario>): Scenario {
  return { ...rest, status, contentBytes, conditional };
}
