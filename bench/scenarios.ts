/** Bytes of the small, the large and the huge piece of content. */
export const smallBytes = 1024;
export const largeBytes = 100 * 1024;
/** Bytes of the text that is compressed on its way. */
export const textBytes = 20 * 1024;
export const hugeBytes = 100 * 1024 * 1024;

/**
 * How requests come: over HTTP/1.1 in the clear or over TLS, each on a connection of its own in the
 * clear, or over HTTP/2 with TLS.
 */
export type Transport = 'http' | 'https' | 'connection' | 'h2';

/** A request that every server gets repeatedly, each time with the headers of another visitor. */
export interface Scenario {
  /** The name by which `--only` and the JSON know it. */
  readonly id: string;
  readonly title: string;
  readonly path: string;
  readonly status: number;
  /**
   * Bytes of content that every server has to answer with; undefined where each has a page of its
   * own.
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
  /** Connections that ask at a time; undefined where they are as many as of the others. */
  readonly connections?: number;
  /** Seconds of a round, where few answers take long. */
  readonly seconds?: number;
  /** Whether memory is looked at, too. */
  readonly watchesMemory?: boolean;
}

/** What a browser sends with every request, without the codings that it takes. */
export const browserFields: Readonly<Record<string, string>> = {
  'User-Agent':
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36',
  Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8',
  'Accept-Language': 'de-CH,de;q=0.9,en;q=0.8',
};

/** Every scenario, in the order of the table; the paths are the same on all servers. */
export const scenarios: readonly Scenario[] = [
  ask({ id: 'file-1k', title: '1 KB file', path: '/file/1k.html', contentBytes: smallBytes }),
  ask({
    id: 'page-1k',
    title: '1 KB stored page (the others: a file)',
    path: '/page/1k.html',
    contentBytes: smallBytes,
  }),
  ask({
    id: 'tls-file-1k',
    title: '1 KB file over TLS',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'https',
  }),
  ask({
    id: 'tls-page-1k',
    title: '1 KB stored page over TLS',
    path: '/page/1k.html',
    contentBytes: smallBytes,
    transport: 'https',
  }),
  ask({
    id: 'h2-file-1k',
    title: '1 KB file over HTTP/2 with TLS',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'h2',
  }),
  ask({
    id: 'h2-page-1k',
    title: '1 KB stored page over HTTP/2 with TLS',
    path: '/page/1k.html',
    contentBytes: smallBytes,
    transport: 'h2',
  }),
  ask({
    id: 'new-file-1k',
    title: '1 KB file, a connection for each request',
    path: '/file/1k.html',
    contentBytes: smallBytes,
    transport: 'connection',
  }),
  ask({ id: 'not-found', title: '404', path: '/file/none.html', status: 404 }),
  ask({
    id: 'fetch-1k',
    title: '1 KB fetched, nothing to keep',
    path: '/fetched/1k.html',
    contentBytes: smallBytes,
  }),
  ask({
    id: 'packed-20k',
    title: '20 KB fetched, compressed by gzip',
    path: '/packed/20k.html',
    headers: { 'Accept-Encoding': 'gzip' },
  }),
  ask({
    id: 'hit-1k',
    title: '1 KB fetched, kept in the cache',
    path: '/kept/1k.html',
    contentBytes: smallBytes,
  }),
  ask({
    id: 'not-modified',
    title: '304 for the 1 KB file',
    path: '/file/1k.html',
    status: 304,
    contentBytes: 0,
    conditional: true,
  }),
  ask({ id: 'file-100k', title: '100 KB file', path: '/file/100k.html', contentBytes: largeBytes }),
  ask({
    id: 'page-100k',
    title: '100 KB stored page (the others: a file)',
    path: '/page/100k.html',
    contentBytes: largeBytes,
  }),
  ask({
    id: 'file-100m',
    title: '100 MB file, 4 connections',
    path: '/file/100m.html',
    contentBytes: hugeBytes,
    ...{ connections: 4, seconds: 4, watchesMemory: true },
  }),
];

/** A page that is matched and made at each visit, which a field brings about that Waymark does not know. */
export const pageMadeAnew: Scenario = ask({
  id: 'page-anew',
  title: '1 KB stored page, made anew',
  path: '/page/1k.html',
  contentBytes: smallBytes,
  headers: { 'X-Anew': '1' },
});

/** A scenario of another benchmark, at one path. */
export function scenarioAt(
  path: string,
  more: Pick<Scenario, 'title'> & Partial<Omit<Scenario, 'path'>>,
): Scenario {
  return ask({ id: more.title, ...more, path });
}

function ask({
  status = 200,
  contentBytes,
  conditional = false,
  ...rest
}: Pick<Scenario, 'id' | 'title' | 'path'> & Partial<Scenario>): Scenario {
  return { ...rest, status, contentBytes, conditional };
}
