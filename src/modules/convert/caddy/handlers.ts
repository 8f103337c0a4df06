import { parseUnixSocket } from '../../../core/values/network/unix-socket.ts';
import { type Directive, allOf, lastOf, redirectNearest } from '../directive.ts';
import {
  type FieldWish,
  type ProxyWish,
  addAccess,
  addAnswer,
  addExactProxy,
  addFields,
  addMount,
  addProxy,
  addRedirect,
  addRefusal,
  writeFields,
  withUri,
} from '../sections.ts';
import {
  type CaddySite,
  fieldOf,
  leaveUnknown,
  placed,
  redirectTarget,
  withVariables,
} from './site.ts';

/** `header [matcher] …`: fields of answers. */
export function convertHeader(site: CaddySite, directive: Directive): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const lines = directive.block ?? [
    { ...directive, name: at.rest[0] ?? '', words: at.rest.slice(1) },
  ];
  const fields = lines
    .filter(({ name }) => name !== 'defer' && name !== '')
    .flatMap((one) => fieldOf(site, one, [one.name, ...one.words]) ?? []);
  addFields(at.place, at.paths, fields);
}

/** Fields that Waymark sets itself on the way to an application. */
const setByWaymark = /^(?:x-forwarded-(?:for|proto|host)|connection|upgrade)$/i;
/** Lines of `reverse_proxy` whose purpose Waymark serves by itself. */
const unneeded: ReadonlySet<string> = new Set([
  ...['flush_interval', 'buffer_requests', 'fail_duration', 'max_fails', 'lb_try_duration'],
  ...['lb_try_interval', 'lb_retries', 'unhealthy_status', 'request_buffers', 'response_buffers'],
  ...['stream_timeout', 'stream_close_delay', 'unhealthy_latency', 'trusted_proxies'],
]);
/** The `balance` for each `lb_policy`; undefined for the one with the fewest requests. */
const policies: Readonly<Record<string, string | undefined>> = {
  random: undefined,
  random_choose: undefined,
  least_conn: undefined,
  round_robin: 'turn',
  weighted_round_robin: 'turn',
  ip_hash: 'address',
  client_ip_hash: 'address',
  cookie: 'cookie',
};

/** `reverse_proxy [matcher] upstreams…`: an application. */
export function convertProxy(site: CaddySite, directive: Directive): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const block = directive.block ?? [];
  const upstreams = [...at.rest, ...allOf(block, 'to').flatMap(({ words }) => words)];
  const sources = upstreams.map((one) => sourceOf(withVariables(site, one)));
  const known = sources.flatMap((one) => one ?? []);
  if (known.length < sources.length || known.length === 0) {
    site.conversion.leave(directive, 'a [proxy.<name>] with the URL of an HTTP server in `source`');
    return;
  }
  const { host, sent, answered } = proxyFields(site, block);
  for (const path of at.paths) {
    if (!path.includes('*')) {
      addExactProxy(at.place, { path, sources: known, host }, directive);
      continue;
    }
    if (path.startsWith('*')) {
      site.conversion.leave(directive, 'a [proxy.<name>] for a whole folder');
      continue;
    }
    const folder = path.slice(0, -1);
    const sections = addProxy(
      at.place,
      {
        path: folder,
        sources: known.map((one) => withUri(one, site.isStripped && folder !== '/' ? '/' : '')),
        host,
        ...transportOf(site, block),
        ...balanceOf(block, known.length),
        maxBody: maxBodyOf(site),
      },
      directive,
    );
    for (const section of sections) {
      if (sent.length > 0)
        writeFields(site.conversion.below(section, 'request_headers', directive), sent);
      if (answered.length > 0)
        writeFields(site.conversion.below(section, 'headers', directive), answered);
    }
  }
}

