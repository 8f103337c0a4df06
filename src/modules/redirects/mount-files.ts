import { join, resolve } from 'node:path';
import { checkSymlinks, readText } from '../../core/config/files.ts';
import { type ParsedSection, problemOf, type ReadFiles } from '../../core/config/ini-section.ts';
import { type LineProblem, printable, quoted } from '../../core/config/problem.ts';
import { redirectLinesMax } from '../../core/http/limits.ts';
import { MIB } from '../../core/values/units.ts';
import { type HeaderBlock, parseHeaderBlocks } from '../headers/header-blocks.ts';
import { type RedirectLine, parseRedirectLines } from './redirect-lines.ts';
import { redirectCircles } from './redirect-table.ts';

/** A file of redirects, such as `_redirects`. */
const redirectFileBytesMax = 16 * MIB;

/** A file of header fields, such as `_headers`, and the paths in it. */
const headerFileBytesMax = MIB;

/** Mistakes of such a file that are named. */
const siteFileMistakesMax = 20;

/** The files of redirects and header fields beside the files of a mount. */
export interface MountFiles {
  /** The text of `redirects`; undefined without the file. */
  readonly redirectsText: string | undefined;
  /** The content of `headers_file`. */
  readonly headerBlocks: readonly HeaderBlock[];
  /** What is wrong with both files, a sentence each. */
  readonly fileWarnings: readonly string[];
}

interface MountFileValues {
  readonly root: string;
  readonly symlinks: Parameters<typeof checkSymlinks>[2];
  readonly redirects: string | undefined;
  readonly headers_file: string | undefined;
}

/**
 * Reads the files that `redirects` and `headers_file` of a mount name. A file that does not exist
 * has no lines; every mistake is a warning, and the other lines work.
 */
export async function readMountFiles(
  values: MountFileValues,
  folder: string,
): Promise<{ readonly content: MountFiles; readonly files: readonly string[] }> {
  const root = resolve(folder, values.root);
  const warnings: string[] = [];
  const read = async (name: string | undefined, bytesMax: number) => {
    if (name === undefined) return undefined;
    const file = join(root, name);
    const found = await readText(file, { bytesMax });
    const refused = 'refused' in found ? found : await checkSymlinks(root, name, values.symlinks);
    if (refused === undefined) return { file, text: 'text' in found ? found.text : '' };
    if (refused.refused !== 'does not exist') warnings.push(`${file} ${refused.refused}.`);
    return undefined;
  };
  const redirects = await read(values.redirects, redirectFileBytesMax);
  const parsed = redirects && parseRedirectLines(redirects.text);
  if (redirects !== undefined && parsed !== undefined) {
    const { mistakes } = parsed;
    warnings.push(...mistakeTexts(redirects.file, mistakes));
    if (parsed.isTooLong) warnings.push(`${redirects.file} ${tooLong}: none of them is used.`);
    const circles = bounded(await redirectCircles(parsed.lines), (circle) => {
      const says = circleText(circle);
      return `${redirects.file}, ${says}, unless a file or page answers on the way.`;
    });
    warnings.push(...circles);
  }
  const headers = await read(values.headers_file, headerFileBytesMax);
  const blocks = headers && parseHeaderBlocks(headers.text);
  if (headers !== undefined && blocks !== undefined) {
    warnings.push(...mistakeTexts(headers.file, blocks.mistakes));
  }
  const isUsed = parsed !== undefined && parsed.lines.length > 0;
  return {
    content: {
      redirectsText: isUsed ? redirects?.text : undefined,
      headerBlocks: blocks?.blocks ?? [],
      fileWarnings: warnings,
    },
    files: [values.redirects, values.headers_file].flatMap((name) =>
      name === undefined ? [] : join(root, name),
    ),
  };
}

interface RedirectFileValues {
  readonly file: string | undefined;
}

/** Reads the file of a `[redirect.<name>]`, in which every mistake is a problem. */
export async function readRedirectFile(
  section: Pick<ParsedSection, 'line' | 'lines'> & { readonly values: RedirectFileValues },
  { folder }: { readonly folder: string },
): Promise<ReadFiles> {
  const { file } = section.values;
  if (file === undefined) return {};
  const files = [resolve(folder, file)];
  const problem = (message: string): LineProblem =>
    problemOf(section, 'file', `\`file\` = ${quoted(file)} ${message}`);
  const read = await readText(resolve(folder, file), { bytesMax: redirectFileBytesMax });
  if ('refused' in read) return { files, problems: [problem(read.refused)] };
  const { lines, mistakes, isTooLong } = parseRedirectLines(read.text);
  const problems = [
    ...(isTooLong ? [problem(tooLong)] : []),
    ...bounded(mistakes, (one) =>
      problem(`line ${one.line} ${printable(one.message, mistakeCharactersMax)}`),
    ),
    ...bounded(await redirectCircles(lines), (circle) => problem(circleText(circle))),
  ];
  return { files, problems, content: { fileText: read.text } };
}

const tooLong = `has more than ${redirectLinesMax} redirects (redirectLinesMax)`;

function circleText(circle: readonly RedirectLine[]): string {
  const [first = 0, ...others] = circle.map(({ line }) => line);
  if (others.length === 0) return `line ${first} leads to itself`;
  const shown = others.slice(0, siteFileMistakesMax).join(', ');
  const more =
    others.length > siteFileMistakesMax ? ` and ${others.length - siteFileMistakesMax} more` : '';
  return `line ${first} leads to itself, through line ${shown}${more}`;
}

function mistakeTexts(
  file: string,
  mistakes: readonly { readonly line: number; readonly message: string }[],
): readonly string[] {
  const says = bounded(mistakes, ({ line, message }) => {
    return `${file}, line ${line} ${printable(message, mistakeCharactersMax)}. It is not used.`;
  });
  const more = mistakes.length - says.length;
  return more > 0 ? [...says, `${file} has more lines that are not used: ${more}.`] : says;
}

const mistakeCharactersMax = 200;

/** The first items, each as a text; a file of generated lines may have the same mistake in all. */
function bounded<T, R>(items: readonly T[], write: (item: T) => R): readonly R[] {
  return items.slice(0, siteFileMistakesMax).map(write);
}
