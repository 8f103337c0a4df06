import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { isJsonObject, nestsDeeper, type JsonObject } from '../model/json.ts';
import { jsonDepthMax } from '../model/limits.ts';
import { isUrl } from './addresses.ts';
import { lineOf } from './consistency.ts';
import { findFile, findFolder, findMarker, readText } from './files.ts';
import { readAuthorities, readBindingKey, readKeyPair } from './key-pair.ts';
import { jwksBytesMax, tableSchemaBytesMax } from './limits.ts';
import type { ParsedIni, ParsedSection } from './parse.ts';
import { shown, type LineProblem } from './problem.ts';
import type { SectionKind } from './schema.ts';
import type { Refused } from './values.ts';

/** What was found under the paths that an ini text names. */
interface Referenced {
  /** The schema of each table by its name; the wrong ones are missing. */
  readonly schemas: ReadonlyMap<string, JsonObject>;
  readonly problems: readonly LineProblem[];
}

/** Looks at every file and folder that an ini text names; relative paths start at `folder`. */
export async function readReferenced(
  ini: ParsedIni,
  { folder }: { readonly folder: string },
): Promise<Referenced> {
  const { server, tls, hosts, auth, geo, log, disk, tables } = ini;
  const jwks = auth.values.jwt_jwks;
  const schemas = new Map<string, JsonObject>();
  const found = await Promise.all([
    requireFile(server, { key: 'import', file: server.values.import, folder }),
    ...[tls, ...hosts].map((section) => requireKeyPair(section, folder)),
    requireAuthorities(tls, folder),
    requireBindingKey(tls, folder),
    ...disk.map((mount) => requireMount(mount, folder)),
    jwks === undefined || isUrl(jwks) ? [] : requireKeys(auth, jwks, folder),
    ...tables.map(async (table) => {
      const { schema: file } = table.values;
      if (file === undefined) return [];
      const read = await readJson(resolve(folder, file), { bytesMax: tableSchemaBytesMax });
      if ('refused' in read) return blame(table, { key: 'schema', file, refused: read.refused });
      schemas.set(table.name, read.object);
      return [];
    }),
    requireDatabase(geo, folder),
    requireLogFolder(log, folder),
  ]);
  return { schemas, problems: found.flat() };
}

async function requireFile(
  section: ParsedSection<SectionKind>,
  named: { readonly key: string; readonly file: string | undefined; readonly folder: string },
): Promise<readonly LineProblem[]> {
  const { key, file, folder } = named;
  if (file === undefined) return [];
  const refused = await findFile(resolve(folder, file));
  return refused === undefined ? [] : blame(section, { key, file, ...refused });
}

/** The access log is made where there is none; its folder is not. */
async function requireLogFolder(
  log: ParsedSection<'log'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { file } = log.values;
  if (file === undefined) return [];
  const refused = await findFolder(dirname(resolve(folder, file)));
  if (refused === undefined) return [];
  return blame(log, { key: 'file', file, refused: `is in a folder that ${refused.refused}` });
}

async function requireKeyPair(
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
  return 'refused' in read ? blame(section, { ...read, file: files[read.key] }) : [];
}

/** A set of keys (RFC 7517 §5) is an object with a list of them. */
async function requireKeys(
  auth: ParsedSection<'auth'>,
  file: string,
  folder: string,
): Promise<readonly LineProblem[]> {
  const read = await readJson(resolve(folder, file), { bytesMax: jwksBytesMax });
  const refused = 'refused' in read ? read : Array.isArray(read.object.keys) ? undefined : noKeys;
  return refused === undefined ? [] : blame(auth, { key: 'jwt_jwks', file, ...refused });
}

const noKeys: Refused = { refused: 'is no JWK Set: it has no list of `keys`' };

async function requireDatabase(
  geo: ParsedSection<'geo'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { database: file } = geo.values;
  if (file === undefined) return [];
  const path = resolve(folder, file);
  const refused = (await findFile(path)) ?? (await findMarker(path));
  return refused === undefined ? [] : blame(geo, { key: 'database', file, ...refused });
}

