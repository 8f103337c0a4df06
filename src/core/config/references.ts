import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { readTsigKey } from '../../modules/acme/dns/tsig-key.ts';
import {
  type MountFiles,
  readMountFiles,
  readRedirectFile,
} from '../../modules/redirects/mount-files.ts';
import { type JsonObject, isJsonObject, nestsDeeper } from '../values/json/json.ts';
import { jsonDepthMax } from '../values/limits.ts';
import { MIB } from '../values/units.ts';
import { isUrl } from './addresses.ts';
import type { TableConfig } from './config.ts';
import { lineOf } from './consistency.ts';
import {
  checkFile,
  checkFolder,
  checkMaxMindFile,
  checkProgram,
  checkSymlinks,
  readText,
} from './files.ts';
import type { HeldFile } from './ini-key.ts';
import { readCaCertificates, readEabKey, readKeyPair } from './key-pair.ts';
import { jwksBytesMax } from './limits.ts';
import type { ParsedIni, ParsedSection } from './parse.ts';
import { type LineProblem, quoted } from './problem.ts';
import type { SectionKind } from './schema.ts';
import { readLinkKeys, readSecretsKeys } from './secrets-keys.ts';
import type { Refused } from './values.ts';

const schemaBytesMax = MIB;

/** The result of reading the files that an ini text names. */
interface References {
  /** The valid definitions of tables by their names. */
  readonly definitions: ReadonlyMap<string, TableConfig['definition']>;
  /** The valid schemas of event types by their names. */
  readonly eventSchemas: ReadonlyMap<string, JsonObject>;
  /** The files beside those of each mount, by the name of the mount. */
  readonly mountFiles: ReadonlyMap<string, MountFiles>;
  /** The texts of the files of redirects, by the name of their section. */
  readonly redirectTexts: ReadonlyMap<string, string>;
  readonly problems: readonly LineProblem[];
}

/** Checks every file and folder that an ini text names; `folder` is the base of relative paths. */
export async function checkReferences(
  ini: ParsedIni,
  { folder }: { readonly folder: string },
): Promise<References> {
  const { server, tls, hosts, auth, geo, log, disk, tables, node, cluster, redirects, access } =
    ini;
  const { eventTypes } = ini;
  const jwks = auth.values.jwt_jwks;
  const definitions = new Map<string, TableConfig['definition']>();
  const eventSchemas = new Map<string, JsonObject>();
  const mountFiles = new Map<string, MountFiles>();
  const redirectTexts = new Map<string, string>();
  const found = await Promise.all([
    checkImport(server, folder),
    ...[tls, ...hosts].map((section) => checkKeyPair(section, folder)),
    checkAuthorities(tls, folder),
    checkBindingKey(tls, folder),
    checkDnsFiles(tls, folder),
    ...disk.map(async (mount) => {
      mountFiles.set(mount.name, await readMountFiles(mount, folder));
      return checkMount(mount, folder);
    }),
    ...redirects.map(async (redirect) => {
      if (redirect.values.file === undefined) return [];
      const read = await readRedirectFile(redirect, folder);
      if ('text' in read) redirectTexts.set(redirect.name, read.text);
      return 'problems' in read ? read.problems : [];
    }),
    jwks === undefined || isUrl(jwks) ? [] : checkKeys(auth, jwks, folder),
    ...tables.map(async (table) => {
      const read = await readTable(table, folder);
      if ('definition' in read) definitions.set(table.name, read.definition);
      return 'problems' in read ? read.problems : [];
    }),
    ...eventTypes.map(async (type) => {
      const read = await readEventSchema(type, folder);
      if ('schema' in read) eventSchemas.set(type.name, read.schema);
      return 'problems' in read ? read.problems : [];
    }),
    checkDatabase(geo, folder),
    ...access.map((rule) => checkPasswords(rule, folder)),
    ...access.map((rule) => checkLinkKeys(rule, folder)),
    ...access.map((rule) => checkNetworks(rule, folder)),
    ...access.map((rule) => checkClientAuthorities(rule, folder)),
    checkLogFolder(log, folder),
    checkNodeKey(node, folder),
    checkClusterFiles(cluster, folder),
  ]);
  return { definitions, eventSchemas, mountFiles, redirectTexts, problems: found.flat() };
}

/** Reads the definition of a table, with the file of its schema. */
async function readTable(
  section: ParsedSection<'table.<name>'>,
  folder: string,
): Promise<
  { readonly definition: TableConfig['definition'] } | { readonly problems: readonly LineProblem[] }
