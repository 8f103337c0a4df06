import { accessProblems } from '../../modules/access/section.ts';
import { headerRuleProblems } from '../../modules/headers/section.ts';
import { loginProblems } from '../../modules/login/section.ts';
import { logProblems } from '../../modules/logs/section.ts';
import { proxyProblems } from '../../modules/proxy/section.ts';
import { rateProblems } from '../../modules/rates/section.ts';
import { redirectProblems, rewriteProblems } from '../../modules/redirects/section.ts';
import { telemetryProblems } from '../../modules/telemetry/section.ts';
import { atOnce, type Steps } from '../fair/turns.ts';
import type { ListenAddress } from './addresses.ts';
import { lineWords } from './include.ts';
import type { ParsedIni, ParsedSection } from './parse.ts';
import { type LineProblem, quoted } from './problem.ts';
import type { SectionKind } from './schema.ts';
import { makeSecretsKey } from './secrets-keys.ts';
import { tlsSection } from './section.ts';

/**
 * The line that a problem of a key names: the line of the key, or of its section if the key is
 * absent. Undefined if the key is absent and its section has other problems, since the problem may
 * be a consequence of those.
 */
export function lineOf(
  { line, lines, isValid }: ParsedSection<SectionKind>,
  key: string,
): number | undefined {
  return lines.get(key)?.[0] ?? (isValid ? line : undefined);
}

/** Checks of keys that contradict each other. */
const checks: readonly ((ini: ParsedIni) => readonly LineProblem[])[] = [
  duplicateAddresses,
  incompleteCertificates,
  incompleteBinding,
  incompleteDns,
  incompleteOnDemand,
  tlsWithoutCertificate,
  certificatesWithoutTls,
  duplicateMounts,
  headersWithoutMount,
  proxyProblems,
  headerRuleProblems,
  accessProblems,
  logProblems,
  rateProblems,
  loginProblems,
  telemetryProblems,
  tokensWithoutKeys,
  tablesWithoutSchema,
  incompleteNode,
  wrongCluster,
];

/** Finds keys of an ini text that contradict each other, without reading other files. */
export function consistencyProblems(ini: ParsedIni): readonly LineProblem[] {
  return atOnce(consistencySteps(ini));
}

/** The steps of consistencyProblems: one for each check, and for each redirect. */
export function* consistencySteps(ini: ParsedIni): Steps<readonly LineProblem[]> {
  const problems: LineProblem[] = [];
  for (const check of checks) {
    yield;
    problems.push(...check(ini));
  }
  problems.push(...(yield* redirectProblems(ini)), ...(yield* rewriteProblems(ini)));
  return problems;
}

