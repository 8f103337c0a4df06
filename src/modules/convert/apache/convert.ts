import { parseUnixSocket } from '../../../core/values/network/unix-socket.ts';
import { Conversion, type Converted, type WrittenSection } from '../conversion.ts';
import {
  type Directive,
  allOf,
  errorsNearest,
  extensionsOf,
  htpasswdNote,
  lastOf,
} from '../directive.ts';
import { readNone, withIncluded } from '../include.ts';
import {
  type FieldWish,
  addAccess,
  addFields,
  addMount,
  addProxy,
  writeFields,
  withUri,
} from '../sections.ts';
import {
  type Rewritten,
  convertRedirect,
  convertRewrites,
  expiresField,
  headerField,
} from './redirects.ts';
import { type ApacheSite, leaveUnknown, parseApache } from './site.ts';

/**
 * Converts a configuration of Apache: virtual hosts, or the directives of an `.htaccess`. Throws
 * `invalid` with a line if it cannot be parsed. `read` reads the files that it includes. `folder`
 * is the folder of the file as the ini file names it.
 */
export function convertApache(text: string, _file = '', read = readNone, folder = '.'): Converted {
  const conversion = new Conversion();
  const format = { patternOf: includedBy, parse: parseApache, read };
  const top = withIncluded(parseApache(text), format);
  const hosts = allOf(top, '<virtualhost>');
  const outside = top.filter(({ name }) => name !== '<virtualhost>');
  if (hosts.length === 0) {
    const site: ApacheSite = {
      ...{ conversion, origins: ['*'], name: 'site', hosts: [], scheme: undefined },
      ...{ folder: lastOf(top, 'documentroot') === undefined ? folder : undefined, hasFiles: true },
    };
    convertBlock(site, top);
    return conversion.finish();
  }
  const settings = { conversion };
  for (const one of outside) leaveUnknown(settings, one);
  const sites = hosts.filter((host) => !leadsToHttps(host, hosts));
  const contents = sites.filter((host) => !isRedirect(host.block ?? []));
  const server = conversion.only('server', hosts[0] ?? { line: 0, text: '' });
  server.addAll('listen', [...new Set(hosts.map(listenOf))]);
  for (const host of sites) {
    const isOnly = contents.length === 1 && contents[0] === host;
    convertBlock(siteOf(conversion, host, isOnly), host.block ?? []);
    convertCertificate(conversion, host, contents.length <= 1);
  }
  return conversion.finish();
}

function includedBy({ name, words }: Directive): string | undefined {
  return /^include(?:optional)?$/.test(name) ? words[0] : undefined;
}

function isRedirect(block: readonly Directive[]): boolean {
  const redirects = block.some(({ name }) => name.startsWith('redirect') || name === 'rewriterule');
  return (
    redirects &&
    lastOf(block, 'documentroot') === undefined &&
    lastOf(block, 'proxypass') === undefined
  );
}

/** Whether a host on port 80 only leads to https, as `http_redirect` of [tls] does. */
function leadsToHttps(host: Directive, hosts: readonly Directive[]): boolean {
  const block = host.block ?? [];
  const secure = hosts.filter((one) => listenOf(one).startsWith('https')).flatMap(namesOf);
  const names = namesOf(host);
  if (listenOf(host).startsWith('https') || !names.every((name) => secure.includes(name)))
    return false;
  const redirect = block.find(({ name }) => name.startsWith('redirect'));
  const [from, to = ''] = redirect?.words.slice(-2) ?? [];
  const isWhole =
    from === '/' && names.some((name) => to === `https://${name}/` || to === `https://${name}`);
  const rule = lastOf(block, 'rewriterule')?.words ?? [];
  const isRule = /^https:\/\/%\{(?:HTTP_HOST|SERVER_NAME)\}(?:%\{REQUEST_URI\}|\/?\$1)$/.test(
    rule[1] ?? '',
  );
  return (isWhole && names.length === 1) || isRule;
}

function namesOf({ block = [] }: Directive): readonly string[] {
  const named = [...allOf(block, 'servername'), ...allOf(block, 'serveralias')];
  return named.flatMap(({ words }) => words.map((word) => word.toLowerCase().replace(/:\d+$/, '')));
}

function listenOf({ words, block = [] }: Directive): string {
  const [, host = '*', port = '80'] = /^(?:(.*?):)?(\d+|\*)$/.exec(words[0] ?? '') ?? [];
  const isSecure = lastOf(block, 'sslengine')?.words[0]?.toLowerCase() === 'on' || port === '443';
  const address = ['*', '_default_', '0.0.0.0'].includes(host) ? '' : host;
  return `${isSecure ? 'https://' : ''}${address}:${port === '*' ? '80' : port}`;
}