function sourceOf(upstream: string): string | undefined {
  if (upstream.startsWith('unix/')) {
    const socket = upstream.replace('/', ':');
    return parseUnixSocket(socket) && socket;
  }
  if (
    /^(?:unix\+|h2c:|srv\+|fastcgi)/.test(upstream) ||
    /[{}]/.test(upstream.replaceAll(/\$\{\w+\}/g, ''))
  ) {
    return undefined;
  }
  if (/^https?:\/\//.test(upstream)) return upstream.replace(/\/$/, '');
  return upstream.startsWith(':') ? `http://localhost${upstream}` : `http://${upstream}`;
}

function folderOf(path: string): string {
  const folder = path.replace(/\*$/, '');
  return folder.endsWith('/') ? folder : `${folder}/`;
}

interface ProxyFields {
  readonly host: string | undefined;
  readonly sent: readonly FieldWish[];
  readonly answered: readonly FieldWish[];
}

function proxyFields(site: CaddySite, block: readonly Directive[]): ProxyFields {
  let host: string | undefined;
  const sent: FieldWish[] = [];
  const answered: FieldWish[] = [];
  for (const one of block) {
    const { name, words } = one;
    if (name === 'header_up' && words[0]?.toLowerCase() === 'host') {
      const value = words[1] ?? '';
      const isSource = /^\{(?:http\.reverse_proxy\.)?upstream[._]hostport\}$/.test(value);
      host = isSource ? 'source' : value === '{host}' ? undefined : value;
    } else if (name === 'header_up' || name === 'header_down') {
      if (name === 'header_up' && setByWaymark.test(words[0] ?? '')) continue;
      const field = fieldOf(site, one, words);
      if (field !== undefined) (name === 'header_up' ? sent : answered).push(field);
    } else if (name === 'lb_policy') {
      if (!Object.hasOwn(policies, words[0] ?? ''))
        site.conversion.leave(one, '`balance` of the [proxy.<name>]');
    } else if (name.startsWith('health_')) {
      if (!checkLines.has(name)) site.conversion.leave(one, '`health` of the [proxy.<name>]');
    } else if (!unneeded.has(name) && name !== 'to' && name !== 'transport') {
      leaveUnknown(site, one);
    }
  }
  return { host, sent, answered };
}

/** Lines of `reverse_proxy` that its checks are converted from, or that need no counterpart. */
const checkLines: ReadonlySet<string> = new Set([
  ...['health_uri', 'health_path', 'health_interval', 'health_timeout'],
  ...['health_passes', 'health_fails'],
]);

/** How requests are spread over the servers of an application, and how these are checked. */
function balanceOf(
  block: readonly Directive[],
  count: number,
): Pick<ProxyWish, 'balance' | 'weights' | 'health' | 'healthInterval'> {
  const [policy = '', ...words] = lastOf(block, 'lb_policy')?.words ?? [];
  const isWeighted = policy === 'weighted_round_robin' && words.length === count;
  const check = lastOf(block, 'health_uri') ?? lastOf(block, 'health_path');
  return {
    ...(count > 1 && { balance: policies[policy] }),
    ...(isWeighted && { weights: words }),
    health: check?.words[0],
    healthInterval: check && lastOf(block, 'health_interval')?.words[0],
  };
}

function transportOf(
  site: CaddySite,
  block: readonly Directive[],
): { readonly connectTimeout?: string | undefined; readonly timeout?: string | undefined } {
  const transport = lastOf(block, 'transport');
  const lines = transport?.block ?? [];
  if (transport !== undefined && transport.words[0] !== 'http') {
    site.conversion.leave(transport, 'an application with an HTTP server of its own');
  }
  const known = ['dial_timeout', 'response_header_timeout', 'read_timeout', 'write_timeout'];
  const tuning = [
    'keepalive',
    'keepalive_idle_conns',
    'compression',
    'read_buffer',
    'tls',
    'tls_server_name',
  ];
  for (const one of lines) {
    if ([...known, ...tuning].includes(one.name)) continue;
    const cure = one.name.startsWith('tls')
      ? 'a certificate that Node.js trusts: Waymark always verifies it'
      : 'nothing that this command knows';
    site.conversion.leave(one, cure);
  }
  return {
    connectTimeout: lastOf(lines, 'dial_timeout')?.words[0],
    timeout: (lastOf(lines, 'response_header_timeout') ?? lastOf(lines, 'read_timeout'))?.words[0],
  };
}

function maxBodyOf({ block }: CaddySite): string | undefined {
  const body = lastOf(block, 'request_body');
  const text = body && lastOf(body.block ?? [], 'max_size')?.words[0];
  return text?.replace(/^(\d+)([KMG])B?$/i, '$1$2B');
}

/** `file_server [matcher] [browse]`: a folder. */
export function convertFiles(
  site: CaddySite,
  directive: Directive,
  block: readonly Directive[],
): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const own = directive.block ?? [];
  const root = withVariables(site, lastOf(own, 'root')?.words[0] ?? site.root ?? '.');
  const isListed = at.rest.includes('browse') || lastOf(own, 'browse') !== undefined;
  const index = lastOf(own, 'index')?.words ?? ['index.html', 'index.txt'];
  const expressed = ['root', 'browse', 'index', 'precompressed', 'hide', 'disable_canonical_uris'];
  for (const one of own) {
    if (!expressed.includes(one.name)) leaveUnknown(site, one);
    if (one.name === 'hide') hidden(site, one);
  }
  const tries = triesOf(site, lastOf(block, 'try_files'));
  for (const path of at.paths) {
    if (!path.endsWith('*')) {
      site.conversion.leave(directive, 'a [disk.<name>] for the folder of that file');
      continue;
    }
    const folder = folderOf(path);
    const below = site.isStripped || folder === '/' ? '' : folder.replace(/\/$/, '');
    addMount(
      at.place,
      {
        path: folder,
        root: `${root.replace(/(.)\/$/, '$1')}${below}`,
        index,
        listing: isListed,
        tries: tries.tries,
        fallback: tries.fallback,
        errors: site.errors,
      },
      directive,
    );
  }
}

