import { mountPath, privatePlace, unixUrl } from '../../core/config/addresses.ts';
import { lineWords } from '../../core/config/include.ts';
import {
  type FieldsOf,
  flagKey,
  list,
  optional,
  originKey,
  repeatedIfAny,
  single,
} from '../../core/config/ini-key.ts';
import {
  iniSection,
  type ParsedIni,
  type ParsedSection,
  problemOf,
} from '../../core/config/ini-section.ts';
import { escapedPath } from '../../core/values/path.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import {
  type ValueParser,
  choice,
  duration,
  size,
  wholeNumber,
  wordOr,
  written,
} from '../../core/config/values.ts';
import { proxyVersions } from '../../core/http/reading/proxy-protocol.ts';
import { isImplemented } from '../../core/http/request.ts';
import {
  checkIntervalMax,
  checkIntervalMin,
  fetchRetriesMax,
  fetchSourcesMax,
  sourceWeightMax,
} from '../../core/values/limits.ts';
import { parseAuthority } from '../../core/values/network/authority.ts';
import { answerFields, requestFields } from '../headers/header-lines.ts';
import { balances } from './balance.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    readonly proxies: readonly ProxyConfig[];
    readonly fetch: FieldsOf<typeof fetchKeys>;
  }
  /** `[proxy.<name>]`: an application behind Waymark. */
  interface ProxyConfig extends FieldsOf<typeof proxyKeys> {
    readonly name: string;
    /** Fields of the requests to it: name, template, name, template … */
    readonly requestHeaders: readonly string[];
    /** Fields of its answers: name, template, name, template … */
    readonly headers: readonly string[];
  }
}

/** The path of a proxy: that of a mount, without a `*`. */
const proxyPath = written<string>(
  (text) =>
    text.includes('*')
      ? { refused: 'remove the *: a proxy answers everything below its path' }
      : mountPath(text),
  escapedPath,
);

/**
 * The URL of an application: http or https, without a user, a query or a `*`. With `srv+` in front,
 * SRV records have the port; `unix:/run/app.sock` is a unix socket.
 */
