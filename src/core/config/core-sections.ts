import { resolve } from 'node:path';
import {
  basePath,
  cidr,
  isTls,
  listenAddress,
  listenText,
  origin,
  serverName,
} from './addresses.ts';
import { type Certificate, type Config, loopbackHosts } from './config.ts';
import { checkFile } from './files.ts';
import { hsts, hstsText } from './headers.ts';
import { includePattern } from './include.ts';
import { type FieldsOf, fileKey, flagKey, list, optional, repeated, single } from './ini-key.ts';
import { iniSection, type ParsedIni, type ParsedSection, problemOf } from './ini-section.ts';
import { connectionsMax, keyRateMax } from './limits.ts';
import type { LineProblem } from './problem.ts';
import { checkPair } from './references.ts';
import { anyText, scope, wholeNumber, wordOr } from './values.ts';

declare module './config.ts' {
  interface Config {
    readonly server: ServerConfig;
    readonly tls: TlsConfig;
    readonly auth: AuthConfig;
  }
  interface TlsConfig extends Omit<FieldsOf<typeof tlsKeys>, 'cert' | 'key'> {
    readonly certificates: readonly Certificate[];
  }
  // oxlint-disable-next-line typescript/no-empty-object-type -- other sections add members
  interface AuthConfig extends FieldsOf<typeof authKeys> {}
  /** One certificate of `[tls]` or `[tls.<host>]`, with absolute file names. */
  interface Certificate {
    /** Undefined for the default certificate. */
    readonly host: string | undefined;
    readonly certFile: string;
    readonly keyFile: string;
    /** PEM: the pair of the other workers, for one that starts while the files are invalid. */
    readonly inUse?: { readonly cert: string; readonly key: string };
  }
}

interface ServerConfig extends Omit<FieldsOf<typeof serverKeys>, 'base' | 'workers'> {
  /** Empty, or a canonical path without a final slash. */
  readonly base: string;
  /** The number of processes; `auto` is one for each core. */
  readonly workers: number;
}

const serverKeys = {
  listen: repeated(listenAddress, '127.0.0.1:8080', {
    write: listenText,
    about:
      'The addresses to listen on: `host:port`, `https://host:port` for TLS, or `unix:/path`. ' +
      'Several lines are `listen[]`.',
    example: '0.0.0.0:8080',
    restart: true,
  }),
  data: single(anyText, './data', {
    isPath: true,
    holds: 'the data folder',
    about: 'The folder of the database: page rules, their history, keys, events.',
    example: '/var/lib/waymark',
    restart: true,
  }),
  import: fileKey({
    holds: 'the page rules to import',
    checkPath: checkFile,
    about: 'An NDJSON file that the server imports once, while the data folder is empty.',
    example: 'demo.ndjson',
    restart: true,
  }),
  base: optional(basePath, {
    about: 'A prefix before `/svc1`, for a site that has pages of its own there.',
    example: '/waymark',
  }),
  public_url: optional(origin, {
    about: "The site's own origin, if a proxy in front of Waymark hides it.",
    example: 'https://www.example.com',
  }),
  console: single(wordOr('yes', wordOr('no', origin)), 'yes', {
    about:
      'Where the console is: at every origin (`yes`), nowhere (`no`), or at an origin of its own.',
    example: 'https://console.example.com',
    since: '0.2',
  }),
  trust_proxy: list(cidr, '', {
    about: 'Networks of the proxies whose Forwarded and X-Forwarded-* fields the server trusts.',
    example: '10.0.0.0/8',
  }),
  proxy_protocol: list(cidr, '', {
    about:
      'Networks of load balancers whose connections begin with a header of the PROXY protocol, ' +
      'version 1 or 2, that names the client. A connection from there without it is closed.',
    example: '10.0.0.0/8',
    since: '0.2',
  }),
  connections_per_address: single(wholeNumber(1, connectionsMax), '2000', {
    about:
      'How many connections one address may have at a time, in each process. Trusted proxies ' +
      'have no such limit.',
    example: '500',
  }),
  workers: single(wordOr('auto', wholeNumber(1, 256)), '1', {
    about:
      'How many processes share the ports and the database; `auto` is one for each core. Each ' +
      'counts limits separately.',
    example: 'auto',
    restart: true,
  }),
  include: list(includePattern, '', {
    about:
      'Files with more sections, for example one for each site; `*` stands for any text in the ' +
      'name of a file.',
    example: 'sites/*.ini',
    since: '0.2',
  }),
};