/** Waymark hides names that begin with a dot. */
function hidden({ conversion }: CaddySite, directive: Directive): void {
  if (directive.words.every((word) => /(?:^|\/)\.[^/]*$/.test(word))) return;
  conversion.leave(
    directive,
    'a folder without these files: Waymark hides those that begin with a dot',
  );
}

function triesOf(
  site: CaddySite,
  directive: Directive | undefined,
): { readonly tries: readonly string[]; readonly fallback: string | undefined } {
  if (directive === undefined) return { tries: [], fallback: undefined };
  const { rest = [] } = placed(site, directive) ?? {};
  const tries: string[] = [];
  let fallback: string | undefined;
  for (const [at, written] of rest.entries()) {
    const word = written.replace(/^\{(?:http\.request\.uri\.path|uri)\}/, '{path}');
    if (/^\{path\}(?:\/|\/?index\.html)?$/.test(word) || word === '=404') continue;
    if (word.startsWith('{path}')) tries.push(word);
    else if (at === rest.length - 1 && /^\/[^{}?]*$/.test(word) && !word.endsWith('.php')) {
      fallback = word.slice(1);
    } else
      site.conversion.leave(directive, '`try` and `fallback` of a [disk.<name>], which are files');
  }
  return { tries, fallback };
}

/** `basic_auth [matcher] [bcrypt [realm]]`: users, whose hashes become a file of their own. */
export function convertBasicAuth(site: CaddySite, directive: Directive): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const { rest, place, paths } = at;
  const users = directive.block ?? [];
  const areKnown = users.every(({ name, words }) => {
    return /^[^:{}]+$/.test(name) && words.length === 1 && /^\$2[aby]\$/.test(words[0] ?? '');
  });
  if (users.length === 0 || !areKnown || (rest[0] ?? 'bcrypt') !== 'bcrypt') {
    leaveUnknown(site, directive);
    return;
  }
  const lines = users.map(({ name, words }) => `${name}:${words[0]}\n`);
  const passwordFile = site.conversion.file('users.txt', lines.join(''));
  addAccess(place, { paths, passwordFile }, directive);
}

