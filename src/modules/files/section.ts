import { join, resolve } from 'node:path';
import { mountPath } from '../../core/config/addresses.ts';
import type { DiskMount } from '../../core/config/config.ts';
import { iniLine } from '../../core/config/describe.ts';
import { duplicateMessage, parseEntry } from '../../core/config/entry.ts';
import { checkFile, checkFolder, checkSymlinks } from '../../core/config/files.ts';
import { addedFieldName, fieldValue } from '../../core/config/headers.ts';
import { lineWords } from '../../core/config/include.ts';
import {
  type FieldsOf,
  flagKey,
  list,
  optional,
  originKey,
  single,
} from '../../core/config/ini-key.ts';
import {
  type FieldLines,
  iniSection,
  lineOf,
  type ParsedIni,
  type ParsedSection,
} from '../../core/config/ini-section.ts';
import { customHeadersMax } from '../../core/config/limits.ts';
import { type LineProblem, quoted } from '../../core/config/problem.ts';
import { fileProblem } from '../../core/config/references.ts';
import type { Entry } from '../../core/config/scan.ts';
import { anyText, choice, pathBelow, type ValueParser, wordOr } from '../../core/config/values.ts';
import type { Environment } from '../../core/config/variables.ts';
import { originRank } from '../../core/values/network/origin-pattern.ts';
import { servicePath } from '../../core/values/path.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    /** In the order of matching: exact origin before `*`, longer path before shorter. */
    readonly disk: readonly DiskMount[];
  }
  /** `[disk.<name>]`: a folder that is served as a part of the site. */
  interface DiskMount extends FieldsOf<typeof diskKeys> {
    readonly name: string;
    /** Header fields of every answer of the mount: name, value, name, value … */
    readonly headers: readonly string[];
  }
}

/** The name of a file directly in a folder. */
const plainFileName: ValueParser<string> = (value) =>
  value === '.' || value === '..' || /[/\\]/.test(value)
    ? { refused: 'write the name of a file, without a folder' }
    : { value };

/** A path below a folder that may contain `{path}`, without a leading `/`. */
const tryPath: ValueParser<string> = (text) => {
  const parsed = pathBelow(text.replaceAll('{path}', 'path'));
  return 'refused' in parsed || /[{}]/.test(text.replaceAll('{path}', ''))
    ? { refused: 'write the path of a file below `root`; `{path}` stands for the path of the URL' }
    : { value: text.replace(/^\/+/, '') };
};

/** The media type of an extension. */
export interface ExtensionType {
  /** In lower case, without the dot. */
  readonly extension: string;
  readonly type: string;
}

/** An extension and its media type: `geojson=application/geo+json`. */
const extensionType: ValueParser<ExtensionType> = (text) => {
  const [, extension, type] =
    /^\.?([A-Za-z0-9_+-]{1,32})=(\w[\w.+-]*\/\w[\w.+-]*)$/.exec(text) ?? [];
  return extension === undefined || type === undefined
    ? { refused: 'write an extension and its type, such as `geojson=application/geo+json`' }
    : { value: { extension: extension.toLowerCase(), type } };
};

/** The ini text of an extension and its media type. */
function extensionTypeText({ extension, type }: ExtensionType): string {
  return `${extension}=${type}`;
}

/** The keys of `[disk.<name>]`. */
export const diskKeys = {
  origin: originKey('that the mount serves'),
  path: single(mountPath, '/', {
    about: 'The path of the URL that the mount serves; the longest one takes precedence.',
    example: '/assets/',
  }),
  root: single(anyText, '../site', {
    isPath: true,
    isPublished: true,
    about: 'The folder on the disk.',
    example: '/srv/www',
  }),
  index: list(plainFileName, 'index.html', {
    about: 'Names of the file that answers for a folder, the first one that exists.',
    example: 'index.html',
  }),
  listing: flagKey('no', {
    about: 'Whether a folder without an index is listed, as a page or as JSON.',
  }),
  dotfiles: single(choice('deny', 'allow'), 'deny', {
    about: 'Whether hidden files such as `.env` get 404 (`deny`) or are served (`allow`).',
    example: 'allow',
  }),
  symlinks: single(choice('within', 'deny', 'follow'), 'within', {
    about:
      'Whether symbolic links work within the folder only (`within`), not at all (`deny`), or ' +
      'everywhere (`follow`).',
    example: 'follow',
  }),
  precompressed: flagKey('yes', {
    about: 'Whether `app.js.zst`, `app.js.br` or `app.js.gz` is sent in place of `app.js`.',
  }),
  compress: flagKey('yes', {
    about:
      'Whether text is compressed for clients that accept it, if it has no precompressed file.',
    since: '0.2',
  }),
  clean_urls: flagKey('no', {
    about:
      'Whether `/about` answers `about.html`, or the index of the folder `about`, and their ' +
      'other paths redirect to it.',
    since: '0.2',
  }),
  try: list(tryPath, '', {
    field: 'tryPaths',
    about:
      'Paths below the root that are tried in order for a path without a file; `{path}` is the ' +
      'path of the URL.',
    example: '{path}.htm, app.html',
    since: '0.2',
  }),
  types: list(extensionType, '', {
    write: extensionTypeText,
    about: 'Media types of extensions, before the registered ones.',
    example: 'geojson=application/geo+json',
    since: '0.2',
  }),
  cache_control: optional(fieldValue, {
    about: 'The Cache-Control of its answers.',
    example: 'public, max-age=31536000, immutable',
  }),
  fallback: optional(pathBelow, {
    about: 'A file below the root that answers with 200 for paths that no source has.',
    example: 'index.html',
  }),
  errors: optional(wordOr('/', pathBelow), {
    about:
      'A folder below the root with error pages: `404.html`, `502.html`, `5xx.html`, and ' +
      '`404.de.html` for a language; `/` is the root itself.',
    example: 'errors',
  }),
};

