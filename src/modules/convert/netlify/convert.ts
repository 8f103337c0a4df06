import { basename, join } from 'node:path';
import { TomlError, parse } from 'smol-toml';
import { isJsonObject } from '../../../core/values/json/json.ts';
import { Conversion, type Converted, type Source } from '../conversion.ts';
import { syntaxFailure } from '../directive.ts';
import { addMount } from '../sections.ts';
import {
  type NetlifyHeaders,
  type NetlifyRule,
  type NetlifySite,
  addHeaderBlock,
  addRule,
  fieldOf,
  readHeaderBlocks,
  readRule,
} from './headers.ts';

/** Tables about the build, which is over when Waymark serves the site. */
const unneeded = /^(?:build|context|dev|plugins|template|redirects|headers)\b/;
const unplaced: Source = { line: 0, text: '' };
const movedPermanently = 301;

/**
 * Converts a `_redirects`, a `_headers` or a `netlify.toml`, which its name tells apart. Throws
 * `invalid` if a `netlify.toml` cannot be parsed. `folder` is the folder of the file as
 * the ini file names it.
 */
export function convertNetlify(
  text: string,
  file: string,
  _read?: unknown,
  folder = '.',
): Converted {
  const conversion = new Conversion();
  const name = basename(file);
  if (name.endsWith('.toml')) {
    const toml = readToml(conversion, text);
    const site = siteOf(conversion, join(folder, toml.root));
    for (const rule of toml.rules) addRule(site, rule);
    for (const block of toml.blocks) addHeaderBlock(site, block);
    return conversion.finish();
  }
  const site = siteOf(conversion, folder);
  const lines = text.split(/\r\n|\n|\r/);
  if (name.includes('headers')) {
    for (const block of readHeaderBlocks(conversion, lines)) addHeaderBlock(site, block);
    return conversion.finish();
  }
  for (const [at, line] of lines.entries()) {
    const rule = readRule(conversion, line, at + 1);
    if (rule !== undefined) addRule(site, rule);
  }
  return conversion.finish();
}

/** The folder of the site, with the addresses and the error page that such hosts give it. */
function siteOf(conversion: Conversion, root: string): NetlifySite {
  const place = { conversion, origins: ['*'], name: 'site' };
  const [mount] = addMount(place, { path: '/', root, errors: '/' }, { line: 0, text: '' });
  mount?.set('clean_urls', 'yes');
  return { ...place, mount, root };
}

/** What a `netlify.toml` says about the site itself. */
interface NetlifyToml {
  readonly root: string;
  readonly rules: readonly NetlifyRule[];
  readonly blocks: readonly NetlifyHeaders[];
}

/** Reads a `netlify.toml`. Throws `invalid` with a line if it cannot be parsed. */
function readToml(conversion: Conversion, text: string): NetlifyToml {
  const toml = parseToml(text);
  const lines = text.split(/\r\n|\n|\r/);
  const tables = lines.flatMap((line, at) => {
    const name = /^\s*\[{1,2}\s*([\w.-]+)\s*\]{1,2}/.exec(line)?.[1];
    return name === undefined ? [] : [{ name, source: { line: at + 1, text: line } }];
  });
  for (const { name, source } of tables) {
    if (!unneeded.test(name)) conversion.leave(source, 'an application behind a [proxy.<name>]');
  }
  const sourcesOf = (name: string): readonly Source[] =>
    tables.filter((table) => table.name === name).map(({ source }) => source);
  const build = isJsonObject(toml.build) ? toml.build : {};
  return {
    root: typeof build.publish === 'string' ? build.publish.replace(/(.)\/$/, '$1') : '.',
    rules: tablesOf(toml.redirects).map((table, at) => ruleOf(table, sourcesOf('redirects')[at])),
    blocks: tablesOf(toml.headers).map((table, at) => blockOf(table, sourcesOf('headers')[at])),
  };
}

function parseToml(text: string): Readonly<Record<string, unknown>> {
  try {
    return parse(text);
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw syntaxFailure(error.line, error.message.split('\n')[0] ?? '');
  }
}

type Table = Readonly<Record<string, unknown>>;

function tablesOf(value: unknown): readonly Table[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function ruleOf(table: Table, place: Source | undefined): NetlifyRule {
  const { from, to, status, force } = table;
  const [path, target] = [textOf(from), textOf(to)];
  const others = ['query', 'conditions', 'headers', 'signed'].filter(
    (key) => table[key] !== undefined,
  );
  return {
    source: { line: place?.line ?? 0, text: `${path} ${target}` },
    from: path,
    to: target,
    status: typeof status === 'number' ? status : movedPermanently,
    isForced: force === true,
    conditions: path.startsWith('/') || /^https?:/.test(path) ? others : ['from'],
  };
}

function blockOf(table: Table, source: Source = unplaced): NetlifyHeaders {
  const values = isJsonObject(table.values) ? table.values : {};
  const fields = Object.entries(values).map(([name, value]) =>
    fieldOf(name, textOf(value), source),
  );
  return { source, path: textOf(table.for), fields };
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value).trim() : '';
}
