import { originRank } from '../values/network/origin-pattern.ts';
import { resolve } from 'node:path';
import type { ListenAddress } from './addresses.ts';
import type { JsonObject } from '../values/json/json.ts';
import type {
  Certificate,
  Config,
  DiskMount,
  EventTypeConfig,
  ProxyConfig,
  TableConfig,
} from './config.ts';
import { atOnce, type Steps } from '../fair/turns.ts';
import {
  configFieldName,
  resolvedPath,
  type FieldsOf,
  type Keys,
  type ValuesOf,
} from './ini-key.ts';
import type { ParsedIni, ParsedSection } from './parse.ts';
import { noMountFiles, type MountFiles } from '../../modules/redirects/mount-files.ts';
import { acmeKeys, sections, tlsKeys, type SectionFields, type SectionKind } from './schema.ts';

/** The input of a configuration besides the text of its ini file. */
interface Inputs {
  /** Absolute path of the ini file. */
  readonly file: string;
  /** Absolute path of its folder, where relative paths start. */
  readonly folder: string;
  /** Absolute paths of the included files. */
  readonly includedFiles?: readonly string[];
  /** See Config. */
  readonly privatePaths?: readonly string[];
  /** The number of processes for `workers = auto`. */
  readonly cores: number;
  /** The default of `[node] name`. */
  readonly hostName: string;
  /** The schemas of event types by their names. */
  readonly eventSchemas: ReadonlyMap<string, JsonObject>;
  /** The definition of each table by its name. */
  readonly definitions: ReadonlyMap<string, TableConfig['definition']>;
  /** The files beside those of each mount, by the name of the mount. */
  readonly mountFiles: ReadonlyMap<string, MountFiles>;
  /** The texts of the files of redirects, by the name of their section. */
  readonly redirectTexts: ReadonlyMap<string, string>;
}

/** Makes the frozen configuration of an ini text that has no problems. */
export function assembleConfig(ini: ParsedIni, inputs: Inputs): Config {
  return atOnce(assembleSteps(ini, inputs));
}

/** The steps of assembleConfig: one for each section. */
export function* assembleSteps(ini: ParsedIni, inputs: Inputs): Steps<Config> {
  const { file, folder, hostName } = inputs;
  const { auth } = ini;
  const config = {
    file,
    includedFiles: inputs.includedFiles ?? [],
    privatePaths: inputs.privatePaths ?? [],
    variables: ini.variables,
    server: serverOf(ini, inputs),
    tls: tlsOf(ini, folder),
    disk: mountsOf(ini, inputs),
    proxies: proxiesOf(ini, folder),
    headers: yield* eachOf(ini.headerRules, ({ keys, fields }) => ({
      name: keys.name,
      ...fieldsOf('headers.<name>', keys, folder),
      fields: fields.fields,
    })),
    redirects: yield* eachOf(ini.redirects, (section) => ({
      name: section.name,
      ...fieldsOf('redirect.<name>', section, folder),
      status: Number(section.values.status),
      fileText: inputs.redirectTexts.get(section.name),
    })),
    rewrites: ini.rewrites.map(({ name, values: { origin, match = '', to = '' } }) => {
      return { name, origin, match, to };
    }),
    access: yield* eachOf(ini.access, (section) => ({
      name: section.name,
      ...fieldsOf('access.<name>', section, folder),
    })),
    rates: ini.rates.flatMap((section) => {
      const { rate, ...fields } = fieldsOf('rate.<name>', section, folder);
      return rate === undefined ? [] : [{ name: section.name, ...fields, rate }];
    }),
    login: fieldsOf('login', ini.login, folder),
    logins: ini.logins.map((section) => ({
      name: section.name,
      ...fieldsOf('login.<name>', section, folder),
    })),
    fetch: fieldsOf('fetch', ini.fetch, folder),
    auth: {
      ...fieldsOf('auth', auth, folder),
      anonymous: unique(auth.values.anonymous),
      corsOrigins: unique(auth.values.cors_origins),
    },
    engines: ini.engines.map((section) => ({
      name: section.name,
      ...fieldsOf('engine.<name>', section, folder),
    })),
    tables: ini.tables.flatMap((section) => tableOf(section, inputs)),
    eventTypes: ini.eventTypes.map((section) => eventTypeOf(section, inputs)),
    webhook: fieldsOf('webhook', ini.webhook, folder),
    node: { ...fieldsOf('node', ini.node, folder), name: ini.node.values.name ?? hostName },
    cluster: fieldsOf('cluster', ini.cluster, folder),
    asset: fieldsOf('asset', ini.asset, folder),
    geo: fieldsOf('geo', ini.geo, folder),
    review: fieldsOf('review', ini.review, folder),
    mcp: fieldsOf('mcp', ini.mcp, folder),
    stats: fieldsOf('stats', ini.stats, folder),
    log: logOf(ini, folder),
    telemetry: fieldsOf('telemetry', ini.telemetry, folder),
    modules: [],
  };
  return yield* frozenConfig(config);
}

