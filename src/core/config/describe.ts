import { isCidr } from '../values/network/cidr.ts';
import type { PrivatePlace } from '../values/network/unix-socket.ts';
import type { Json, JsonObject } from '../values/json/json.ts';
import type { Config, DiskMount, HeadersConfig, ProxyConfig } from './config.ts';
import { configFieldName, type IniKey, type Keys } from './ini-key.ts';
import { acmeKeys, sections, tlsKeys, type SectionKind, type Sections } from './schema.ts';
import { escapeVariables } from './variables.ts';

/**
 * The texts of a section's keys: undefined for a key that is not set, a list for a repeated key.
 */
type Written<K extends SectionKind> = Readonly<
  Record<keyof Sections[K], string | readonly string[] | undefined>
>;

type KeyTexts = Readonly<Record<string, string | readonly string[] | undefined>>;

const plainText = /^[\w./:*@+-]+(?:,? [\w./:*@+-]+)*$/;

/**
 * The configuration as an ini text: every key of docs/design/configuration.md#the-ini-file, also
 * those with their default, with absolute paths. Reading it gives the same configuration.
 */
export function describeConfig(config: Config): string {
  const { tls } = config;
  const defaultPair = tls.certificates.find(({ host }) => host === undefined);
  const texts = [
    ...(Object.keys(config.variables).length > 0 ? [section('variables', config.variables)] : []),
    // Its text has the sections of the included files.
    described('server', { ...config.server, include: [] }),
    section('tls', {
      cert: defaultPair?.certFile,
      key: defaultPair?.keyFile,
      ...keyTexts(tlsKeys, tls),
      ...keyTexts(acmeKeys, tls.acme),
    }),
    ...tls.certificates.flatMap(({ host, certFile, keyFile }) => {
      const keys = { cert: certFile, key: keyFile, acme: 'no' } satisfies Written<'tls.<host>'>;
      return host === undefined ? [] : [section(`tls.${host}`, keys)];
    }),
    ...tls.acme.hosts.map((host) => {
      const keys = { cert: undefined, key: undefined, acme: 'yes' } satisfies Written<'tls.<host>'>;
      return section(`tls.${host}`, keys);
    }),
    ...config.disk.flatMap(mountSections),
    ...config.proxies.flatMap(proxySections),
    ...config.headers.map(headersSection),
    ...config.redirects.map((one) => described('redirect.<name>', one, one.name)),
    ...config.rewrites.map((one) => described('rewrite.<name>', one, one.name)),
    ...config.access.map((one) => described('access.<name>', one, one.name)),
    ...config.rates.map((one) => described('rate.<name>', one, one.name)),
    described('login', config.login),
    ...config.logins.map((one) => described('login.<name>', one, one.name)),
    described('fetch', config.fetch),
    described('auth', config.auth),
    ...config.engines.map((engine) => described('engine.<name>', engine, engine.name)),
    ...config.tables.map((table) => described('table.<name>', table, table.name)),
    ...config.eventTypes.map((type) => described('event.<name>', type, type.name)),
    described('webhook', config.webhook),
    described('node', config.node),
    described('cluster', config.cluster),
    described('asset', config.asset),
    described('geo', config.geo),
    described('review', config.review),
    described('mcp', config.mcp),
    described('stats', config.stats),
    described('log', config.log),
    ...config.log.paths.map((one) => described('log.<name>', one, one.name)),
    described('telemetry', config.telemetry),
    ...config.modules.map(({ name, texts }) => section(`module.${name}`, texts)),
  ];
  return texts.join('\n');
}

/**
 * The configuration as JSON: networks as text, null for keys that are not set. It has no content of
 * other files.
 */
export function configJson(config: Config): JsonObject {
  const disk = config.disk.map(({ redirectsText: _text, ...mount }) => mount);
  const redirects = config.redirects.map(({ fileText: _text, ...redirect }) => redirect);
  const modules = config.modules.map(({ name, texts }) => ({ name, ...texts }));
  return toJson({ ...config, disk, redirects, modules }) as JsonObject;
}

