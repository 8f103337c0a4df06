import { readdir } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, resolve } from 'node:path';
import { MIB } from '../values/units.ts';
import { readText } from './files.ts';
import { configFileBytesMax } from './limits.ts';
import { type LineProblem, quoted } from './problem.ts';
import type { ValueParser } from './values.ts';

/** The files of `[server] include`, and their bytes in all. */
export const includedFilesMax = 1_000;
const includedBytesMax = 16 * MIB;

/** More lines than any ini file has, since one has at most `configFileBytesMax` bytes. */
const linesPerFile = 2 ** 21;

/** A line of an ini file or of a file that it includes. */
interface LinePlace {
  /** 0 for the ini file itself, then the included files in their order. */
  readonly file: number;
  /** From 1; 0 for the file as a whole. */
  readonly line: number;
}

/** The number of a line among the lines of all files, which `placeOf` takes apart again. */
export function lineNumber({ file, line }: LinePlace): number {
  return file * linesPerFile + line;
}

/** The file and line of a `lineNumber`. */
export function placeOf(number: number): LinePlace {
  return { file: Math.floor(number / linesPerFile), line: number % linesPerFile };
}

/** A file that the ini file includes. */
export interface IncludedFile {
  /** As problems name it. */
  readonly name: string;
  /** The absolute path. */
  readonly path: string;
  readonly text: string;
}

/** The pattern of `[server] include`: a file, or files of one folder. */
export const includePattern: ValueParser<string> = (value) => {
  const isPattern = !dirname(value).includes('*') && !/[/\\]$/.test(value);
  return isPattern && value !== '.' && value !== '..'
    ? { value }
    : { refused: 'write a file, or files of one folder such as `sites/*.ini`' };
};

/** A pattern with the folder whose files it names. */
export interface IncludePattern {
  /** Absolute. */
  readonly folder: string;
  /** The name of a file; each `*` stands for any text. */
  readonly name: string;
}

/** The patterns of `[server] include`; `folder` is the base of relative ones. */
export function includePatterns(
  patterns: readonly string[],
  folder: string,
): readonly IncludePattern[] {
  return patterns.map((pattern) => ({
    folder: resolve(folder, dirname(pattern)),
    name: basename(pattern),
  }));
}

/**
 * Whether a pattern names a file of its folder. As in a shell, a `*` at the start does not stand
 * for hidden files.
 */
export function isIncluded(pattern: string, name: string): boolean {
  if (name.startsWith('.') && !pattern.startsWith('.')) return false;
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}

/** The files that the patterns name, in the order of their names, each once. */
async function findFiles(pattern: string, folder: string): Promise<readonly string[]> {
  const name = basename(pattern);
  if (!name.includes('*')) return [pattern];
  const names = await readdir(resolve(folder, dirname(pattern))).catch(() => []);
  const found = names.filter((one) => isIncluded(name, one)).toSorted();
  return found.map((one) => join(dirname(pattern), one));
}

/** The files of `[server] include`, with the problems of reading them. */
interface Included {
  readonly files: readonly IncludedFile[];
  readonly problems: readonly LineProblem[];
}

/**
 * Reads the files that `[server] include` of an ini file names. A pattern with `*` may name no
 * file. While a configuration is in use (`isReload`), an empty file is refused: it may be half
 * written.
 */
export async function readIncluded(
  patterns: readonly string[],
  { file, line, isReload }: { file: string; line: number; isReload: boolean },
): Promise<Included> {
  const folder = dirname(resolve(file));
  const found = await Promise.all(patterns.map((pattern) => findFiles(pattern, folder)));
  const written = new Map(found.flat().map((path) => [resolve(folder, path), path]));
  // `include = *.ini` names the ini file, too.
  const paths = [...written.keys()].filter((path) => path !== resolve(file));
  if (paths.length > includedFilesMax) {
    const message = `\`include\` names ${paths.length} files: at most ${includedFilesMax} may be`;
    return { files: [], problems: [{ line, message }] };
  }
  const files: IncludedFile[] = [];
  const problems: LineProblem[] = [];
  let bytesLeft = includedBytesMax;
  for (const [at, path] of paths.entries()) {
    const way = written.get(path) ?? path;
    const name = isAbsolute(way) ? way : join(dirname(file), way);
    const read = await readText(path, { bytesMax: Math.min(configFileBytesMax, bytesLeft) });
    const isEmpty = isReload && 'text' in read && read.text.trim() === '';
    const refused = isEmpty ? halfWritten : 'refused' in read ? read.refused : undefined;
    const text = 'text' in read ? read.text : '';
    files.push({ name, path, text });
    bytesLeft -= Buffer.byteLength(text);
    if (refused === undefined) continue;
    const within = 'line' in read ? (read.line ?? 0) : 0;
    const message = `the included file ${refused}`;
    problems.push({ line: lineNumber({ file: at + 1, line: within }), message });
  }
  return { files, problems };
}

const halfWritten =
  'is empty: it may be half written. Remove the file, or comment out its lines, to end its site';

/**
 * Where an earlier line is, for a message about line `from`: `line 12`, or `line 12 of sites/a.ini`
 * in another file. `files` has the names of the included files.
 */
export function lineWords(line: number, from: number, files: readonly string[]): string {
  const place = placeOf(line);
  const words = `line ${place.line}`;
  if (place.file === placeOf(from).file) return words;
  const name = place.file === 0 ? 'the ini file' : quoted(files[place.file - 1] ?? '');
  return `${words} of ${name}`;
}
