import { Conversion, type Converted } from '../conversion.ts';
import { type Directive, allOf, errorsNearest, lastOf } from '../directive.ts';
import { readNone } from '../include.ts';
import {
  convertBasicAuth,
  convertClientAuth,
  convertFiles,
  convertForwardAuth,
  convertHeader,
  convertProxy,
  convertRedirect,
  convertRespond,
} from './handlers.ts';
import { type CaddyBlock, parseCaddyfile } from './parse.ts';
import { type CaddySite, leaveUnknown, placed, withVariables } from './site.ts';

interface Address {
  readonly scheme: 'http' | 'https';
  /** Empty for all hosts. */
  readonly host: string;
  readonly port: string;
}

/**
 * Converts a Caddyfile. Throws `invalid` with a line if it cannot be parsed. `read` reads the files
 * that it imports.
 */
export function convertCaddy(text: string, _file = '', read = readNone): Converted {
  const conversion = new Conversion();
  const variables = new Map<string, string>();
  const blocks = parseCaddyfile(text, read);
  for (const options of blocks.filter(({ addresses }) => addresses.length === 0)) {
    convertOptions(conversion, options);
  }
  const sites = blocks.filter(
    ({ addresses: [first] }) => first !== undefined && first !== 'import',
  );
  for (const { addresses, file, line } of blocks.filter((one) => one.addresses[0] === 'import')) {
    const words = addresses.slice(1);
    const text = addresses.join(' ');
    leaveUnknown({ conversion }, { name: 'import', words, file, line, text, block: undefined });
  }
  for (const site of sites)
    convertSite(conversion, site, { isOnly: sites.length === 1, variables });
  const names = [...variables].filter(([, value]) => value !== '');
  if (names.length > 0) {
    const section = conversion.only('variables', { line: 1, text: '' });
    for (const [name, value] of names) section.set(name, value);
  }
  return conversion.finish([...variables.keys()]);
}

const privateRanges = '192.168.0.0/16, 172.16.0.0/12, 10.0.0.0/8, 127.0.0.1/8, fd00::/8, ::1';

function convertOptions(conversion: Conversion, { block }: CaddyBlock): void {
  for (const option of block) {
    if (option.name === 'email') {
      conversion.only('tls', option).set('acme_email', option.words[0] ?? '', option);
    } else if (option.name === 'servers') {
      const proxies = lastOf(option.block ?? [], 'trusted_proxies')?.words ?? [];
      const networks = proxies.slice(1).join(', ').replace('private_ranges', privateRanges);
      if (proxies[0] === 'static')
        conversion.only('server', option).set('trust_proxy', networks, option);
    } else if (option.name !== 'log') leaveUnknown({ conversion }, option);
  }
}

/** The part of an address that decides where Caddy listens. */
function addressOf(text: string): Address | undefined {
  const [, scheme, host = '', port, path] =
    /^(?:(https?):\/\/)?([\w.*-]*|\[[\da-f:]+\])(?::(\d{1,5}))?(\/.*)?$/i.exec(text) ?? [];
  if (text === '' || (path !== undefined && path !== '/')) return undefined;
  const isHttp =
    scheme === 'http' || port === '80' || (scheme === undefined && host === '' && port !== '443');
  const isUsual = isHttp ? '80' : '443';
  return { scheme: isHttp ? 'http' : 'https', host: host.toLowerCase(), port: port ?? isUsual };
}

function originOf({ scheme, host, port }: Address): string {
  const isUsual = port === (scheme === 'http' ? '80' : '443');
  return `${scheme}://${host}${isUsual ? '' : `:${port}`}`;
}

function convertSite(
  conversion: Conversion,
  { addresses: written, block, line, file }: CaddyBlock,
  { isOnly, variables }: { readonly isOnly: boolean; readonly variables: Map<string, string> },
): void {
  const source = { file, line, text: written.join(', ') };
  const addresses: Address[] = [];
  for (const text of written) {
    const known = text.replaceAll(/\{\$\w+:([^{}]*)\}/g, '$1');
    const address = addressOf(known);
    if (address === undefined)
      conversion.leave(source, 'an origin such as https://www.example.com');
    else addresses.push(address);
  }
  const [first] = addresses;
  if (first === undefined) return;
  const hosts = addresses.map(({ host }) => host);
  const isForAll = isOnly || hosts.includes('');
  const server = conversion.only('server', source);
  server.addAll('listen', addresses.flatMap(listensOf));
  convertCertificates(conversion, { block, source, addresses, isOnly });
  const files = filesIn(block);
  const site: CaddySite = {
    conversion,
    origins: isForAll ? ['*'] : [...new Set(addresses.map(originOf))],
    name: isForAll ? 'site' : first.host,
    scheme: first.scheme,
    block,
    variables,
    within: ['/*'],
    isStripped: false,
    root: rootOf(block),
    errors: errorsOf(conversion, block),
    hasFiles: files,
  };
  convertBlock(site, block);
  const client = lastOf(lastOf(block, 'tls')?.block ?? [], 'client_auth');
  if (client !== undefined) convertClientAuth(site, client);
}

function listensOf({ scheme, port }: Address): readonly string[] {
  if (scheme === 'http') return [`:${port}`];
  return port === '443' ? [':80', 'https://:443'] : [`https://:${port}`];
}

function filesIn(block: readonly Directive[]): boolean {
  return block.some((one) => one.name === 'file_server' || filesIn(one.block ?? []));
}

function rootOf(block: readonly Directive[]): string | undefined {
  const { words = [] } = lastOf(block, 'root') ?? {};
  return words.length > 1 ? words[1] : words[0];
}

