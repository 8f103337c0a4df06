import type { Listen } from './addresses.ts';
import type { ParsedIni, ParsedSection } from './parse.ts';
import { shown, type LineProblem } from './problem.ts';
import type { SectionKind } from './schema.ts';
import { tlsSection } from './section.ts';

/**
 * The line to blame for a key: its own, or its section's where it is absent; undefined where the
 * key is absent from a section with other problems, of which this may be one more consequence.
 */
export function lineOf(
  { line, lines, sound }: ParsedSection<SectionKind>,
  key: string,
): number | undefined {
  return lines.get(key)?.[0] ?? (sound ? line : undefined);
}

/** What does not fit together in an ini text, as far as it shows without looking at other files. */
export function findInconsistencies(ini: ParsedIni): readonly LineProblem[] {
  return [
    ...listenTwice(ini),
    ...halfCertificates(ini),
    ...halfBinding(ini),
    ...tlsWithoutCertificate(ini),
    ...certificatesWithoutTls(ini),
    ...mountsTwice(ini),
    ...headersWithoutMount(ini),
    ...tokensWithoutKeys(ini),
    ...tablesWithoutSchema(ini),
  ];
}

function listenTwice({ server }: ParsedIni): readonly LineProblem[] {
  const lines = server.lines.get('listen') ?? [];
  const seen = new Map<string, number>();
  return server.values.listen.flatMap((listen, at) => {
    const line = lines[at] ?? server.line;
    const address = listen.kind === 'unix' ? listen.path : `${listen.host}:${listen.port}`;
    const earlier = seen.get(address);
    // Port 0 is another free port each time.
    if (earlier !== undefined && !(listen.kind === 'tcp' && listen.port === 0)) {
      return [{ line, message: `this address is there already, in line ${earlier}` }];
    }
    seen.set(address, line);
    return [];
  });
}

function halfCertificates({ tls, hosts }: ParsedIni): readonly LineProblem[] {
  return [tls, ...hosts].flatMap((section) => {
    const { cert, key } = section.values;
    const title = tlsSection(section.name === '' ? undefined : section.name);
    if (!section.sound) return [];
    if ('acme' in section.values && section.values.acme) return wrongAcme(section, title);
    if (section.name !== '' && cert === undefined && key === undefined) {
      const message = `${title} needs \`cert\` and \`key\`, or \`acme = yes\``;
      return [{ line: section.line, message }];
    }
    if ((cert === undefined) === (key === undefined)) return [];
    const [there, missing] = cert === undefined ? ['key', 'cert'] : ['cert', 'key'];
    const line = lineOf(section, there) ?? section.line;
    return [{ line, message: `\`${there}\` needs a \`${missing}\` beside it in ${title}` }];
  });
}

function wrongAcme(section: ParsedSection<SectionKind>, title: string): readonly LineProblem[] {
  const line = lineOf(section, 'acme') ?? section.line;
  const given = ['cert', 'key'].find((key) => section.lines.has(key));
  if (given !== undefined) {
    return [{ line, message: `\`acme\` gets the certificate itself: leave out \`${given}\`` }];
  }
  if (!section.name.startsWith('*')) return [];
  const message =
    `\`acme\` gets no wildcard certificates, as ${title} would need one: they take a DNS ` +
    'challenge. Give each name a section of its own, or name `cert` and `key`';
  return [{ line, message }];
}

function halfBinding({ tls }: ParsedIni): readonly LineProblem[] {
  const { acme_eab_kid: kid, acme_eab_key: key } = tls.values;
  if (!tls.sound || (kid === undefined) === (key === undefined)) return [];
  const [there, missing] = kid === undefined ? ['key', 'kid'] : ['kid', 'key'];
  const line = lineOf(tls, `acme_eab_${there}`) ?? tls.line;
  return [{ line, message: `\`acme_eab_${there}\` needs an \`acme_eab_${missing}\` beside it` }];
}

function tlsWithoutCertificate({ server, tls, hosts }: ParsedIni): readonly LineProblem[] {
  const at = server.values.listen.findIndex(isTls);
  if (at === -1 || [tls, ...hosts].some(namesCertificate)) return [];
  const line = server.lines.get('listen')?.[at] ?? server.line;
  const message =
    'nothing can be served over TLS without a `cert` and a `key`, or a host with `acme = yes`';
  return [{ line, message }];
}

function certificatesWithoutTls({ server, tls, hosts }: ParsedIni): readonly LineProblem[] {
  const named = [tls, ...hosts].find(({ values }) => {
    const isPair = values.cert !== undefined && values.key !== undefined;
    return isPair || ('acme' in values && values.acme);
  });
  if (named === undefined || !server.sound || server.values.listen.some(isTls)) return [];
  const line = named.lines.get('cert')?.[0] ?? lineOf(named, 'acme') ?? named.line;
  const message = 'no `listen` of [server] is for TLS: add one such as `listen[] = https://:443`';
  return [{ line, message }];
}

function isTls(listen: Listen): boolean {
  return listen.kind === 'tcp' && listen.scheme === 'https';
}

function namesCertificate({ values }: ParsedSection<'tls' | 'tls.<host>'>): boolean {
  const isManaged = 'acme' in values && values.acme;
  return isManaged || values.cert !== undefined || values.key !== undefined;
}

function mountsTwice({ disk }: ParsedIni): readonly LineProblem[] {
  const seen = new Map<string, ParsedSection<'disk.<name>'>>();
  return disk.flatMap((mount) => {
    const { origin, path } = mount.values;
    const earlier = seen.get(`${origin} ${path}`);
    const line = mount.lines.get('path')?.[0] ?? lineOf(mount, 'origin');
    if (earlier === undefined || line === undefined) {
      seen.set(`${origin} ${path}`, mount);
      return [];
    }
    const message = `[disk.${mount.name}] has the origin and path of [disk.${earlier.name}]`;
    return [{ line, message: `${message}, in line ${earlier.line}` }];
  });
}

function headersWithoutMount({ disk, headers }: ParsedIni): readonly LineProblem[] {
  const names = new Set(disk.map(({ name }) => name));
  return headers
    .filter(({ name }) => !names.has(name))
    .map(({ name, line }) => ({
      line,
      message: `[disk.${name}.headers] without a [disk.${name}]`,
    }));
}

function tokensWithoutKeys({ auth }: ParsedIni): readonly LineProblem[] {
  const { jwt_jwks, jwt_issuer, jwt_audience } = auth.values;
  if (jwt_jwks !== undefined || !auth.sound) return [];
  return Object.entries({ jwt_issuer, jwt_audience }).flatMap(([key, value]) => {
    const message = `\`${key}\` needs a \`jwt_jwks\` beside it`;
    return value === undefined ? [] : [{ line: lineOf(auth, key) ?? auth.line, message }];
  });
}

function tablesWithoutSchema({ tables }: ParsedIni): readonly LineProblem[] {
  return tables
    .filter(({ values, sound }) => sound && values.schema === undefined)
    .map(({ name, line }) => ({ line, message: `${shown(`[table.${name}]`)} needs a \`schema\`` }));
}
