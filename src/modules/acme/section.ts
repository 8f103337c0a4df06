import {
  cidr,
  httpsUrl,
  mailAddress,
  nameServer,
  nameServerText,
  questionUrl,
} from '../../core/config/addresses.ts';
import { checkProgram, readText } from '../../core/config/files.ts';
import {
  type FieldsOf,
  fileKey,
  flagKey,
  list,
  optional,
  single,
} from '../../core/config/ini-key.ts';
import {
  iniSection,
  type ParsedIni,
  type ParsedSection,
  problemOf,
} from '../../core/config/ini-section.ts';
import { readCaCertificates } from '../../core/config/key-pair.ts';
import { certificateBytesMax } from '../../core/config/limits.ts';
import type { LineProblem } from '../../core/config/problem.ts';
import {
  anyText,
  duration,
  type Refused,
  type ValueParser,
  wholeNumber,
} from '../../core/config/values.ts';
import { readTsigKey } from './dns/tsig-key.ts';

declare module '../../core/config/config.ts' {
  interface TlsConfig {
    /** For certificates from an ACME server (RFC 8555). */
    readonly acme: AcmeConfig;
  }
  /** The keys of `[tls]` that begin with `acme_`, and the hosts whose section says `acme = yes`. */
  interface AcmeConfig extends FieldsOf<typeof acmeKeys> {
    /** In lower case; no wildcards. */
    readonly hosts: readonly string[];
  }
}

const acmeProfile: ValueParser<string> = (value) =>
  /^[\w.-]{1,64}$/.test(value)
    ? { value }
    : { refused: 'write the name of a profile, such as `shortlived`' };

/** Reads the MAC key of an external account binding (RFC 8555 §7.3.4): base64url or base64. */
export async function readEabKey(file: string): Promise<{ readonly key: string } | Refused> {
  const read = await readText(file, { bytesMax: certificateBytesMax });
  if ('refused' in read) return { refused: read.refused };
  const key = read.text.trim();
  return /^[\w+/-]{16,}={0,2}$/.test(key)
    ? { key }
    : { refused: 'does not contain a key in base64url' };
}

const acmeKeys = {
  acme_directory: single(httpsUrl, 'https://acme-v02.api.letsencrypt.org/directory', {
    field: 'directory',
    about: "The address of the ACME server's directory; by default that of Let's Encrypt.",
    example: 'https://ca.example.com/acme/directory',
  }),
  acme_email: optional(mailAddress, {
    field: 'email',
    about: 'An address for warnings of the authority.',
    example: 'admin@example.com',
  }),
  acme_eab_kid: optional(anyText, {
    field: 'eabKid',
    about: 'The identifier of the customer that the account belongs to (External Account Binding).',
    example: 'customer-7',
    beside: { acme_eab_key: '/etc/waymark/eab.key' },
  }),
  acme_eab_key: fileKey({
    checkPath: readEabKey,
    field: 'eabKeyFile',
    holds: 'a private key',
    about: 'A file with the key of that customer, in base64url.',
    example: '/etc/waymark/eab.key',
    beside: { acme_eab_kid: 'customer-7' },
  }),
  acme_profile: optional(acmeProfile, {
    field: 'profile',
    about:
      'The kind of certificates, if the authority offers several (ACME profiles): `shortlived` ' +
      "of Let's Encrypt is valid for six days.",
    example: 'shortlived',
    since: '0.2',
  }),
  acme_ca: fileKey({
    checkPath: readCaCertificates,
    field: 'caFile',
    about: 'A PEM file with root certificates for an ACME server in your own network.',
    example: '/etc/waymark/ca.pem',
  }),
  acme_allow_private: list(cidr, '', {
    field: 'allowPrivate',
    about: 'Private networks that the ACME server may be in.',
    example: '10.0.0.0/8',
  }),
  acme_dns_hook: fileKey({
    checkPath: checkProgram,
    field: 'dnsHook',
    holds: 'the program that changes DNS records',
    about:
      'A program that proves control of the names by TXT records (dns-01), also of wildcards. It ' +
      'gets `present` or `cleanup`, the name and the value as arguments, and as `ACME_ACTION`, ' +
      '`ACME_NAME` and `ACME_VALUE`, and has 60 s.',
    example: '/usr/local/bin/dns-hook',
    since: '0.2',
  }),
  acme_dns_server: optional(nameServer, {
    field: 'dnsServer',
    write: nameServerText,
    about:
      'The primary name server, which takes changes of these records instead (RFC 2136). It may ' +
      'be in a private network.',
    example: '192.0.2.1:53',
    since: '0.2',
    beside: { acme_dns_key: '/etc/waymark/tsig.key' },
  }),
  acme_dns_key: fileKey({
    checkPath: readTsigKey,
    field: 'dnsKeyFile',
    holds: 'a private key',
    about:
      'A file with the key that signs the changes (TSIG), as `tsig-keygen -a hmac-sha256 ' +
      'waymark` writes it.',
    example: '/etc/waymark/tsig.key',
    since: '0.2',
    beside: { acme_dns_server: '192.0.2.1:53' },
  }),
  acme_on_demand: optional(questionUrl, {
    bringsCertificate: true,
    field: 'onDemandUrl',
    about:
      'A URL that says for which other names certificates are obtained when clients ask for ' +
      'them. It gets the name as `?domain=` and answers 200 for a name that may have one.',
    example: 'http://127.0.0.1:3000/may-have-certificate',
    since: '0.3',
  }),
  acme_on_demand_rate: single(wholeNumber(1, 600), '10', {
    field: 'onDemandRate',
    about: 'The most orders of such certificates in a minute.',
    example: '3',
    since: '0.3',
    beside: { acme_on_demand: 'http://127.0.0.1:3000/may-have-certificate' },
  }),
  acme_on_demand_max: single(wholeNumber(1, 100_000), '1000', {
    field: 'onDemandMax',
    about: 'The most such names. Beyond it, the least recently used ones are dropped.',
    example: '200',
    since: '0.3',
    beside: { acme_on_demand: 'http://127.0.0.1:3000/may-have-certificate' },
  }),
  acme_on_demand_wait: single(duration('0s', '9s'), '8s', {
    field: 'onDemandWaitMs',
    about: 'How long a handshake waits for such a certificate. It arrives also after that.',
    example: '5s',
    since: '0.3',
    beside: { acme_on_demand: 'http://127.0.0.1:3000/may-have-certificate' },
  }),
  acme_dns_wait: single(duration('0s', '120s'), '10s', {
    field: 'dnsWaitMs',
    about: 'How long the server waits until all name servers have the record.',
    example: '60s',
    since: '0.2',
  }),
};