const applicationUrl: ValueParser<string> = (value) => {
  const socket = unixUrl(value);
  if (socket !== undefined) return socket;
  return /^(?:srv\+https?:\/\/[^:]*$|https?:)/i.test(value) &&
    /^(?:srv\+)?https?:\/\/[^\s/?#@*\\]+(?:\/[^\s?#*\\]*)?$/i.test(value) &&
    URL.canParse(value)
    ? { value }
    : { refused: 'write the URL of an application, such as `http://127.0.0.1:3000`' };
};

/** The URL of one server of an application, as `applicationUrl`, but no service. */
const serverUrl: ValueParser<string> = (value) =>
  value.startsWith('srv+')
    ? { refused: 'write the URL of a server, such as `http://127.0.0.1:3000`' }
    : applicationUrl(value);

/** A host with an optional port. */
const hostText: ValueParser<string> = (text) => {
  const value = parseAuthority(text, 'http');
  return value === undefined
    ? { refused: 'write `client`, `source`, or a host such as `app.example.com`' }
    : { value };
};

/** The name of a method in capitals, or UPGRADE for websockets. */
const method: ValueParser<string> = (value) =>
  value === 'all' || value === 'UPGRADE' || (isImplemented(value) && value !== 'CONNECT')
    ? { value }
    : { refused: 'write `all`, or methods such as `GET, POST, UPGRADE`' };

/** A path with an optional query, as it is sent to a source. */
const checkPath: ValueParser<string> = (value) =>
  /^\/[\x21\x22\x24-\x7e]*$/.test(value)
    ? { value }
    : { refused: 'write a path of the application, such as `/status`' };

/** The keys of `[proxy.<name>]`: an application behind Waymark. */
const proxyKeys = {
  origin: originKey('that the application answers for'),
  path: single(proxyPath, '/', {
    about:
      'The path of the URL that the application answers, and all below it; `/api` and `/api/` ' +
      'mean the same. Files and stored pages come first; among proxies and `content.fetch` rules ' +
      'the longest path does.',
    example: '/api/',
  }),
  source: repeatedIfAny(applicationUrl, {
    about:
      'The URL of the application, or of several servers of it. Without a path, the application ' +
      'gets the path that the visitor sent; a path, also a bare `/`, replaces `path`. ' +
      '`srv+http://_app._tcp.example.com` means the servers in the SRV records of that name, and ' +
      '`unix:/run/app.sock` a unix socket (`unix:/run/app.sock:/base/` with a path).',
    example: 'http://127.0.0.1:3000',
  }),
  methods: list(method, 'all', {
    about: 'The methods that are passed on; `UPGRADE` stands for websockets and other protocols.',
    example: 'GET, HEAD, POST, UPGRADE',
  }),
  host: single(wordOr('client', wordOr('source', hostText)), 'client', {
    about:
      'The Host that the application gets: that of the client, that of its source (`localhost` ' +
      'for a unix socket), or a name.',
    example: 'source',
  }),
  timeout: optional(duration('1ms', '1d'), {
    field: 'timeoutMs',
    about:
      'How long the application may take to answer, and may pause within its answer. By default ' +
      'that of `[fetch]`.',
    example: '5m',
  }),
  connect_timeout: optional(duration('1ms', '10m'), {
    field: 'connectTimeoutMs',
    about: 'How long connecting to it may take. By default that of `[fetch]`.',
    example: '500ms',
  }),
  max_body: optional(size, {
    field: 'bodyBytesMax',
    about: 'The longest content of a request that is passed on. By default that of `[fetch]`.',
    example: '1GiB',
  }),
  cache: flagKey('yes', {
    about: 'Whether the shared cache stores answers that the application allows it to store.',
  }),
  cache_cookies: flagKey('no', {
    about:
      'Whether an answer that sets cookies is cached without them: only the visitor whose ' +
      'request it answers gets them. Otherwise such an answer is not cached. Only for an ' +
      'application whose pages are the same for all: what is on them goes to everybody.',
    since: '0.3',
  }),
  balance: single(choice(...balances), 'least', {
    about:
      'Which of several sources gets a request: the one with the fewest running requests for its ' +
      'weight (`least`), the next one (`turn`), or always the same one for a visitor, by a ' +
      '`cookie` (`waymark_source`) or by the `address`.',
    example: 'cookie',
    beside: { source: ['http://127.0.0.1:3000', 'http://127.0.0.1:3001'] },
  }),
  weight: list(wholeNumber(0, sourceWeightMax), '', {
    field: 'weights',
    about:
      'The share of the requests that each source gets, in the order of the sources. A source of ' +
      '0 gets requests only while all others fail. By default all are equal.',
    example: '95, 5',
    beside: { source: ['http://127.0.0.1:3000', 'http://127.0.0.1:3001'] },
  }),
  retries: single(wholeNumber(0, fetchRetriesMax), '2', {
    about:
      'How many other sources get a request that failed before it was sent, or that may be ' +
      'repeated.',
    example: '0',
    beside: { source: ['http://127.0.0.1:3000', 'http://127.0.0.1:3001'] },
  }),
  mirror: optional(serverUrl, {
    about:
      'A server that gets a copy of each request, whatever its method, to try it with real ' +
      'traffic. Visitors never get its answers. Requests with more than 1 MiB of content, ' +
      'websockets, and what the cache answers are not copied.',
    example: 'http://127.0.0.1:3003',
  }),
  http_version: single(choice('1.1', '2'), '1.1', {
    about:
      'The version of HTTP that the application gets: `2` over TLS, or in the clear (h2c). gRPC ' +
      'needs it. Websockets are in HTTP/1.1 in any case.',
    example: '2',
  }),
  proxy_protocol: optional(choice(...proxyVersions), {
    about:
      'The version of the PROXY protocol by which each connection to the application names the ' +
      'visitor. Each request then has a connection of its own.',
    example: 'v2',
  }),
  resolve: flagKey('no', {
    about:
      'Whether each address of the name of a source is a server of its own, which gets its share ' +
      'of the requests and can fail alone. DNS gets a new query when the TTL of an address ends.',
  }),
  health: optional(checkPath, {
    about:
      'A path that Waymark asks each source for at intervals. A source that does not answer with ' +
      '200 to 399 in time, twice in a row, gets requests only while there is no other.',
    example: '/status',
  }),
  health_interval: single(duration(checkIntervalMin, checkIntervalMax), '10s', {
    field: 'healthIntervalMs',
    about: 'The time from one health check to the next. An answer may take as long, from 1 to 5 s.',
    example: '2s',
    beside: { health: '/status' },
  }),
};

/** `[proxy.<name>]`: an application behind Waymark. */
export const proxySection = iniSection({
  header: 'proxy.<name>',
  keys: proxyKeys,
  place: 'proxies',
  since: '0.2',
  about:
    'An application behind Waymark. It may be in a private network, since only this file names it.',
  example: { name: 'app', lines: { source: 'http://127.0.0.1:3000' } },
  check: wrongProxies,
  names: ({ proxies }) => ({ origins: proxies.map(({ origin }) => origin) }),
});

/** `[proxy.<name>.request_headers]`: fields of the requests to the application. */
export const proxyRequestSection = iniSection({
  header: 'proxy.<name>.request_headers',
  keys: {},
  lines: requestFields,
  since: '0.2',
});

/** `[proxy.<name>.headers]`: fields of its answers. */
export const proxyHeadersSection = iniSection({
  header: 'proxy.<name>.headers',
  keys: {},
  lines: answerFields('headers'),
  since: '0.2',
});

type ParsedProxy = ParsedSection<typeof proxyKeys>;

/** Finds proxies that cannot work: without a source, or two with the same origin and path. */
function wrongProxies(
  proxies: readonly ParsedProxy[],
  { includedFiles }: ParsedIni,
): readonly LineProblem[] {
  const seen = new Map<string, ParsedProxy>();
  return proxies.flatMap((proxy) => {
    const { name, values, line, lines, isValid } = proxy;
    const at = (key: string, message: string) => [problemOf(proxy, key, message)];
    if (!isValid) return [];
    const title = `[proxy.${name}]`;
    if (values.source.length === 0) {
      const message = `${title} needs a \`source\`, such as \`source = http://127.0.0.1:3000\``;
      return [{ line, message }];
    }
    if (values.source.length > fetchSourcesMax) {
      const message = `${title} has more than ${fetchSourcesMax} sources: remove some`;
      return [{ line: lines.get('source')?.[fetchSourcesMax] ?? line, message }];
    }
    const { weight } = values;
    if (weight.length > 0 && weight.length !== values.source.length) {
      const counts = `${values.source.length} for the ${values.source.length} sources`;
      return at('weight', `\`weight\` of ${title} needs ${counts}, in their order`);
    }
    if (weight.length > 0 && weight.every((one) => one === 0)) {
      return at('weight', `\`weight\` of ${title}: one has to be more than 0`);
    }
    if (values.methods.includes('all') && values.methods.length > 1) {
      return at('methods', `\`methods\` of ${title}: \`all\` needs no other methods`);
    }
    const place = `${values.origin} ${values.path}`;
    const earlier = seen.get(place);
    if (earlier === undefined) {
      seen.set(place, proxy);
      return [];
    }
    const same = `${title} has the same origin and path as [proxy.${earlier.name}]`;
    const cure = 'give one of them another `path`, or list both URLs as `source[]` of one';
    const here = lines.get('path')?.[0] ?? lines.get('origin')?.[0] ?? line;
    const where = lineWords(earlier.line, here, includedFiles);
    return [{ line: here, message: `${same}, in ${where}: ${cure}` }];
  });
}

const fetchKeys = {
  allow_private: list(privatePlace, '', {
    about:
      'Private networks that sources may be in, and unix sockets that they may be on, such as ' +
      '`unix:/run/app.sock`. By default none, so that no page rule can expose your network.',
    example: '127.0.0.0/8, unix:/run/app.sock',
  }),
  connect_timeout: single(duration('1ms', '10m'), '3s', {
    field: 'connectTimeoutMs',
    about: 'How long connecting to a source may take.',
    example: '5s',
  }),
  timeout: single(duration('1ms', '1d'), '30s', {
    field: 'timeoutMs',
    about: 'How long a source may take to answer, and may pause within its answer.',
    example: '60s',
  }),
  cache: single(size, '256MiB', {
    field: 'cacheBytesMax',
    about: 'Disk space for cached content; `0` disables the cache.',
    example: '1GiB',
  }),
  max_body: single(size, '64MiB', {
    field: 'bodyBytesMax',
    about: 'The longest content of a request that is passed on.',
    example: '256MiB',
  }),
};

/** `[fetch]`: requests to the sources of pages. */
export const fetchSection = iniSection({
  header: 'fetch',
  keys: fetchKeys,
  place: 'fetch',
  since: '0.1',
});
