import { parseAuthority } from '../../model/authority.ts';
import { fetchSourcesMax } from '../../model/limits.ts';
import { isImplemented } from '../../model/method.ts';
import { durationText, sizeText } from '../../model/units.ts';
import { mountPath, origin } from '../addresses.ts';
import { escapedPath } from '../../model/path.ts';
import { lineWords } from '../include.ts';
import { list, optional, repeatedIfAny, single, type ParsedKeys } from '../ini-key.ts';
import type { KeyText } from '../key-text.ts';
import type { LineProblem } from '../problem.ts';
import type { ParsedTemplates } from './header-lines.ts';
import { duration, size, wordOr, yesNo, type ValueParser } from '../values.ts';

/** The path of a proxy: that of a mount, without a `*`. */
const proxyPath: ValueParser<string> = (text) =>
  text.includes('*')
    ? { refused: 'remove the *: a proxy answers everything below its path' }
    : mountPath(text);

/** The URL of an application: http or https, without a user, a query or a `*`. */
const applicationUrl: ValueParser<string> = (value) =>
  /^https?:\/\/[^\s/?#@*\\]+(?:\/[^\s?#*\\]*)?$/i.test(value) && URL.canParse(value)
    ? { value }
    : { refused: 'write the URL of an application, such as `http://127.0.0.1:3000`' };

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

/** The keys of `[proxy.<name>]`: an application behind Waymark. */
export const proxyKeys = {
  origin: single(wordOr('*', origin), '*'),
  /** A canonical path prefix that ends in `/`. */
  path: single(proxyPath, '/', { write: escapedPath }),
  /** The URLs of the application's servers. */
  source: repeatedIfAny(applicationUrl),
  methods: list(method, 'all'),
  host: single(wordOr('client', wordOr('source', hostText)), 'client'),
  /** By default that of `[fetch]`. */
  timeout: optional(duration('1ms', '1d'), { field: 'timeoutMs', write: durationText }),
  connect_timeout: optional(duration('1ms', '10m'), {
    field: 'connectTimeoutMs',
    write: durationText,
  }),
  max_body: optional(size, { field: 'bodyBytesMax', write: sizeText }),
  cache: single(yesNo, 'yes'),
};

/** What the reference says about each key. */
export const proxyTexts: Readonly<Record<keyof typeof proxyKeys, KeyText>> = {
  origin: {
    about: 'The origin that the application answers for; `*` for every origin.',
    example: 'https://www.example.com',
  },
  path: {
    about:
      'The path of the URL below which the application answers. Files and stored pages come ' +
      'first; among proxies and `content.fetch` rules the longest path does.',
    example: '/api/',
  },
  source: {
    about:
      'The URL of the application, or of several servers of it. Without a path, the application ' +
      'gets the path that the visitor sent; a path, also a bare `/`, replaces `path`.',
    example: 'http://127.0.0.1:3000',
  },
  methods: {
    about: 'The methods that are passed on; `UPGRADE` stands for websockets.',
    example: 'GET, HEAD, POST, UPGRADE',
  },
  host: {
    about: 'The Host that the application gets: that of the client, that of its source, or a name.',
    example: 'source',
  },
  timeout: {
    about:
      'How long the application may take to answer, and may pause within its answer. By default ' +
      'that of `[fetch]`.',
    example: '5m',
  },
  connect_timeout: {
    about: 'How long connecting to it may take. By default that of `[fetch]`.',
    example: '500ms',
  },
  max_body: {
    about: 'The longest content of a request that is passed on. By default that of `[fetch]`.',
    example: '1GiB',
  },
  cache: {
    about: 'Whether the shared cache stores answers that the application allows it to store.',
    example: 'no',
  },
};

type ParsedProxy = ParsedKeys<typeof proxyKeys>;

/**
 * Finds proxies that cannot work: without a source, or two with the same origin and path; and
 * fields for a proxy that does not exist.
 */
export function proxyProblems({
  proxies,
  proxyRequestHeaders,
  proxyHeaders,
  includedFiles,
}: {
  readonly proxies: readonly ParsedProxy[];
  readonly proxyRequestHeaders: readonly ParsedTemplates[];
  readonly proxyHeaders: readonly ParsedTemplates[];
  readonly includedFiles: readonly string[];
}): readonly LineProblem[] {
  const names = new Set(proxies.map(({ name }) => name));
  const unowned = (sections: readonly ParsedTemplates[], part: string): readonly LineProblem[] =>
    sections
      .filter(({ name }) => !names.has(name))
      .map(({ name, line }) => ({
        line,
        message: `[proxy.${name}.${part}] has no effect: there is no [proxy.${name}]`,
      }));
  return [
    ...wrongProxies(proxies, includedFiles),
    ...unowned(proxyRequestHeaders, 'request_headers'),
    ...unowned(proxyHeaders, 'headers'),
  ];
}

function wrongProxies(
  proxies: readonly ParsedProxy[],
  includedFiles: readonly string[],
): readonly LineProblem[] {
  const seen = new Map<string, ParsedProxy>();
  return proxies.flatMap((proxy) => {
    const { name, values, line, lines, isValid } = proxy;
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
    if (values.methods.includes('all') && values.methods.length > 1) {
      const at = lines.get('methods')?.[0] ?? line;
      return [{ line: at, message: `\`methods\` of ${title}: \`all\` needs no other methods` }];
    }
    const place = `${values.origin} ${values.path}`;
    const earlier = seen.get(place);
    if (earlier === undefined) {
      seen.set(place, proxy);
      return [];
    }
    const same = `${title} has the same origin and path as [proxy.${earlier.name}]`;
    const cure = 'give one of them another `path`, or list both URLs as `source[]` of one';
    const at = lines.get('path')?.[0] ?? lines.get('origin')?.[0] ?? line;
    const where = lineWords(earlier.line, at, includedFiles);
    return [{ line: at, message: `${same}, in ${where}: ${cure}` }];
  });
}