function duplicateAddresses({ server }: ParsedIni): readonly LineProblem[] {
  const lines = server.lines.get('listen') ?? [];
  const seen = new Map<string, number>();
  return server.values.listen.flatMap((listen, at) => {
    const line = lines[at] ?? server.line;
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

function incompleteCertificates({ tls, hosts }: ParsedIni): readonly LineProblem[] {
  return [tls, ...hosts].flatMap((section) => {
    const { cert, key } = section.values;
    const title = tlsSection(section.name === '' ? undefined : section.name);
    if (!section.isValid) return [];
    if ('acme' in section.values && section.values.acme) {
      const hasDns = (tls.values.acme_dns_hook ?? tls.values.acme_dns_server) !== undefined;
      return wrongAcme(section, title, hasDns);
    }
    if (section.name !== '' && cert === undefined && key === undefined) {
      const message = `${title} needs \`cert\` and \`key\`, or \`acme = yes\``;
      return [{ line: section.line, message }];
    }
    if ((cert === undefined) === (key === undefined)) return [];
    const [present, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key'];
    const line = lineOf(section, present) ?? section.line;
    return [{ line, message: `\`${present}\` needs \`${missing}\`, too: add it to ${title}` }];
  });
}

function wrongAcme(
  section: ParsedSection<SectionKind>,
  title: string,
  hasDns: boolean,
): readonly LineProblem[] {
  const line = lineOf(section, 'acme') ?? section.line;
  const given = ['cert', 'key'].find((key) => section.lines.has(key));
  if (given !== undefined) {
    const why = 'with `acme = yes` the server orders the certificate itself';
    return [{ line, message: `${why}: remove \`${given}\`` }];
  }
  if (hasDns || !section.name.startsWith('*')) return [];
  const message =
    `\`acme\` cannot get the wildcard certificate of ${title}: that needs a DNS challenge. Set ` +
    '`acme_dns_hook`, or `acme_dns_server` and `acme_dns_key`, in [tls]; or give each name a ' +
    'section of its own';
  return [{ line, message }];
}

function incompleteBinding({ tls }: ParsedIni): readonly LineProblem[] {
  const { acme_eab_kid: kid, acme_eab_key: key } = tls.values;
  if (!tls.isValid || (kid === undefined) === (key === undefined)) return [];
  const [present, missing] = kid === undefined ? ['key', 'kid'] : ['kid', 'key'];
  const line = lineOf(tls, `acme_eab_${present}`) ?? tls.line;
  return [{ line, message: `\`acme_eab_${present}\` needs \`acme_eab_${missing}\`, too` }];
}

function incompleteDns({ tls }: ParsedIni): readonly LineProblem[] {
  const { acme_dns_hook: hook, acme_dns_server: server, acme_dns_key: key } = tls.values;
  if (!tls.isValid) return [];
  const at = (name: string, message: string): readonly LineProblem[] => [
    { line: lineOf(tls, name) ?? tls.line, message },
  ];
  if (hook !== undefined && server !== undefined) {
    return at('acme_dns_server', 'use either `acme_dns_hook` or `acme_dns_server`');
  }
  if ((server === undefined) === (key === undefined)) return [];
  const [present, missing] = server === undefined ? ['key', 'server'] : ['server', 'key'];
  return at(`acme_dns_${present}`, `\`acme_dns_${present}\` needs \`acme_dns_${missing}\`, too`);
}

function incompleteOnDemand({ tls }: ParsedIni): readonly LineProblem[] {
  const { acme_on_demand: url, ...values } = tls.values;
  if (url !== undefined || !tls.isValid) return [];
  const isChanged = {
    acme_on_demand_rate: values.acme_on_demand_rate !== 10,
    acme_on_demand_max: values.acme_on_demand_max !== 1_000,
    acme_on_demand_wait: values.acme_on_demand_wait !== 8_000,
  };
  return Object.entries(isChanged).flatMap(([key, is]) => {
    const message = `\`${key}\` needs \`acme_on_demand\`, too: the URL that allows names`;
    return is ? [{ line: lineOf(tls, key) ?? tls.line, message }] : [];
  });
}

function tlsWithoutCertificate({ server, tls, hosts }: ParsedIni): readonly LineProblem[] {
  const at = server.values.listen.findIndex(isTls);
  if (at === -1 || [tls, ...hosts].some(namesCertificate)) return [];
  if (tls.values.acme_on_demand !== undefined) return [];
  const line = server.lines.get('listen')?.[at] ?? server.line;
  const message = 'TLS needs a certificate: set `cert` and `key`, or `acme = yes` for a host';
  return [{ line, message }];
}

function certificatesWithoutTls({ server, tls, hosts }: ParsedIni): readonly LineProblem[] {
  const named = [tls, ...hosts].find(({ values }) => {
    const isPair = values.cert !== undefined && values.key !== undefined;
    const isOnDemand = 'acme_on_demand' in values && values.acme_on_demand !== undefined;
    return isPair || isOnDemand || ('acme' in values && values.acme);
  });
  if (named === undefined || !server.isValid || server.values.listen.some(isTls)) return [];
  const set = ['cert', 'acme', 'acme_on_demand'].find((key) => named.lines.has(key));
  const line = lineOf(named, set ?? '') ?? named.line;
  const message = 'no `listen` of [server] uses TLS: add one, such as `listen[] = https://:443`';
  return [{ line, message }];
}

function isTls(listen: ListenAddress): boolean {
  return listen.kind === 'tcp' && listen.scheme === 'https';
}

function namesCertificate({ values }: ParsedSection<'tls' | 'tls.<host>'>): boolean {
  const isManaged = 'acme' in values && values.acme;
  return isManaged || values.cert !== undefined || values.key !== undefined;
}

function duplicateMounts({ disk, includedFiles }: ParsedIni): readonly LineProblem[] {
  const seen = new Map<string, ParsedSection<'disk.<name>'>>();
  return disk.flatMap((mount) => {
    const { origin, path } = mount.values;
    const earlier = seen.get(`${origin} ${path}`);
    const line = mount.lines.get('path')?.[0] ?? lineOf(mount, 'origin');
    if (earlier === undefined || line === undefined) {
      seen.set(`${origin} ${path}`, mount);
      return [];
    }
    const message = `[disk.${mount.name}] has the same origin and path as [disk.${earlier.name}]`;
    return [{ line, message: `${message}, in ${lineWords(earlier.line, line, includedFiles)}` }];
  });
}

function headersWithoutMount({ disk, headers }: ParsedIni): readonly LineProblem[] {
  const names = new Set(disk.map(({ name }) => name));
  return headers
    .filter(({ name }) => !names.has(name))
    .map(({ name, line }) => ({
      line,
      message: `[disk.${name}.headers] has no effect: there is no [disk.${name}]`,
    }));
}

function tokensWithoutKeys({ auth }: ParsedIni): readonly LineProblem[] {
  const { jwt_jwks, jwt_issuer, jwt_audience } = auth.values;
  if (jwt_jwks !== undefined || !auth.isValid) return [];
  return Object.entries({ jwt_issuer, jwt_audience }).flatMap(([key, value]) => {
    const message = `\`${key}\` needs \`jwt_jwks\`, too`;
    return value === undefined ? [] : [{ line: lineOf(auth, key) ?? auth.line, message }];
  });
}

function incompleteNode({ node }: ParsedIni): readonly LineProblem[] {
  const { role, central, key_file: keyFile, name } = node.values;
  if (!node.isValid) return [];
  const at = (key: string, message: string): readonly LineProblem[] => [
    { line: lineOf(node, key) ?? node.line, message },
  ];
  if (central === undefined) {
    if (role === 'replica') return at('role', '`role = replica` needs `central`, too');
    return keyFile === undefined ? [] : at('key_file', '`key_file` needs `central`, too');
  }
  if (role === 'all' || role === 'central') {
    return at('central', '`central` needs `role = replica` or `role = counter`');
  }
  if (keyFile === undefined) return at('central', '`central` needs `key_file`, too');
  return name === undefined ? at('central', '`central` needs `name`, too: that of the key') : [];
}

function wrongCluster({ cluster, node, hosts, tls }: ParsedIni): readonly LineProblem[] {
  const { values, isValid, line } = cluster;
  if (!isValid) return [];
  const at = (key: string, message: string): readonly LineProblem[] => [
    { line: lineOf(cluster, key) ?? line, message },
  ];
  if (values.servers.length === 0) {
    // `check` prints each key, also without a value.
    const others = ['credentials', 'user', 'password_file', 'ca', 'cert', 'key'] as const;
    const first = [...others, 'secrets_key_file' as const].find((key) => values[key] !== undefined);
    return first === undefined ? [] : at(first, `\`${first}\` needs \`servers\`, too`);
  }
  if (node.values.central !== undefined) {
    return at('servers', 'a node of a cluster has the log itself: remove `central` of [node]');
  }
  for (const [one, other] of [
    ['user', 'password_file'],
    ['cert', 'key'],
  ] as const) {
    if ((values[one] === undefined) === (values[other] === undefined)) continue;
    const [present, missing] = values[one] === undefined ? [other, one] : [one, other];
    return at(present, `\`${present}\` needs \`${missing}\`, too: add it to [cluster]`);
  }
  const onDemand = tls.values.acme_on_demand === undefined ? undefined : tls;
  const managed = hosts.find((host) => host.values.acme) ?? onDemand;
  if (managed !== undefined && values.secrets_key_file === undefined) {
    const why = 'the machines of a cluster share certificates with their private keys';
    const key = managed === tls ? 'acme_on_demand' : 'acme';
    const advice = `\`${key}\` needs \`secrets_key_file\` in [cluster], whose key encrypts them`;
    const message = `${why}, so ${advice}: ${makeSecretsKey}`;
    return [{ line: lineOf(managed, key) ?? managed.line, message }];
  }
  return values.credentials !== undefined && values.user !== undefined
    ? at('user', 'set either `credentials` or `user`, not both')
    : [];
}

function tablesWithoutSchema({ tables }: ParsedIni): readonly LineProblem[] {
  return tables
    .filter(({ values, isValid }) => isValid && (values.schema ?? values.host) === undefined)
    .map(({ name, line }) => ({
      line,
      message: `${quoted(`[table.${name}]`)} needs a \`schema\`, or a \`host\` that has it`,
    }));
}