/** `[server]`. */
export const serverSection = iniSection({
  header: 'server',
  keys: serverKeys,
  place: 'server',
  since: '0.1',
  check: (_, ini) => duplicateAddresses(ini),
  settings: (fields, { folder, cores }) => ({
    ...fields,
    listen: fields.listen.map((one) =>
      one.kind === 'unix' ? { ...one, path: resolve(folder, one.path) } : one,
    ),
    base: fields.base ?? '',
    workers: fields.workers === 'auto' ? Math.max(1, cores) : fields.workers,
  }),
  // The written text has the sections of the included files.
  written: ({ server }) => [{ ...server, include: [] }],
  names({ server }) {
    const listening = server.listen.flatMap((where) => {
      if (where.kind === 'unix') return [];
      return [where.host, ...loopbackHosts].flatMap(
        (host) => URL.parse(`${where.scheme}://${host}:${where.port}`)?.origin ?? [],
      );
    });
    return {
      origins: [...listening, ...(server.publicUrl === undefined ? [] : [server.publicUrl])],
    };
  },
});

function duplicateAddresses(ini: ParsedIni): readonly LineProblem[] {
  const { line: first, lines: found, values } = ini.one(serverSection);
  const lines = found.get('listen') ?? [];
  const seen = new Map<string, number>();
  return values.listen.flatMap((listen, at) => {
    const line = lines[at] ?? first;
    const address = listen.kind === 'unix' ? listen.path : `${listen.host}:${listen.port}`;
    const earlier = seen.get(address);
    // Port 0 stands for any free port, so two of them do not collide.
    if (earlier !== undefined && !(listen.kind === 'tcp' && listen.port === 0)) {
      return [{ line, message: `line ${earlier} already has this address` }];
    }
    seen.set(address, line);
    return [];
  });
}

const tlsKeys = {
  cert: fileKey({
    about:
      'A PEM file with the certificate and its issuers, for clients that name no host or a host ' +
      'without a section.',
    example: '/etc/waymark/example.com.pem',
    restart: true,
  }),
  key: fileKey({
    holds: 'a private key',
    about: 'A PEM file with its private key, without a passphrase.',
    example: '/etc/waymark/example.com.key',
    restart: true,
  }),
  http_redirect: flagKey('yes', { about: 'Whether requests without TLS are redirected to https.' }),
  hsts: optional(hsts, {
    write: hstsText,
    about:
      'How long browsers use https only (Strict-Transport-Security). `subdomains` and `preload` ' +
      'may follow.',
    example: '365d subdomains',
  }),
};

/** `[tls]`, with the certificates of each `[tls.<host>]`. */
export const tlsDefaults = iniSection({
  header: 'tls',
  keys: tlsKeys,
  place: 'tls',
  since: '0.1',
  example: { lines: { cert: '/etc/waymark/example.com.pem', key: '/etc/waymark/example.com.key' } },
  check: (_, ini) => [
    ...incompleteCertificates(ini),
    ...tlsWithoutCertificate(ini),
    ...certificatesWithoutTls(ini),
  ],
  read: checkPair,
  settings({ cert, key, ...fields }, { ini, folder }) {
    const own = certificateOf({ name: '', values: { cert, key } }, folder);
    const others = ini.all(tlsHosts).flatMap((section) => certificateOf(section, folder));
    return { certificates: [...own, ...others], ...fields };
  },
  written({ tls }) {
    const pair = tls.certificates.find(({ host }) => host === undefined);
    return [{ ...tls, cert: pair?.certFile, key: pair?.keyFile }];
  },
  names: ({ tls }) => ({ hosts: tls.certificates.flatMap(({ host }) => host ?? []) }),
  warnings: ({ server, tls }) =>
    tls.hsts === undefined || server.listen.some(isTls)
      ? []
      : ['[tls] hsts has no effect: it is sent over TLS only, and no `listen` uses TLS.'],
  restartNeeded(before, after) {
    const [old, recent] = [certificates(before), certificates(after)];
    return [...new Set([...old.keys(), ...recent.keys()])].flatMap((host) => {
      const section = tlsSection(host);
      const [one, other] = [old.get(host), recent.get(host)];
      return [
        ...(one?.certFile === other?.certFile ? [] : [`${section} cert`]),
        ...(one?.keyFile === other?.keyFile ? [] : [`${section} key`]),
      ];
    });
  },
  afterReload: (before, after) => ({ ...after.tls, certificates: before.tls.certificates }),
});

const tlsHostKeys = {
  cert: fileKey({
    about: 'The certificate for this name; `[tls.*.example.com]` is for all names one label below.',
    example: '/etc/waymark/shop.pem',
    restart: true,
  }),
  key: fileKey({
    holds: 'a private key',
    about: 'Its private key.',
    example: '/etc/waymark/shop.key',
    restart: true,
  }),
};