> {
  const { schema: file, ...values } = section.values;
  const schema =
    file === undefined
      ? undefined
      : await readJson(resolve(folder, file), { bytesMax: schemaBytesMax });
  if (file !== undefined && schema !== undefined && 'refused' in schema) {
    return { problems: problemAt(section, { key: 'schema', file, refused: schema.refused }) };
  }
  // Another check reports a section without both.
  if (schema === undefined && values.host === undefined) return { problems: [] };
  // Loading the validator takes 30 ms, which a configuration without tables need not spend.
  const { parseDefinition } = await import('../../modules/tables/definition.ts');
  const object = schema !== undefined && 'object' in schema ? schema.object : undefined;
  const given = Object.entries({ ...values, schema: object }).filter(
    ([, value]) => value !== undefined && !(Array.isArray(value) && value.length === 0),
  );
  const fields = { ...Object.fromEntries(given), name: section.name } as JsonObject;
  const parsed = parseDefinition(fields);
  if ('definition' in parsed) return { definition: parsed.definition };
  const problems = parsed.mistakes.flatMap(({ field, message }): readonly LineProblem[] => {
    const line = lineOf(section, field);
    const where = `[table.${section.name}]`;
    const named = field === 'schema' && file !== undefined ? ` in ${quoted(file)}` : '';
    return line === undefined ? [] : [{ line, message: `${where}${named}: ${message}` }];
  });
  return { problems };
}

/** Reads the schema of an event type. */
async function readEventSchema(
  section: ParsedSection<'event.<name>'>,
  folder: string,
): Promise<{ readonly schema: JsonObject } | { readonly problems: readonly LineProblem[] }> {
  const { name, line, values } = section;
  const { schema: file } = values;
  const at = (message: string): { readonly problems: readonly LineProblem[] } => {
    return { problems: [{ line: lineOf(section, 'schema') ?? line, message }] };
  };
  const read =
    file === undefined
      ? { object: { type: 'object' } }
      : await readJson(resolve(folder, file), { bytesMax: schemaBytesMax });
  if ('refused' in read) {
    return { problems: problemAt(section, { key: 'schema', file: file ?? '', ...read }) };
  }
  const { eventTypeMistake } = await import('../../modules/tables/definition.ts');
  const mistake = eventTypeMistake(name, read.object);
  if (mistake === undefined) return { schema: read.object };
  return at(`[event.${name}]${file === undefined ? '' : ` in ${quoted(file)}`}: ${mistake}`);
}

async function checkImport(
  server: ParsedSection<'server'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { import: file } = server.values;
  if (file === undefined) return [];
  const refused = await checkFile(resolve(folder, file));
  return refused === undefined ? [] : problemAt(server, { key: 'import', file, ...refused });
}

/** The server creates the file of the access log, but not its folder. */
async function checkLogFolder(
  log: ParsedSection<'log'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { file } = log.values;
  if (file === undefined) return [];
  const refused = await checkFolder(dirname(resolve(folder, file)));
  if (refused === undefined) return [];
  return problemAt(log, { key: 'file', file, refused: `is in a folder that ${refused.refused}` });
}

async function checkNodeKey(
  node: ParsedSection<'node'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { key_file: file } = node.values;
  if (file === undefined) return [];
  const refused = await checkFile(resolve(folder, file));
  return refused === undefined ? [] : problemAt(node, { key: 'key_file', file, ...refused });
}

async function checkClusterFiles(
  cluster: ParsedSection<'cluster'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { ca, cert, key, secrets_key_file: secrets } = cluster.values;
  const problems: LineProblem[] = [];
  for (const name of ['credentials', 'password_file'] as const) {
    const file = cluster.values[name];
    const refused = file === undefined ? undefined : await checkFile(resolve(folder, file));
    if (file !== undefined && refused !== undefined) {
      problems.push(...problemAt(cluster, { key: name, file, ...refused }));
    }
  }
  if (ca !== undefined) {
    const read = await readCaCertificates(resolve(folder, ca));
    if ('refused' in read) problems.push(...problemAt(cluster, { key: 'ca', file: ca, ...read }));
  }
  if (secrets !== undefined) {
    const read = await readSecretsKeys(resolve(folder, secrets));
    const named = { key: 'secrets_key_file', file: secrets };
    if ('refused' in read) problems.push(...problemAt(cluster, { ...named, ...read }));
  }
  if (cert !== undefined && key !== undefined) {
    const files = { cert, key };
    const pair = { certFile: resolve(folder, cert), keyFile: resolve(folder, key) };
    const read = await readKeyPair(pair);
    if ('refused' in read) {
      problems.push(...problemAt(cluster, { ...read, file: files[read.key] }));
    }
  }
  return problems;
}