function mountSections(mount: DiskMount): readonly string[] {
  const { name, headers } = mount;
  const fields = headers.filter((_, at) => at % 2 === 0);
  const counts = Map.groupBy(fields, (field) => field.toLowerCase());
  const lines = fields.map((field, at) => {
    const isRepeated = (counts.get(field.toLowerCase()) ?? []).length > 1;
    return iniLine(isRepeated ? `${field}[]` : field, headers[2 * at + 1] ?? '');
  });
  const keys = described('disk.<name>', mount, name);
  return lines.length === 0 ? [keys] : [keys, `[disk.${name}.headers]\n${lines.join('')}`];
}

function proxySections(proxy: ProxyConfig): readonly string[] {
  const { name, requestHeaders, headers } = proxy;
  const parts = [
    ['request_headers', templateLines(requestHeaders)],
    ['headers', templateLines(headers)],
  ] as const;
  return [
    described('proxy.<name>', proxy, name),
    ...parts.flatMap(([part, lines]) =>
      lines === '' ? [] : [`[proxy.${name}.${part}]\n${lines}`],
    ),
  ];
}

function headersSection(rule: HeadersConfig): string {
  return described('headers.<name>', rule, rule.name) + templateLines(rule.fields);
}

/** Lines of name and template, whose variables stay as they are. */
function templateLines(fields: readonly string[]): string {
  return fields
    .map((name, at) => (at % 2 === 0 ? iniTemplateLine(name, fields[at + 1] ?? '') : ''))
    .join('');
}

/** The text of a section: the keys of the schema with the values of the configuration. */
function described(kind: SectionKind, fields: object, name = ''): string {
  return section(
    kind.replace('<name>', () => name),
    keyTexts(sections[kind], fields),
  );
}

/** The texts of keys by name, from the configuration's fields for them. */
function keyTexts(keys: Keys, fields: object): KeyTexts {
  const texts = Object.entries(keys).map(([name, key]) => {
    const value: unknown = Reflect.get(fields, configFieldName(name, key));
    return [name, value === undefined ? undefined : textsOf(key, value)] as const;
  });
  return Object.fromEntries(texts);
}

function textsOf(key: IniKey<unknown>, value: unknown): string | readonly string[] {
  const write = (one: unknown): string => key.write?.(one) ?? textOf(one);
  if (!key.isList || !Array.isArray(value)) return write(value);
  const items = value.map(write);
  return key.isOnePerLine === true ? items : items.join(', ');
}

function section(name: string, keys: KeyTexts): string {
  const lines = Object.entries(keys).map(([key, value]) => {
    if (typeof value !== 'object') return iniLine(key, value ?? '');
    const [only = ''] = value;
    return value.length === 1
      ? iniLine(key, only)
      : value.map((one) => iniLine(`${key}[]`, one)).join('');
  });
  return `[${name}]\n${lines.join('')}`;
}

/** One line of an ini text; a value with characters of the ini syntax is quoted, as JSON. */
export function iniLine(key: string, value: string): string {
  return iniTemplateLine(key, escapeVariables(value));
}

/** As iniLine, for a text whose `${NAME}` are variables. */
export function iniTemplateLine(key: string, text: string): string {
  const written = text === '' || plainText.test(text) ? text : JSON.stringify(text);
  const name = /^[\w-]+(?:\[\])?$/.test(key) ? key : JSON.stringify(key);
  return `${name} = ${written}`.trimEnd() + '\n';
}

/** The text of a value whose key has no `write`. */
function textOf(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' && value !== null && isPlace(value) ? value.text : String(value);
}

function isPlace(value: object): value is PrivatePlace {
  return isCidr(value) || 'socketPath' in value;
}

function toJson(value: unknown): Json {
  if (value === undefined) return null;
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== 'object' || value === null) return value as Json;
  if (isPlace(value)) return value.text;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, toJson(member)]));
}
