import { type Directive, accessNearest, phpNearest, syntaxFailure } from '../directive.ts';
import { blockDepthMax } from '../limits.ts';
import type { SitePlace } from '../sections.ts';

/** Directives that need no counterpart. */
const unneeded: ReadonlySet<string> = new Set([
  ...['serveradmin', 'serversignature', 'servertokens', 'errorlog', 'loglevel', 'rewriteengine'],
  ...['rewritebase', 'expiresactive', 'addoutputfilterbytype', 'setoutputfilter', 'fileetag'],
  ...[
    'allowoverride',
    'adddefaultcharset',
    'addcharset',
    'addencoding',
    'defaulttype',
    'keepalive',
  ],
  ...['browsermatch', 'deflatecompressionlevel', 'proxyrequests', 'proxypassreverse', 'sslengine'],
  ...[
    'proxypassreversecookiepath',
    'proxypassreversecookiedomain',
    'sslprotocol',
    'sslciphersuite',
  ],
  ...['sslhonorcipherorder', 'sslsessiontickets', 'sslcompression', 'sslusestapling', 'protocols'],
  ...['sslproxyengine', 'traceenable', 'usecanonicalname', 'hostnamelookups', 'timeout', 'listen'],
  ...['keepalivetimeout', 'maxkeepaliverequests', 'serverroot', 'loadmodule', 'user', 'group'],
  ...['order', 'logformat', 'addlanguage', 'enablesendfile', 'enablemmap', 'namevirtualhost'],
  ...['sslsessioncache', 'sslopenssl', 'filterdeclare', 'filterprovider', 'filterchain', 'pidfile'],
  ...['brotlicompressionquality', 'addoutputfilter', 'proxyvia', 'proxyaddheaders', 'h2direct'],
]);

/** What comes nearest to a directive that cannot be expressed. */
const nearest: Readonly<Record<string, string>> = {
  authtype: `${accessNearest} with \`password_file\``,
  authname: `${accessNearest} with \`password_file\``,
  authuserfile: `${accessNearest} with \`password_file\``,
  authgroupfile: `${accessNearest} with \`roles\``,
  authbasicprovider: `${accessNearest} with \`password_file\``,
  require: `${accessNearest} with \`allow\`, \`users\` or \`roles\``,
  allow: `${accessNearest} with \`allow\``,
  deny: `${accessNearest} with \`deny\``,
  satisfy: `${accessNearest} with \`satisfy\``,
  sslverifyclient: `${accessNearest} with \`client_certificate\``,
  sslcacertificatefile: `${accessNearest} with \`client_certificate\``,
  sslcertificatechainfile: 'a `cert` that has the chain below the certificate',
  addhandler: phpNearest,
  sethandler: phpNearest,
  action: phpNearest,
  php_value: phpNearest,
  php_flag: phpNearest,
  php_admin_value: phpNearest,
  scriptalias: 'an application behind a [proxy.<name>]',
  wsgiscriptalias: 'an application behind a [proxy.<name>]',
  include: 'the lines of that file: convert it as well, or put them here',
  includeoptional: 'the lines of that file: convert it as well, or put them here',
  setenvif: 'a page rule with conditions',
  setenvifnocase: 'a page rule with conditions',
  setenv: 'nothing: applications have their own environment',
  '<if>': 'a page rule with conditions',
  '<else>': 'a page rule with conditions',
  '<limit>': '`methods` of a [proxy.<name>]',
  '<limitexcept>': '`methods` of a [proxy.<name>]',
  '<proxy>': '`source[]` of a [proxy.<name>]',
  '<locationmatch>': 'a [proxy.<name>] or [headers.<name>] with a `path`',
  '<directorymatch>': `${accessNearest} with a \`path\``,
  limitrequestbody: '`max_body` of a [proxy.<name>]',
  requestreadtimeout: 'nothing: Waymark has time limits of its own',
  aliasmatch: 'a [disk.<name>] of a folder',
  proxypassmatch: 'a [proxy.<name>] of a folder',
  rewritemap: 'one [redirect.<name>] for each line',
  contentdigest: 'nothing that this command knows',
  removehandler: 'nothing: Waymark runs no programs',
  remoteipheader: '`trust_proxy` of [server]',
};