/** The keys of `[tls]` for certificates from an ACME server. */
export const acmeSection = iniSection({
  header: 'tls',
  keys: acmeKeys,
  place: 'tls.acme',
  since: '0.1',
  check: ([tls], ini) =>
    tls?.isValid === true
      ? [
          ...incompleteBinding(tls),
          ...incompleteDns(tls),
          ...incompleteOnDemand(tls),
          ...wrongHosts(tls, ini),
        ]
      : [],
  settings: (fields, { ini }) => ({
    hosts: ini.all(acmeHostSection).flatMap(({ name, values }) => (values.acme ? name : [])),
    ...fields,
  }),
  names: ({ tls }) => ({ hosts: tls.acme.hosts }),
  // A host with a certificate from an ACME server keeps it until a restart uses its new files.
  afterReload({ tls: before }, { tls: after }) {
    const waiting = before.acme.hosts.filter((host) =>
      after.certificates.some((certificate) => certificate.host === host),
    );
    return { ...after.acme, hosts: [...after.acme.hosts, ...waiting] };
  },
});

const acmeHostKeys = {
  acme: flagKey('no', {
    bringsCertificate: true,
    about: 'Whether the server orders and renews the certificate, instead of `cert` and `key`.',
    beside: { cert: '', key: '' },
  }),
};

/** The key of `[tls.<host>]` for a certificate from an ACME server. */
export const acmeHostSection = iniSection({
  header: 'tls.<host>',
  keys: acmeHostKeys,
  since: '0.1',
  written: ({ tls }) =>
    tls.acme.hosts.map((name) => ({ name, cert: undefined, key: undefined, acme: true })),
});

type ParsedTls = ParsedSection<typeof acmeKeys>;

function incompleteBinding(tls: ParsedTls): readonly LineProblem[] {
  const { acme_eab_kid: kid, acme_eab_key: key } = tls.values;
  if ((kid === undefined) === (key === undefined)) return [];
  const [present, missing] = kid === undefined ? ['key', 'kid'] : ['kid', 'key'];
  const message = `\`acme_eab_${present}\` needs \`acme_eab_${missing}\`, too`;
  return [problemOf(tls, `acme_eab_${present}`, message)];
}

function incompleteDns(tls: ParsedTls): readonly LineProblem[] {
  const { acme_dns_hook: hook, acme_dns_server: server, acme_dns_key: key } = tls.values;
  if (hook !== undefined && server !== undefined) {
    const message = 'use either `acme_dns_hook` or `acme_dns_server`';
    return [problemOf(tls, 'acme_dns_server', message)];
  }
  if ((server === undefined) === (key === undefined)) return [];
  const [present, missing] = server === undefined ? ['key', 'server'] : ['server', 'key'];
  const message = `\`acme_dns_${present}\` needs \`acme_dns_${missing}\`, too`;
  return [problemOf(tls, `acme_dns_${present}`, message)];
}

function incompleteOnDemand(tls: ParsedTls): readonly LineProblem[] {
  const { acme_on_demand: url, ...values } = tls.values;
  if (url !== undefined) return [];
  const isChanged = {
    acme_on_demand_rate: values.acme_on_demand_rate !== 10,
    acme_on_demand_max: values.acme_on_demand_max !== 1_000,
    acme_on_demand_wait: values.acme_on_demand_wait !== 8_000,
  };
  return Object.entries(isChanged).flatMap(([key, is]) => {
    const message = `\`${key}\` needs \`acme_on_demand\`, too: the URL that allows names`;
    return is ? [problemOf(tls, key, message)] : [];
  });
}

function wrongHosts(tls: ParsedTls, ini: ParsedIni): readonly LineProblem[] {
  const hasDns = (tls.values.acme_dns_hook ?? tls.values.acme_dns_server) !== undefined;
  return ini.all(acmeHostSection).flatMap((section) => {
    if (!section.isValid || !section.values.acme) return [];
    const given = ['cert', 'key'].find((key) => section.lines.has(key));
    if (given !== undefined) {
      const why = 'with `acme = yes` the server orders the certificate itself';
      return [problemOf(section, 'acme', `${why}: remove \`${given}\``)];
    }
    if (hasDns || !section.name.startsWith('*')) return [];
    const message =
      `\`acme\` cannot get the wildcard certificate of [tls.${section.name}]: that needs a DNS ` +
      'challenge. Set ' +
      '`acme_dns_hook`, or `acme_dns_server` and `acme_dns_key`, in [tls]; or give each name a ' +
      'section of its own';
    return [problemOf(section, 'acme', message)];
  });
}