function siteOf(conversion: Conversion, host: Directive, isOnly: boolean): ApacheSite {
  const listen = listenOf(host);
  const scheme = listen.startsWith('https') ? 'https' : 'http';
  const port = /:(\d+)$/.exec(listen)?.[1] ?? '';
  const isUsual = port === (scheme === 'http' ? '80' : '443');
  const names = namesOf(host).filter((name) => {
    if (/^[\w-]+(?:\.[\w-]+)*$/.test(name)) return true;
    conversion.leave(host, `\`origin\` of one name each, in place of ${name}`);
    return false;
  });
  const origins = names.map((name) => `${scheme}://${name}${isUsual ? '' : `:${port}`}`);
  return {
    ...{ conversion, hosts: names, scheme, folder: undefined },
    origins: isOnly || names.length === 0 ? ['*'] : origins,
    name: isOnly ? 'site' : (names[0] ?? 'site'),
    hasFiles: lastOf(host.block ?? [], 'documentroot') !== undefined,
  };
}

function convertCertificate(conversion: Conversion, host: Directive, isOnly: boolean): void {
  const { block = [] } = host;
  const cert = lastOf(block, 'sslcertificatefile');
  const key = lastOf(block, 'sslcertificatekeyfile');
  if (cert === undefined || key === undefined) return;
  const sections = isOnly
    ? [conversion.only('tls', cert)]
    : namesOf(host).map((name) => conversion.certificate(name, cert));
  for (const section of sections) {
    section.set('cert', cert.words[0] ?? '', cert);
    section.set('key', key.words[0] ?? '', key);
  }
}

/** Directives that are read in one place for the whole block. */
const readTogether: ReadonlySet<string> = new Set([
  ...['documentroot', 'directoryindex', 'servername', 'serveralias', 'rewriterule', 'rewritecond'],
  ...['sslcertificatefile', 'sslcertificatekeyfile', 'proxypreservehost', 'requestheader'],
  ...['proxytimeout', 'proxypass', 'addtype', 'header', 'expiresbytype', 'expiresdefault', 'alias'],
  ...[
    'fallbackresource',
    'customlog',
    'errordocument',
    'limitrequestbody',
    'sslcertificatechainfile',
  ],
]);

function convertBlock(site: ApacheSite, given: readonly Directive[]): void {
  const root = lastOf(given, 'documentroot')?.words[0]?.replace(/(.)\/$/, '$1');
  const block = given.flatMap((one) => withFolder(site, one, root));
  const rewritten = convertRewrites(site, block);
  const served = root ?? site.folder;
  if (served !== undefined) {
    const source = lastOf(block, 'documentroot') ?? { line: 0, text: '' };
    const [mount] = addFiles(site, block, { root: served, rewritten, source });
    addTypes(mount, block);
  }
  for (const alias of allOf(block, 'alias')) convertAlias(site, alias);
  convertProxies(site, block, rewritten);
  convertFields(site, block, ['/*']);
  convertLog(site, block);
  const passwords = convertPasswords(site, block);
  for (const directive of block) {
    if (passwords.has(directive)) continue;
    if (directive.name.startsWith('redirect')) convertRedirect(site, directive);
    else if (/^<files(?:match)?>$/.test(directive.name)) convertFilesBlock(site, directive);
    else if (directive.name === '<location>') convertLocation(site, directive, block);
    else if (!readTogether.has(directive.name)) leaveUnknown(site, directive);
  }
}

const passwordDirectives: ReadonlySet<string> = new Set([
  ...['authtype', 'authname', 'authuserfile', 'authbasicprovider', 'require'],
]);

/**
 * Converts passwords for a whole site: `Require valid-user` alone, with one file. Returns the
 * directives that say so; others are left.
 */
function convertPasswords(site: ApacheSite, block: readonly Directive[]): ReadonlySet<Directive> {
  const said = block.filter(({ name }) => passwordDirectives.has(name));
  const wordsOf = (name: string): string =>
    allOf(block, name)
      .flatMap(({ words }) => words)
      .join(' ')
      .toLowerCase();
  const isBasic =
    wordsOf('authtype') === 'basic' && /^(?:file)?$/.test(wordsOf('authbasicprovider'));
  const [file, ...others] = allOf(block, 'authuserfile');
  const passwordFile = file?.words[0];
  const isWhole = isBasic && others.length === 0 && wordsOf('require') === 'valid-user';
  if (file === undefined || passwordFile === undefined || !isWhole) return new Set();
  site.conversion.note(file, htpasswdNote);
  addAccess(site, { paths: ['/*'], passwordFile }, file);
  return new Set(said);
}