/** A virtual host, or the folder of an `.htaccess`, on its way to sections of Waymark. */
export interface ApacheSite extends SitePlace {
  /** Its names, of which the first one is `ServerName`. */
  readonly hosts: readonly string[];
  readonly scheme: 'http' | 'https' | undefined;
  /**
   * The folder of an `.htaccess`, where paths of `RewriteRule` begin without a slash; undefined for
   * a virtual host.
   */
  readonly folder: string | undefined;
  readonly hasFiles: boolean;
}

/** Leaves a directive with what comes nearest, unless it needs no counterpart. */
export function leaveUnknown(
  { conversion }: Pick<ApacheSite, 'conversion'>,
  directive: Directive,
): void {
  const { name, words } = directive;
  if (unneeded.has(name)) return;
  const all = words.join(' ').toLowerCase();
  if (name === 'require' && all === 'all granted') return;
  if (name === 'allow' && all === 'from all') return;
  if (
    name === 'options' &&
    words.every((word) =>
      /^[+-]?(?:indexes|followsymlinks|symlinksifownermatch|multiviews|none)$/i.test(word),
    )
  )
    return;
  const known = Object.hasOwn(nearest, name) ? nearest[name] : undefined;
  conversion.leave(directive, known ?? 'nothing that this command knows');
}

type OpenSection = Directive & { readonly block: Directive[] };

/**
 * Parses a configuration of Apache: one directive a line, sections in `<…>`. The names of
 * directives are in lower case. `<IfModule>` and `<IfVersion>` are replaced by what they contain,
 * unless they ask that a module is missing. Throws `invalid` with a line.
 */
export function parseApache(text: string): readonly Directive[] {
  const root: Directive[] = [];
  const open: OpenSection[] = [];
  for (const { line, content } of logicalLines(text)) {
    const inner = open.at(-1);
    const [, end] = /^<\/\s*(\w+)\s*>$/.exec(content) ?? [];
    if (end !== undefined) {
      if (inner?.name !== `<${end.toLowerCase()}>`)
        throw syntaxFailure(line, `${content} without its start`);
      open.pop();
      const target = open.at(-1)?.block ?? root;
      if (!isCondition(inner)) target.push(inner);
      else if (!isAboutMissing(inner)) target.push(...inner.block);
      continue;
    }
    const isSection = content.startsWith('<') && content.endsWith('>');
    const [first = '', ...words] = wordsOf(isSection ? content.slice(1, -1) : content);
    const name = first.toLowerCase();
    if (isSection) {
      open.push({ name: `<${name}>`, words, line, text: content, block: [] });
      if (open.length > blockDepthMax) throw syntaxFailure(line, 'the sections nest too deep');
    } else (inner?.block ?? root).push({ name, words, line, text: content, block: undefined });
  }
  const last = open.at(-1);
  if (last !== undefined) throw syntaxFailure(last.line, `${last.text} has no end`);
  return root;
}

function isCondition({ name }: Directive): boolean {
  return ['<ifmodule>', '<ifversion>', '<ifdefine>'].includes(name);
}

function isAboutMissing({ name, words }: Directive): boolean {
  return name === '<ifdefine>' || words[0]?.startsWith('!') === true;
}

/** Lines without comments; a `\` at the end joins the next line. */
function* logicalLines(
  text: string,
): Generator<{ readonly line: number; readonly content: string }> {
  let joined = '';
  let start = 0;
  for (const [at, raw] of text.split(/\r\n|\n|\r/).entries()) {
    if (joined === '') start = at + 1;
    if (raw.endsWith('\\')) {
      joined += `${raw.slice(0, -1)} `;
      continue;
    }
    const content = (joined + raw).trim();
    joined = '';
    if (content !== '' && !content.startsWith('#')) yield { line: start, content };
  }
}

function wordsOf(text: string): readonly string[] {
  const words = text.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => {
    const quoted = double ?? single;
    return quoted === undefined ? (plain ?? '') : quoted.replaceAll(/\\(["'])/g, '$1');
  });
}