/** The folder of error pages, if their names are those of Waymark; `/` is the root. */
function errorsOf(conversion: Conversion, block: readonly Directive[]): string | undefined {
  const handler = lastOf(block, 'handle_errors');
  if (handler === undefined) return undefined;
  const rewrite = lastOf(handler.block ?? [], 'rewrite');
  const page = rewrite?.words.at(-1) ?? '';
  const [found, folder] =
    /^\/(?:([\w/-]+)\/)?\{(?:err|http\.error)\.status_code\}\.html$/.exec(page) ?? [];
  if (found !== undefined && lastOf(handler.block ?? [], 'file_server')) return folder ?? '/';
  conversion.leave(handler, errorsNearest);
  return undefined;
}

interface Certified {
  readonly block: readonly Directive[];
  readonly source: { readonly line: number; readonly text: string };
  readonly addresses: readonly Address[];
  readonly isOnly: boolean;
}

/** Certificates from files, or from an ACME server as Caddy orders them. */
function convertCertificates(
  conversion: Conversion,
  { block, source, addresses, isOnly }: Certified,
): void {
  const tls = lastOf(block, 'tls');
  if (tls !== undefined) leaveTlsLines(conversion, tls);
  const secure = addresses.filter(({ scheme }) => scheme === 'https');
  const [cert = '', key] = tls?.words ?? [];
  if (tls !== undefined && key === undefined && cert.includes('@')) {
    conversion.only('tls', tls).set('acme_email', cert, tls);
  } else if (tls !== undefined && key === undefined && (cert !== '' || tls.block === undefined)) {
    conversion.leave(tls, '`acme = yes` of a [tls.<host>], or `cert` and `key`');
    return;
  }
  for (const { host } of secure) {
    if (tls !== undefined && key !== undefined) {
      const section =
        isOnly || host === '' ? conversion.only('tls', tls) : conversion.certificate(host, tls);
      section.set('cert', cert, tls);
      section.set('key', key, tls);
    } else if (isPublicName(host)) {
      conversion.certificate(host, source).set('acme', 'yes', source);
    } else
      conversion.leave(
        source,
        `a certificate for ${host || 'all names'}: \`cert\` and \`key\` of [tls]`,
      );
  }
}

/** Lines of `tls { … }` that are converted, or need no counterpart. */
const tlsLines: ReadonlySet<string> = new Set([
  ...['client_auth', 'protocols', 'ciphers', 'curves', 'alpn'],
]);

function leaveTlsLines(conversion: Conversion, { block = [] }: Directive): void {
  for (const one of block) {
    if (!tlsLines.has(one.name)) {
      conversion.leave(one, '`acme = yes` and its keys of a [tls.<host>], or `cert` and `key`');
    }
  }
}

/** Whether an ACME server can check a name: it has a dot, and is no address or local name. */
function isPublicName(host: string): boolean {
  const labels = host.split('.');
  const last = labels.at(-1) ?? '';
  const isLocal = ['local', 'localhost', 'internal'].includes(last);
  const areLabels = labels.every((label) => /^[a-z0-9-]+$/.test(label));
  return labels.length > 1 && areLabels && !isLocal && /^[a-z]/.test(last);
}

/** Directives that are read elsewhere. */
const readElsewhere: ReadonlySet<string> = new Set([
  ...['root', 'tls', 'try_files', 'handle_errors', 'request_body'],
]);

type Handler = (site: CaddySite, directive: Directive, block: readonly Directive[]) => void;

const handlers: ReadonlyMap<string, Handler> = new Map<string, Handler>([
  ['header', convertHeader],
  ['reverse_proxy', convertProxy],
  ['file_server', convertFiles],
  ['redir', convertRedirect],
  ['respond', convertRespond],
  ['forward_auth', convertForwardAuth],
  ['basic_auth', convertBasicAuth],
  ['basicauth', convertBasicAuth],
  ['log', convertLog],
  ['handle', convertHandle],
  ['handle_path', convertHandle],
  ['route', convertHandle],
]);

function convertBlock(site: CaddySite, block: readonly Directive[]): void {
  for (const directive of block) {
    if (readElsewhere.has(directive.name) || directive.name.startsWith('@')) continue;
    if (directive.name === 'uri' && site.isStripped) continue;
    const convert = handlers.get(directive.name);
    if (convert === undefined) leaveUnknown(site, directive);
    else convert(site, directive, block);
  }
  for (const one of allOf(block, 'try_files')) {
    if (lastOf(block, 'file_server') === undefined) leaveUnknown(site, one);
  }
}

/** `handle`, `handle_path` and `route`: directives for some paths. */
function convertHandle(site: CaddySite, directive: Directive): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const block = directive.block ?? [];
  const { words: [part, prefix] = [] } = lastOf(block, 'uri') ?? {};
  const strips =
    part === 'strip_prefix' && at.paths.every((path) => path.replace(/\/?\*$/, '') === prefix);
  convertBlock(
    {
      ...at.place,
      within: at.paths,
      isStripped: site.isStripped || strips || directive.name === 'handle_path',
      block: [...site.block, ...block],
      root: rootOf(block) ?? site.root,
    },
    block,
  );
}

function convertLog(site: CaddySite, directive: Directive): void {
  const block = directive.block ?? [];
  const output = lastOf(block, 'output');
  const file = output?.words[0] === 'file' ? output.words[1] : undefined;
  const log = site.conversion.only('log', directive);
  log.set('format', lastOf(block, 'format')?.words[0] === 'console' ? 'pretty' : 'json', directive);
  if (file !== undefined) log.setTemplate('file', withVariables(site, file), output);
}