/** Those who vouch for an ACME server: certificates in PEM. */
async function requireAuthorities(
  tls: ParsedSection<'tls'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { acme_ca: file } = tls.values;
  if (file === undefined) return [];
  const refused = await readAuthorities(resolve(folder, file));
  return 'refused' in refused ? blame(tls, { key: 'acme_ca', file, ...refused }) : [];
}

async function requireBindingKey(
  tls: ParsedSection<'tls'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const { acme_eab_key: file } = tls.values;
  if (file === undefined) return [];
  const read = await readBindingKey(resolve(folder, file));
  return 'refused' in read ? blame(tls, { key: 'acme_eab_key', file, ...read }) : [];
}

async function requireMount(
  mount: ParsedSection<'disk.<name>'>,
  folder: string,
): Promise<readonly LineProblem[]> {
  const root = resolve(folder, mount.values.root);
  const refused = await findFolder(root);
  if (refused !== undefined && !mount.lines.has('root')) {
    const usual = `the default, ${shown(mount.values.root)}, ${refused.refused}`;
    const message = `[disk.${mount.name}] has no \`root\`, and ${usual}`;
    const cure = 'write `root = <the folder to serve>`';
    return [{ line: mount.line, message: `${message}: ${cure}` }];
  }
  if (refused !== undefined)
    return blame(mount, { key: 'root', file: mount.values.root, ...refused });
  const { symlinks } = mount.values;
  const problems: LineProblem[] = [];
  for (const [key, find] of [
    ['fallback', findFile],
    ['errors', findFolder],
  ] as const) {
    const file = mount.values[key];
    if (file === undefined) continue;
    const missing = (await find(join(root, file))) ?? (await leads(root, file, symlinks));
    if (missing !== undefined) problems.push(...blame(mount, { key, file, ...missing }));
  }
  return problems;
}

/** Whether `symlinks` of a mount lets it serve a file; the root itself may be a link. */
async function leads(
  root: string,
  below: string,
  symlinks: 'within' | 'deny' | 'follow',
): Promise<Refused | undefined> {
  const way = relative(await realpath(root), await realpath(join(root, below)));
  if (symlinks === 'deny' && way !== below.replaceAll('/', sep)) {
    return { refused: 'is a symbolic link, which `symlinks` = `deny` does not follow' };
  }
  if (symlinks === 'within' && (way === '..' || way.startsWith(`..${sep}`))) {
    return { refused: 'is a symbolic link that leads out of `root`' };
  }
  return undefined;
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

function blame(
  section: ParsedSection<SectionKind>,
  { key, file, refused }: Refused & { readonly key: string; readonly file: string },
): readonly LineProblem[] {
  const line = lineOf(section, key);
  return line === undefined ? [] : [{ line, message: `\`${key}\` = ${shown(file)} ${refused}` }];
}

/**
 * What no mount may serve, whatever links lead there: the data folder and private keys. Relative
 * paths start at `folder`.
 */
export async function findExposed(
  ini: ParsedIni,
  { folder }: { readonly folder: string },
): Promise<readonly LineProblem[]> {
  const real = (path: string): Promise<string> => realPath(resolve(folder, path));
  const keys = [ini.tls, ...ini.hosts].flatMap(({ values }) => values.key ?? []);
  const { file: log } = ini.log.values;
  const secrets = [
    { what: 'the data folder', path: await real(ini.server.values.data) },
    ...(log === undefined ? [] : [{ what: 'the access log', path: await real(log) }]),
    ...(await Promise.all(
      keys.map(async (key) => ({ what: 'a private key', path: await real(key) })),
    )),
  ];
  const found = ini.disk.map(async (mount) => {
    const line = lineOf(mount, 'root');
    const root = await real(mount.values.root);
    const exposed = secrets.find(({ path }) => isWithin(path, root));
    if (line === undefined || exposed === undefined) return [];
    const written = shown(mount.values.root);
    return [{ line, message: `\`root\` = ${written} holds ${exposed.what}: keep them apart` }];
  });
  return (await Promise.all(found)).flat();
}

/** A path behind all links, as far as it exists: what is missing will be made there. */
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