/** `forward_auth [matcher] upstream`: another server decides who may see something. */
export function convertForwardAuth(site: CaddySite, directive: Directive): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const block = directive.block ?? [];
  const [upstream, ...others] = [...at.rest, ...allOf(block, 'to').flatMap(({ words }) => words)];
  const source = upstream === undefined ? undefined : sourceOf(withVariables(site, upstream));
  const uri = lastOf(block, 'uri')?.words[0] ?? '';
  const lines = allOf(block, 'copy_headers');
  const copy = lines.flatMap((one) => [...one.words, ...(one.block ?? []).map(({ name }) => name)]);
  const isExpressed = others.length === 0 && !uri.includes('{') && !copy.some(isRenamed);
  if (source === undefined || !isExpressed) {
    leaveUnknown(site, directive);
    return;
  }
  for (const one of block) {
    if (!['to', 'uri', 'copy_headers'].includes(one.name)) leaveUnknown(site, one);
  }
  const renamed = lines.flatMap(({ block: inner = [] }) => inner.filter(({ words }) => words[0]));
  for (const one of renamed) site.conversion.leave(one, '`copy`, which keeps the names of fields');
  addAccess(at.place, { paths: at.paths, forward: withUri(source, uri), copy }, directive);
}

/** `client_auth { … }` of `tls`: the certificates that the clients of a site need. */
export function convertClientAuth(site: CaddySite, directive: Directive): void {
  const block = directive.block ?? [];
  const pool = lastOf(block, 'trust_pool')?.words ?? [];
  const files = [
    ...allOf(block, 'trusted_ca_cert_file').flatMap(({ words }) => words),
    ...(pool[0] === 'file' ? pool.slice(1) : []),
  ];
  const { words: [mode = 'require_and_verify'] = [] } = lastOf(block, 'mode') ?? {};
  const known = ['mode', 'trust_pool', 'trusted_ca_cert_file'];
  const [file, ...others] = files;
  const isExpressed = block.every(({ name }) => known.includes(name)) && others.length === 0;
  if (file === undefined || !isExpressed || mode !== 'require_and_verify') {
    leaveUnknown(site, directive);
    return;
  }
  addAccess(site, { paths: ['/*'], clientCertificate: withVariables(site, file) }, directive);
}

/** Whether a field of `copy_headers` gets another name. */
function isRenamed(word: string): boolean {
  return word.includes('>');
}

const codes: Readonly<Record<string, number>> = { permanent: 301, temporary: 302 };
const isCode = (word: string | undefined): boolean =>
  word !== undefined && (/^30[1278]$/.test(word) || Object.hasOwn(codes, word));

/** `redir [matcher] to [code]`. */
export function convertRedirect(site: CaddySite, directive: Directive): void {
  const { words } = directive;
  const hasNoMatcher = words.length === 1 || (words.length === 2 && isCode(words[1]));
  const at = hasNoMatcher
    ? { place: site, paths: site.within, rest: words }
    : placed(site, directive);
  if (at === undefined) return;
  const [to = '', code = 'temporary'] = at.rest;
  const target = redirectTarget(to, site.scheme);
  const isExpressed = at.paths.every((path) => !path.startsWith('*')) && isCode(code);
  if (target === undefined || !isExpressed) {
    site.conversion.leave(directive, redirectNearest);
    return;
  }
  const status = codes[code] ?? Number(code);
  for (const path of at.paths) addRedirect(at.place, { path, ...target, status }, directive);
}

const forbiddenFrom = 400;
const gone = 410;

/** `respond [matcher] [text] [status]`. */
export function convertRespond(site: CaddySite, directive: Directive): void {
  const at = placed(site, directive);
  if (at === undefined) return;
  const [first = '', second] = at.rest;
  const isStatus = second === undefined && /^[1-5]\d\d$/.test(first);
  const text = isStatus ? '' : (lastOf(directive.block ?? [], 'body')?.words[0] ?? first);
  const status = Number(isStatus ? first : (second ?? '200'));
  const hides = site.hasFiles && status >= forbiddenFrom && status !== gone;
  const isExpressed = at.paths.every((path) => !path.startsWith('*')) && Number.isInteger(status);
  if (hides && (status === 403 || status === 404)) {
    addRefusal(at.place, { paths: at.paths, status }, directive);
    return;
  }
  if (hides || !isExpressed || /(?<!\$)\{[\w.]{1,100}\}/.test(text)) {
    const cure = hides
      ? 'an `[access.<name>]` section: files come before page rules'
      : 'a page rule with a fixed text';
    site.conversion.leave(directive, cure);
    return;
  }
  const type = 'text/plain; charset=utf-8';
  for (const path of at.paths) addAnswer(at.place, { path, status, text, type });
}