/** `[tls.<host>]`. */
export const tlsHosts = iniSection({
  header: 'tls.<host>',
  keys: tlsHostKeys,
  since: '0.1',
  parseName: serverName,
  about: 'The certificate of one name.',
  example: {
    name: 'shop.example.com',
    lines: { cert: '/etc/waymark/shop.pem', key: '/etc/waymark/shop.key' },
  },
  read: checkPair,
  written: ({ tls }) =>
    tls.certificates.flatMap(({ host, certFile, keyFile }) =>
      host === undefined ? [] : [{ name: host, cert: certFile, key: keyFile }],
    ),
});

/** The header of the section with the certificate of a host, or with the default certificate. */
export function tlsSection(host: string | undefined): string {
  return host === undefined ? '[tls]' : `[tls.${host}]`;
}

type CertificateSection = Pick<ParsedSection<typeof tlsHostKeys>, 'name' | 'values'>;

function certificateOf(
  { name, values: { cert, key } }: CertificateSection,
  folder: string,
): readonly Certificate[] {
  if (cert === undefined || key === undefined) return [];
  const host = name === '' ? undefined : name;
  return [{ host, certFile: resolve(folder, cert), keyFile: resolve(folder, key) }];
}

function certificates({ tls }: Config) {
  return new Map(tls.certificates.map((certificate) => [certificate.host, certificate]));
}

/** The key of a section that brings a certificate in place of its files, if it does. */
function otherCertificate({ keys, values }: ParsedSection): string | undefined {
  return Object.keys(keys).find((name) => {
    const value: unknown = Reflect.get(values, name);
    return keys[name]?.bringsCertificate === true && value !== undefined && value !== false;
  });
}

function sectionsOf(ini: ParsedIni): readonly ParsedSection<typeof tlsHostKeys>[] {
  return [ini.one(tlsDefaults), ...ini.all(tlsHosts)];
}

function incompleteCertificates(ini: ParsedIni): readonly LineProblem[] {
  return sectionsOf(ini).flatMap((section) => {
    const { cert, key } = section.values;
    const title = tlsSection(section.name === '' ? undefined : section.name);
    if (!section.isValid || (section.name !== '' && otherCertificate(section))) return [];
    if (section.name !== '' && cert === undefined && key === undefined) {
      const message = `${title} needs \`cert\` and \`key\`, or \`acme = yes\``;
      return [{ line: section.line, message }];
    }
    if ((cert === undefined) === (key === undefined)) return [];
    const [present, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key'];
    const message = `\`${present}\` needs \`${missing}\`, too: add it to ${title}`;
    return [problemOf(section, present, message)];
  });
}

function tlsWithoutCertificate(ini: ParsedIni): readonly LineProblem[] {
  const { line, lines, values } = ini.one(serverSection);
  const at = values.listen.findIndex(isTls);
  const isNamed = sectionsOf(ini).some((section) => {
    return (section.values.cert ?? section.values.key ?? otherCertificate(section)) !== undefined;
  });
  if (at === -1 || isNamed) return [];
  const message = 'TLS needs a certificate: set `cert` and `key`, or `acme = yes` for a host';
  return [{ line: lines.get('listen')?.[at] ?? line, message }];
}

function certificatesWithoutTls(ini: ParsedIni): readonly LineProblem[] {
  const server = ini.one(serverSection);
  const named = sectionsOf(ini).find((section) => {
    const { cert, key } = section.values;
    return (cert !== undefined && key !== undefined) || otherCertificate(section) !== undefined;
  });
  if (named === undefined || !server.isValid || server.values.listen.some(isTls)) return [];
  const set = named.lines.has('cert') ? 'cert' : (otherCertificate(named) ?? '');
  const message = 'no `listen` of [server] uses TLS: add one, such as `listen[] = https://:443`';
  return [problemOf(named, set, message)];
}

const authKeys = {
  anonymous: list(scope, 'render', {
    about: 'The scopes of a caller without a key. Visitors need `render` only.',
    example: 'render',
  }),
  key_rate: optional(wholeNumber(1, keyRateMax), {
    about: 'Operations a second for a key without a rate of its own; by default any number.',
    example: '1000',
  }),
  cors_origins: list(wordOr('*', origin), '*', {
    about:
      'Origins whose pages may call the operations that the anonymous scopes permit. For ' +
      '`get_content` from within a private network, an origin has to be named.',
    example: 'https://app.example.com',
  }),
};

/** `[auth]`. */
export const authSection = iniSection({
  header: 'auth',
  keys: authKeys,
  place: 'auth',
  since: '0.1',
  settings: (fields) => ({
    ...fields,
    anonymous: [...new Set(fields.anonymous)],
    corsOrigins: [...new Set(fields.corsOrigins)],
  }),
});