async function checkKeyPair(
  section: ParsedSection<'tls' | 'tls.<host>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { cert, key } = section.values;
  if (cert === undefined || key === undefined) return [];
  const files = { cert, key };
  const read = await readKeyPair({
    certFile: resolve(folder, cert),
    keyFile: resolve(folder, key),
  });
  return 'refused' in read ? problemAt(section, { ...read, file: files[read.key] }) : [];
}

/** A JWK Set (RFC 7517 §5) is an object with an array `keys`. */
async function checkKeys(
  auth: ParsedSection<'auth'>,
  file: string,
  folder: string,
): Promise<readonly LineProblem[]> {
  const read = await readJson(resolve(folder, file), { bytesMax: jwksBytesMax });
  const refused = 'refused' in read ? read : Array.isArray(read.object.keys) ? undefined : noKeys;
  return refused === undefined ? [] : problemAt(auth, { key: 'jwt_jwks', file, ...refused });
}

const noKeys: Refused = { refused: 'is not a JWK Set: it has no array `keys`' };

async function checkDatabase(
  geo: ParsedSection<'geo'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { database: file } = geo.values;
  if (file === undefined) return [];
  const path = resolve(folder, file);
  const refused = (await checkFile(path)) ?? (await checkMaxMindFile(path));
  return refused === undefined ? [] : problemAt(geo, { key: 'database', file, ...refused });
}

/** The server names the broken lines of the file itself: each refuses one user only. */
async function checkPasswords(
  rule: ParsedSection<'access.<name>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { password_file: file } = rule.values;
  if (file === undefined) return [];
  const refused = await checkFile(resolve(folder, file));
  return refused === undefined ? [] : problemAt(rule, { key: 'password_file', file, ...refused });
}

/** The server names the broken lines of the file itself: the other lines count. */
async function checkNetworks(
  rule: ParsedSection<'access.<name>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { deny_file: file } = rule.values;
  if (file === undefined) return [];
  const refused = await checkFile(resolve(folder, file));
  return refused === undefined ? [] : problemAt(rule, { key: 'deny_file', file, ...refused });
}

async function checkLinkKeys(
  rule: ParsedSection<'access.<name>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { link_key_file: file } = rule.values;
  if (file === undefined) return [];
  const read = await readLinkKeys(resolve(folder, file));
  return 'refused' in read ? problemAt(rule, { key: 'link_key_file', file, ...read }) : [];
}

async function checkClientAuthorities(
  rule: ParsedSection<'access.<name>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { client_certificate: file } = rule.values;
  if (file === undefined) return [];
  const read = await readCaCertificates(resolve(folder, file));
  return 'refused' in read ? problemAt(rule, { key: 'client_certificate', file, ...read }) : [];
}

async function checkAuthorities(
  tls: ParsedSection<'tls'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { acme_ca: file } = tls.values;
  if (file === undefined) return [];
  const refused = await readCaCertificates(resolve(folder, file));
  return 'refused' in refused ? problemAt(tls, { key: 'acme_ca', file, ...refused }) : [];
}

async function checkBindingKey(
  tls: ParsedSection<'tls'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { acme_eab_key: file } = tls.values;
  if (file === undefined) return [];
  const read = await readEabKey(resolve(folder, file));
  return 'refused' in read ? problemAt(tls, { key: 'acme_eab_key', file, ...read }) : [];
}

async function checkDnsFiles(
  tls: ParsedSection<'tls'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { acme_dns_hook: hook, acme_dns_key: key } = tls.values;
  const problems: LineProblem[] = [];
  if (hook !== undefined) {
    const refused = await checkProgram(resolve(folder, hook));
    if (refused) problems.push(...problemAt(tls, { key: 'acme_dns_hook', file: hook, ...refused }));
  }
  if (key !== undefined) {
    const read = await readTsigKey(resolve(folder, key));
    if ('refused' in read)
      problems.push(...problemAt(tls, { key: 'acme_dns_key', file: key, ...read }));
  }
  return problems;
}