/** Makes something of each section. */
function* eachOf<S, T>(parsed: readonly S[], make: (section: S) => T): Steps<readonly T[]> {
  const made: T[] = [];
  for (const section of parsed) {
    yield;
    made.push(make(section));
  }
  return made;
}

/** Freezes a configuration, one section after the other. */
function* frozenConfig(config: Config): Steps<Config> {
  for (const member of Object.values(config)) {
    for (const section of Array.isArray(member) ? member : [member]) {
      yield;
      frozen(section);
    }
  }
  return frozen(config);
}

function tlsOf({ tls, hosts }: ParsedIni, folder: string): Config['tls'] {
  return {
    certificates: [tls, ...hosts].flatMap((section) => certificateOf(section, folder)),
    acme: {
      hosts: hosts.filter(({ values }) => values.acme).map(({ name }) => name),
      ...fieldsOfKeys(acmeKeys, tls.values, folder),
    },
    ...fieldsOfKeys(tlsKeys, tls.values, folder),
  };
}

/** The values of a section by their names in the configuration, with absolute paths. */
function fieldsOf<K extends SectionKind>(
  kind: K,
  { values }: ParsedSection<K>,
  folder: string,
): SectionFields<K> {
  const keys: Keys = sections[kind];
  return fieldsOfKeys(keys, values, folder) as SectionFields<K>;
}

function fieldsOfKeys<S extends Keys>(keys: S, values: ValuesOf<S>, folder: string): FieldsOf<S> {
  const fields = Object.entries(keys).map(([name, key]) => {
    const value = values[name];
    const isPath = key.isPath === true && typeof value === 'string';
    return [configFieldName(name, key), isPath ? resolvedPath(folder, value) : value] as const;
  });
  // The schema gives the names, and each value comes from the parser of its key.
  return Object.fromEntries(fields) as FieldsOf<S>;
}

function serverOf({ server }: ParsedIni, { folder, cores }: Inputs): Config['server'] {
  const { listen, base, workers } = server.values;
  return {
    ...fieldsOf('server', server, folder),
    listen: listen.map((one) => listenOf(one, folder)),
    base: base ?? '',
    workers: workers === 'auto' ? Math.max(1, cores) : workers,
  };
}

function logOf({ log, pathLogs }: ParsedIni, folder: string): Config['log'] {
  const paths = pathLogs.map((section) => ({
    name: section.name,
    ...fieldsOf('log.<name>', section, folder),
  }));
  return { ...fieldsOf('log', log, folder), paths };
}

function listenOf(listen: ListenAddress, folder: string): ListenAddress {
  return listen.kind === 'unix' ? { kind: 'unix', path: resolve(folder, listen.path) } : listen;
}

function certificateOf(
  { name, values }: ParsedSection<'tls' | 'tls.<host>'>,
  folder: string,
): readonly Certificate[] {
  const { cert, key } = values;
  if (cert === undefined || key === undefined) return [];
  const host = name === '' ? undefined : name;
  return [{ host, certFile: resolve(folder, cert), keyFile: resolve(folder, key) }];
}

function mountsOf(
  { disk, headers }: ParsedIni,
  { folder, mountFiles }: Inputs,
): readonly DiskMount[] {
  const fields = new Map(headers.map((section) => [section.name, section.fields]));
  const mounts = disk.map((section) => ({
    name: section.name,
    ...fieldsOf('disk.<name>', section, folder),
    headers: fields.get(section.name) ?? [],
    ...(mountFiles.get(section.name) ?? noMountFiles),
  }));
  return mounts.toSorted(
    (one, other) =>
      originRank(other.origin) - originRank(one.origin) || other.path.length - one.path.length,
  );
}

function proxiesOf(
  { proxies, proxyRequestHeaders, proxyHeaders }: ParsedIni,
  folder: string,
): readonly ProxyConfig[] {
  const sent = new Map(proxyRequestHeaders.map((section) => [section.name, section.fields]));
  const answered = new Map(proxyHeaders.map((section) => [section.name, section.fields]));
  return proxies.map((section) => ({
    name: section.name,
    ...fieldsOf('proxy.<name>', section, folder),
    requestHeaders: sent.get(section.name) ?? [],
    headers: answered.get(section.name) ?? [],
  }));
}

function tableOf(
  section: ParsedSection<'table.<name>'>,
  { folder, definitions }: Inputs,
): readonly TableConfig[] {
  const { name } = section;
  const definition = definitions.get(name);
  if (definition === undefined) return [];
  return [{ name, definition, ...fieldsOf('table.<name>', section, folder) }];
}

function eventTypeOf(
  section: ParsedSection<'event.<name>'>,
  { folder, eventSchemas }: Inputs,
): EventTypeConfig {
  const { name } = section;
  const schema = eventSchemas.get(name) ?? { type: 'object' };
  return { name, schema, ...fieldsOf('event.<name>', section, folder) };
}

function unique<T>(values: readonly T[]): readonly T[] {
  return [...new Set(values)];
}

/** Freezes a value and everything in it. The recursion is bounded: JSON has jsonDepthMax levels. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const member of Object.values(value)) frozen(member);
  }
  return value;
}