/** The directives of the `<Directory>` of the site count as its own; others are read for access. */
function withFolder(
  site: ApacheSite,
  directive: Directive,
  root: string | undefined,
): readonly Directive[] {
  if (directive.name !== '<directory>') return [directive];
  const [path = ''] = directive.words;
  const block = directive.block ?? [];
  if (path.replace(/(.)\/$/, '$1') === root) return block;
  if (path !== '/') for (const one of block) leaveUnknown(site, one);
  return [];
}

interface Files {
  readonly root: string;
  readonly rewritten: Rewritten;
  readonly source: { readonly line: number; readonly text: string };
}

function addFiles(
  site: ApacheSite,
  block: readonly Directive[],
  { root, rewritten, source }: Files,
): readonly WrittenSection[] {
  const index = lastOf(block, 'directoryindex')?.words;
  const options = allOf(block, 'options').flatMap(({ words }) =>
    words.map((word) => word.toLowerCase()),
  );
  const resource = lastOf(block, 'fallbackresource');
  const isPhp = resource?.words[0]?.endsWith('.php') === true;
  if (resource !== undefined && isPhp) leaveUnknown(site, { ...resource, name: 'addhandler' });
  const fallback = isPhp ? undefined : resource?.words[0]?.replace(/^\//, '');
  return addMount(
    site,
    {
      path: '/',
      root,
      index: index?.filter((name) => !name.endsWith('.php') && name !== 'disabled'),
      listing: options.includes('indexes') || options.includes('+indexes'),
      tries: rewritten.tries,
      fallback: rewritten.fallback ?? fallback,
      errors: errorsOf(site, block),
    },
    source,
  );
}

function errorsOf({ conversion }: ApacheSite, block: readonly Directive[]): string | undefined {
  let folder: string | undefined;
  for (const page of allOf(block, 'errordocument')) {
    const [status, path = ''] = page.words;
    const [, below, name] = /^\/(?:(.+)\/)?(\d{3})\.html$/.exec(path) ?? [];
    const found = below ?? '/';
    if (name === status && (folder === undefined || folder === found)) folder = found;
    else conversion.leave(page, errorsNearest);
  }
  return folder;
}

/** `AddType type extension …`, for extensions that Waymark may not know. */
function addTypes(mount: WrittenSection | undefined, block: readonly Directive[]): void {
  const types = allOf(block, 'addtype').flatMap(({ words: [type = '', ...extensions] }) =>
    extensions.map((one) => `${one.replace(/^\./, '')}=${type}`),
  );
  const source = lastOf(block, 'addtype');
  if (types.length > 0 && source !== undefined) mount?.set('types', types.join(', '), source);
}

function convertAlias(site: ApacheSite, directive: Directive): void {
  const [path = '', root = ''] = directive.words;
  if (/\.\w+$/.test(path))
    site.conversion.leave(directive, 'a [disk.<name>] for the folder of that file');
  else addMount(site, { path: path.endsWith('/') ? path : `${path}/`, root }, directive);
}

function convertProxies(
  site: ApacheSite,
  block: readonly Directive[],
  { proxies }: Rewritten,
): void {
  const passes = allOf(block, 'proxypass').map((directive) => {
    const [path = '', url = ''] = directive.words;
    return { directive, path, url };
  });
  for (const { directive, path, url } of [...passes, ...proxies]) {
    if (url === '!') {
      site.conversion.note(directive, 'files of that path come before the application');
      continue;
    }
    const [, socket, scheme, authority = '', uri = ''] =
      /^(?:(unix:[^|]*)\|)?(https?):\/\/([^/]+)(\/.*)?$/.exec(url) ?? [];
    // A websocket passes through the proxy of its path.
    if (
      /^wss?:/.test(url) &&
      passes.some(
        (one) => path.startsWith(one.path.replace(/\/$/, '')) && one.url.startsWith('http'),
      )
    )
      continue;
    const isUnknown = socket !== undefined && (scheme === 'https' || !parseUnixSocket(socket));
    if (scheme === undefined || isUnknown) {
      site.conversion.leave(
        directive,
        'a [proxy.<name>] with the URL of an HTTP server in `source`',
      );
      continue;
    }
    const folder = path.endsWith('/') ? path : `${path}/`;
    const target = uri.endsWith('/') || uri === '' ? uri : `${uri}/`;
    const isSame = target === folder || (target === '' && folder === '/');
    convertProxy(site, block, {
      directive,
      path,
      source: withUri(socket ?? `${scheme}://${authority}`, isSame ? '' : target || '/'),
    });
  }
}

function convertProxy(
  site: ApacheSite,
  block: readonly Directive[],
  {
    directive,
    path,
    source,
  }: { readonly directive: Directive; readonly path: string; readonly source: string },
): void {
  const isPreserved = lastOf(block, 'proxypreservehost')?.words[0]?.toLowerCase() === 'on';
  const timeout = lastOf(block, 'proxytimeout')?.words[0];
  const sections = addProxy(
    site,
    {
      path,
      sources: [source],
      host: isPreserved ? 'client' : 'source',
      timeout: timeout && `${timeout}s`,
      maxBody: lastOf(block, 'limitrequestbody')?.words[0],
    },
    directive,
  );
  const sent = allOf(block, 'requestheader').flatMap((one) => {
    if (/^x-forwarded-/i.test(one.words[1] ?? '')) return [];
    return headerField(site, one) ?? [];
  });
  if (sent.length === 0) return;
  for (const section of sections)
    writeFields(site.conversion.below(section, 'request_headers', directive), sent);
}

function convertFields(
  site: ApacheSite,
  block: readonly Directive[],
  paths: readonly string[],
): void {
  for (const one of allOf(block, 'expiresdefault')) {
    const found = expiresField(site, one);
    if (found !== undefined) addFields(site, paths, [found.field]);
  }
  const byField = new Map<string, { paths: string[]; field: FieldWish }>();
  for (const one of allOf(block, 'expiresbytype')) {
    const found = expiresField(site, one);
    if (found === undefined) continue;
    const same = byField.get(found.field.template);
    if (same === undefined)
      byField.set(found.field.template, { ...found, paths: [...found.paths] });
    else same.paths.push(...found.paths);
  }
  for (const one of byField.values()) addFields(site, [...new Set(one.paths)], [one.field]);
  const fields = allOf(block, 'header').flatMap((one) => headerField(site, one) ?? []);
  addFields(site, paths, fields);
}

function convertFilesBlock(site: ApacheSite, directive: Directive): void {
  const block = directive.block ?? [];
  const words = directive.words.filter((word) => word !== '~');
  const isRegex = directive.name === '<filesmatch>' || words.length < directive.words.length;
  const [pattern = ''] = words;
  const denies = block.some(({ name, words: rest }) => {
    const all = rest.join(' ').toLowerCase();
    return (name === 'require' && all === 'all denied') || (name === 'deny' && all === 'from all');
  });
  // `dotfiles = deny` is the default.
  const isHidden = isRegex ? /^(?:\^|\(\^\|\/\))\\\./.test(pattern) : pattern.startsWith('.');
  if (denies && isHidden) return;
  const extensions = isRegex ? extensionsOf(pattern) : undefined;
  const plain =
    !isRegex && /^\*?[\w.-]+$/.test(pattern)
      ? [pattern.startsWith('*') ? pattern : `*/${pattern}`]
      : undefined;
  const paths = extensions?.map((one) => `*.${one}`) ?? plain;
  if (paths === undefined) {
    site.conversion.leave(
      directive,
      'a [headers.<name>] or `[access.<name>]` section with a `path`',
    );
    return;
  }
  convertFields(site, block, paths);
  for (const one of block) if (!readTogether.has(one.name)) leaveUnknown(site, one);
}

function convertLocation(
  site: ApacheSite,
  directive: Directive,
  outer: readonly Directive[],
): void {
  const block = directive.block ?? [];
  const [path = ''] = directive.words;
  if (!path.startsWith('/')) {
    leaveUnknown(site, { ...directive, name: '<locationmatch>' });
    return;
  }
  const passes = allOf(block, 'proxypass').map((one) => ({ ...one, words: [path, ...one.words] }));
  const context = [
    ...outer.filter(({ name }) => name === 'proxypreservehost'),
    ...block,
    ...passes,
  ];
  const own = context.filter(
    (one) => one.name !== 'proxypass' || passes.some((pass) => pass === one),
  );
  convertProxies(site, own, { fallback: undefined, tries: [], proxies: [] });
  convertFields(site, block, [
    path.endsWith('/') ? `${path}*` : path,
    ...(path.endsWith('/') ? [] : [`${path}/*`]),
  ]);
  for (const one of block) if (!readTogether.has(one.name)) leaveUnknown(site, one);
}

function convertLog(site: ApacheSite, block: readonly Directive[]): void {
  const custom = lastOf(block, 'customlog');
  const [written = '', format] = custom?.words ?? [];
  // The folder of Debian's package.
  const file = written.replace('${APACHE_LOG_DIR}', '/var/log/apache2');
  if (custom === undefined || file.startsWith('|')) return;
  if (file.includes('${')) {
    site.conversion.leave(custom, '`file` of [log] with the whole path');
    return;
  }
  const log = site.conversion.only('log', custom);
  log.set('format', 'combined', custom);
  log.set('file', file, custom);
  if (format !== undefined && !['combined', 'common', 'vhost_combined'].includes(format)) {
    site.conversion.leave(custom, '`format` of [log]: `combined` or `json`');
  }
}