/** `[disk.<name>]`: a folder that is served as a part of the site. */
export const diskSection = iniSection({
  header: 'disk.<name>',
  keys: diskKeys,
  place: 'disk',
  since: '0.1',
  about:
    'A folder that the server publishes. Only this file can publish folders; no operation can.',
  example: { name: 'site', lines: { root: '/srv/www' } },
  check: duplicateMounts,
  read: async (mount, { folder }) => ({ problems: await checkMount(mount, folder) }),
  order: (one: DiskMount, other: DiskMount) =>
    originRank(other.origin) - originRank(one.origin) || other.path.length - one.path.length,
  names: ({ disk }) => ({ origins: disk.map(({ origin }) => origin) }),
  warnings: ({ disk, server: { base } }) =>
    disk.flatMap(({ name, path }) => {
      if (servicePath(path, base) === undefined) return [];
      return `[disk.${name}] has no effect: Waymark itself answers all of ${base}/svc1.`;
    }),
});

/** Lines that set header fields; `name[]` sets a field several times. */
const plainFields: FieldLines = {
  member: 'headers',
  parse({ title, line, entries }, { env, problems }) {
    const fields: string[] = [];
    const seen = new Map<string, number>();
    for (const entry of entries) {
      const lowerCase = entry.key.toLowerCase();
      const parsed = parseField(entry, seen.get(lowerCase), env);
      if ('value' in parsed) fields.push(entry.key, parsed.value);
      else problems.push({ line: entry.line, message: parsed.refused });
      if (!seen.has(lowerCase)) seen.set(lowerCase, entry.line);
    }
    if (fields.length / 2 > customHeadersMax) {
      const message = `${title} has more than ${customHeadersMax} fields: remove some`;
      problems.push({ line, message });
    }
    return fields;
  },
  write: writtenFields,
};

function parseField(
  entry: Entry,
  earlierLine: number | undefined,
  env: Environment,
): { readonly value: string } | { readonly refused: string } {
  const name = addedFieldName(entry.key);
  if ('refused' in name) return { refused: `${quoted(entry.key)}: ${name.refused}` };
  if (earlierLine !== undefined && !entry.repeated) {
    return { refused: duplicateMessage(entry.key, { earlierLine, isList: true }) };
  }
  return parseEntry(entry, fieldValue, env);
}

/** Writes the fields of a section as lines; those of a name that stands twice are `name[]`. */
function writtenFields(fields: readonly string[]): string {
  const names = fields.filter((_, at) => at % 2 === 0);
  const counts = Map.groupBy(names, (name) => name.toLowerCase());
  const lines = names.map((name, at) => {
    const isRepeated = (counts.get(name.toLowerCase()) ?? []).length > 1;
    return iniLine(isRepeated ? `${name}[]` : name, fields[2 * at + 1] ?? '');
  });
  return lines.join('');
}

/** `[disk.<name>.headers]`. */
export const diskHeadersSection = iniSection({
  header: 'disk.<name>.headers',
  keys: {},
  lines: plainFields,
  since: '0.1',
});

function duplicateMounts(
  mounts: readonly ParsedSection<typeof diskKeys>[],
  { includedFiles }: ParsedIni,
): readonly LineProblem[] {
  const seen = new Map<string, ParsedSection>();
  return mounts.flatMap((mount) => {
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

async function checkMount(
  mount: ParsedSection<typeof diskKeys>,
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
    return fileProblem(mount, { key: 'root', file: mount.values.root, ...refused });
  const { symlinks } = mount.values;
  const problems: LineProblem[] = [];
  for (const [key, find] of [
    ['fallback', checkFile],
    ['errors', checkFolder],
  ] as const) {
    const file = mount.values[key];
    if (file === undefined || file === '/') continue;
    const missing = (await find(join(root, file))) ?? (await checkSymlinks(root, file, symlinks));
    if (missing !== undefined) problems.push(...fileProblem(mount, { key, file, ...missing }));
  }
  return problems;
}