async function checkMount(
  mount: ParsedSection<'disk.<name>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const root = resolve(folder, mount.values.root);
  const refused = await checkFolder(root);
  if (refused !== undefined && !mount.lines.has('root')) {
    const usual = `its default, ${quoted(mount.values.root)}, ${refused.refused}`;
    const message = `[disk.${mount.name}] has no \`root\`, and ${usual}`;
    const advice = 'write `root = <the folder to serve>`';
    return [{ line: mount.line, message: `${message}: ${advice}` }];
  }
  if (refused !== undefined)
    return problemAt(mount, { key: 'root', file: mount.values.root, ...refused });
  const { symlinks } = mount.values;
  const problems: LineProblem[] = [];
  for (const [key, find] of [
    ['fallback', checkFile],
    ['errors', checkFolder],
  ] as const) {
    const file = mount.values[key];
    if (file === undefined || file === '/') continue;
    const missing = (await find(join(root, file))) ?? (await checkSymlinks(root, file, symlinks));
    if (missing !== undefined) problems.push(...problemAt(mount, { key, file, ...missing }));
  }
  return problems;
}

async function readJson(
  file: string,
  limits: { readonly bytesMax: number },
): Promise<{ readonly object: JsonObject } | Refused> {
  const read = await readText(file, limits);
  if ('refused' in read) return read;
  let object: unknown;
  try {
    object = JSON.parse(read.text);
  } catch (error) {
    return { refused: `is not JSON: ${error instanceof Error ? error.message : ''}` };
  }
  if (!isJsonObject(object)) return { refused: 'is not a JSON object' };
  if (nestsDeeper(object, jsonDepthMax)) {
    return { refused: `nests deeper than ${jsonDepthMax} levels` };
  }
  return { object };
}

function problemAt(
  section: ParsedSection<SectionKind>,
  { key, file, refused }: Refused & { readonly key: string; readonly file: string },
): readonly LineProblem[] {
  const line = lineOf(section, key);
  return line === undefined ? [] : [{ line, message: `\`${key}\` = ${quoted(file)} ${refused}` }];
}

/**
 * The files that no mount may serve: those of which their keys say so, and the ini file with those
 * that it includes. `folder` is the base of relative paths. A symbolic link may lead elsewhere
 * later, so each is there by its own path, too.
 */
export async function privateFiles(
  ini: ParsedIni,
  { folder, iniFiles }: { readonly folder: string; readonly iniFiles: readonly string[] },
): Promise<readonly HeldFile[]> {
  const sections: readonly unknown[] = Object.values(ini).flat();
  const held = sections.flatMap((section) => (hasHeldFiles(section) ? section.heldFiles : []));
  const own = iniFiles.map((path) => ({ path, holds: 'the ini file' }));
  const found = [...held, ...own].map(async ({ path: written, holds, isOpen }: HeldFile) => {
    const path = resolve(folder, written);
    if (isOpen !== undefined) {
      const read = await readText(path, { bytesMax: jwksBytesMax });
      if (!('refused' in read) && isOpen(read.text)) return [];
    }
    const real = await realPath(path);
    return real === path
      ? [{ path, holds }]
      : [
          { path: real, holds },
          { path, holds },
        ];
  });
  return (await Promise.all(found)).flat();
}

function hasHeldFiles(section: unknown): section is Pick<ParsedSection<SectionKind>, 'heldFiles'> {
  return typeof section === 'object' && section !== null && 'heldFiles' in section;
}

/**
 * Finds mounts that would serve a private file, also by way of symbolic links, or the data folder
 * that another server has at its usual place; `folder` is the base of relative paths.
 */
export async function exposureProblems(
  { disk }: Pick<ParsedIni, 'disk'>,
  files: readonly HeldFile[],
  { folder }: { readonly folder: string },
): Promise<readonly LineProblem[]> {
  const found = disk.map(async (mount) => {
    const line = lineOf(mount, 'root');
    const root = await realPath(resolve(folder, mount.values.root));
    const exposed = files.find(({ path }) => isWithin(path, root));
    const what = exposed?.holds ?? (await otherDataIn(root));
    if (line === undefined || what === undefined) return [];
    const written = quoted(mount.values.root);
    return [{ line, message: `\`root\` = ${written} contains ${what}: serve a folder without it` }];
  });
  return (await Promise.all(found)).flat();
}

/**
 * The data folder of another server, if a folder is one, or has one beside an ini file: it has an
 * admin key.
 */
async function otherDataIn(root: string): Promise<string | undefined> {
  for (const file of ['data.mdb', 'data/data.mdb']) {
    const refused = await checkFile(join(root, file));
    if (refused === undefined) return `the data folder of another server (${file})`;
  }
  return undefined;
}

/** Resolves the symbolic links of a path, also of one that does not exist yet. */
async function realPath(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    const parent = dirname(path);
    return parent === path ? path : join(await realPath(parent), basename(path));
  }
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way !== '..' && !way.startsWith(`..${sep}`) && !/^[A-Za-z]:/.test(way);
}
