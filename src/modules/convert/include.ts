import { readFileSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { isIncluded } from '../../core/config/include.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Directive } from './directive.ts';
import { convertedBytesMax, includeDepthMax } from './limits.ts';

/** How many files a configuration may include, and how deep they include each other. */
const includedFilesMax = 1_000;

/** A file that a configuration includes. */
export interface IncludedText {
  readonly file: string;
  readonly text: string;
}

/**
 * Reads the files that a pattern of an `include` names, in the file `from` if that is included
 * itself. A pattern with `*` may name no file; undefined if files or their folder are missing.
 */
export type ReadIncluded = (pattern: string, from?: string) => readonly IncludedText[] | undefined;

/** Reads no included files. */
export const readNone: ReadIncluded = () => undefined;

/**
 * Reads the files that a configuration includes. Relative paths start at the folder of the file
 * that includes, or of the configuration, or above, where nginx and Apache have their main file. In
 * all, it reads `includedFilesMax` files of `convertedBytesMax` each.
 */
export function includeReader(file: string): ReadIncluded {
  const folder = dirname(resolve(file));
  let filesLeft = includedFilesMax;
  return (pattern, from = file) => {
    const folders = [dirname(resolve(from)), folder, dirname(folder)];
    const places = new Set(folders.map((one) => resolve(one, pattern)));
    const found = [...places].map(pathsOf);
    const paths = found.find((one) => one !== undefined && one.length > 0) ?? found.find(Boolean);
    return paths?.flatMap((path) => {
      if (filesLeft === 0 || path === resolve(file)) return [];
      filesLeft -= 1;
      const text = textOf(path);
      return text === undefined ? [] : [{ file: path, text }];
    });
  };
}

/**
 * The files that a pattern names, whose last part may have a `*`; undefined if there is no such
 * file or folder.
 */
function pathsOf(pattern: string): readonly string[] | undefined {
  const [folder, name] = [dirname(pattern), basename(pattern)];
  try {
    const names = name.includes('*') ? readdirSync(folder).toSorted() : [name];
    return names
      .filter((one) => isIncluded(name, one))
      .map((one) => join(folder, one))
      .filter((path) => statSync(path).isFile());
  } catch {
    return undefined;
  }
}

function textOf(path: string): string | undefined {
  try {
    return statSync(path).size > convertedBytesMax ? undefined : readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** How includes of a format are read. */
interface IncludeFormat {
  /** The pattern of a directive that includes files; undefined for others. */
  readonly patternOf: (directive: Directive) => string | undefined;
  readonly parse: (text: string) => readonly Directive[];
  readonly read: ReadIncluded;
}

/**
 * Puts the directives of included files in place of the directives that include them, each with its
 * file. A directive whose files cannot be read stays. Throws `invalid` with the file and a line.
 */
export function withIncluded(
  block: readonly Directive[],
  format: IncludeFormat,
  depth = 0,
): readonly Directive[] {
  return block.flatMap((one): readonly Directive[] => {
    const pattern = depth < includeDepthMax ? format.patternOf(one) : undefined;
    const files = pattern === undefined ? undefined : format.read(pattern, one.file);
    if (files === undefined) {
      return [{ ...one, block: one.block && withIncluded(one.block, format, depth) }];
    }
    return files.flatMap(({ file, text }) => {
      const inner = inFile(file, () => format.parse(text));
      return withIncluded(ofFile(inner, file), format, depth + 1);
    });
  });
}

/** Runs a parser; a failure names the file. */
export function inFile<T>(file: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(error.code, `${file}: ${error.message}`);
  }
}

/** Directives with the name of their file. */
export function ofFile(block: readonly Directive[], file: string): readonly Directive[] {
  return block.map((one) => ({ ...one, file, block: one.block && ofFile(one.block, file) }));
}
