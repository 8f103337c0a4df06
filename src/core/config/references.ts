import { realpath } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve, sep } from 'node:path';
import { type JsonObject, isJsonObject, nestsDeeper } from '../values/json/json.ts';
import { jsonDepthMax } from '../values/limits.ts';
import { isUrl } from './addresses.ts';
import { checkFile, readText } from './files.ts';
import type { IniKey } from './ini-key.ts';
import {
  type IniSection,
  lineOf,
  type ParsedIni,
  type ParsedSection,
  type ReadFiles,
  sectionKinds,
} from './ini-section.ts';
import { readKeyPair } from './key-pair.ts';
import { jwksBytesMax } from './limits.ts';
import { type LineProblem, quoted } from './problem.ts';
import type { Refused } from './values.ts';

/** The result of reading the files that an ini text names. */
interface References {
  /** What `read` of its kind has found for a section. */
  readonly contents: ReadonlyMap<ParsedSection, object>;
  /** The absolute paths of the files whose content that is. */
  readonly files: readonly string[];
  readonly problems: readonly LineProblem[];
}

/** Checks every file and folder that an ini text names; `folder` is the base of relative paths. */
export async function checkReferences(
  ini: ParsedIni,
  { folder }: { readonly folder: string },
): Promise<References> {
  const contents = new Map<ParsedSection, object>();
  const files: string[] = [];
  const ofKeys = parsedSections(ini).flatMap((section) =>
    pathsOf(section, ({ checkPath }) => checkPath !== undefined).map(
      async ({ name, path, key }) => {
        const found = await key.checkPath?.(resolve(folder, path));
        const isRefused = found !== undefined && 'refused' in found;
        return isRefused
          ? fileProblem(section, { key: name, file: path, ...(found as Refused) })
          : [];
      },
    ),
  );
  const ofSections = ini.sections.flatMap((part) =>
    ini.all(part).map(async (section) => {
      const { problems = [], content, files: read = [] } = await readFiles(part, section, folder);
      files.push(...read);
      if (content !== undefined) contents.set(section, { ...contents.get(section), ...content });
      return problems;
    }),
  );
  const found = await Promise.all([...ofKeys, ...ofSections]);
  return { contents, files, problems: found.flat() };
}

async function readFiles(
  part: IniSection,
  section: ParsedSection,
  folder: string,
): Promise<ReadFiles> {
  return (await part.read?.(section, { folder })) ?? {};
}

/** A file or folder that no mount may serve, and what it holds. */
interface HeldFile {
  readonly path: string;
  readonly holds: string;
}

type HeldKey = Pick<IniKey<unknown>, 'holds' | 'isOpen'> & { readonly path: string };

/** All sections of an ini text. */
function parsedSections(ini: ParsedIni): readonly ParsedSection[] {
  return sectionKinds(ini.sections).flatMap(({ owner }) => ini.all(owner));
}

/** The paths of files that keys of a section name, of the keys for which `isMeant` holds. */
function pathsOf(
  { keys, values }: ParsedSection,
  isMeant: (key: IniKey<unknown>) => boolean,
): readonly { readonly name: string; readonly path: string; readonly key: IniKey<unknown> }[] {
  return Object.entries(keys).flatMap(([name, key]) => {
    const path = values[name];
    return isMeant(key) && typeof path === 'string' && !isUrl(path) ? [{ name, path, key }] : [];
  });
}

/** Reads a file with a JSON object. */
export async function readJson(
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

/** The problem of a file that a key names. */
export function fileProblem(
  section: Pick<ParsedSection, 'line' | 'lines' | 'isValid'>,
  { key, file, refused }: Refused & { readonly key: string; readonly file: string },
): readonly LineProblem[] {
  const line = lineOf(section, key);
  return line === undefined ? [] : [{ line, message: `\`${key}\` = ${quoted(file)} ${refused}` }];
}

/** Checks the certificate and private key of a section, if it has both. */
export async function checkPair(
  section: Pick<ParsedSection, 'line' | 'lines' | 'isValid'> & { readonly values: PairFiles },
  { folder }: { readonly folder: string },
): Promise<ReadFiles> {
  const { cert, key } = section.values;
  if (cert === undefined || key === undefined) return {};
  const pair = { certFile: resolve(folder, cert), keyFile: resolve(folder, key) };
  const read = await readKeyPair(pair);
  if (!('refused' in read)) return {};
  return { problems: fileProblem(section, { ...read, file: { cert, key }[read.key] }) };
}

type PairFiles = Readonly<Record<'cert' | 'key', string | undefined>>;

/**
 * The files that no mount may serve: those of which their keys say so, and the ini file with those
 * that it includes. `folder` is the base of relative paths. A symbolic link may lead elsewhere
 * later, so each is there by its own path, too.
 */
export async function privateFiles(
  ini: ParsedIni,
  { folder, iniFiles }: { readonly folder: string; readonly iniFiles: readonly string[] },
): Promise<readonly HeldFile[]> {
  const held = parsedSections(ini).flatMap((section) =>
    pathsOf(section, ({ holds }) => holds !== undefined).map(({ path, key }) => ({ ...key, path })),
  );
  const own = iniFiles.map((path) => ({ path, holds: 'the ini file' }));
  const found = [...held, ...own].map(async ({ path: written, holds = '', isOpen }: HeldKey) => {
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

/**
 * Finds folders that are published and contain a private file, also by way of symbolic links, or
 * the data folder that another server has at its usual place; `folder` is the base of relative
 * paths.
 */
export async function exposureProblems(
  ini: ParsedIni,
  files: readonly HeldFile[],
  { folder }: { readonly folder: string },
): Promise<readonly LineProblem[]> {
  const found = parsedSections(ini).flatMap((section) =>
    pathsOf(section, ({ isPublished }) => isPublished === true).map(async ({ name, path }) => {
      const root = await realPath(resolve(folder, path));
      const exposed = files.find((file) => isWithin(file.path, root));
      const what = exposed?.holds ?? (await otherDataIn(root));
      const refused = `contains ${what}: serve a folder without it`;
      return what === undefined ? [] : fileProblem(section, { key: name, file: path, refused });
    }),
  );
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
