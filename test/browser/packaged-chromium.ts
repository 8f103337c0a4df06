import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { project } from '../tidy/sources.ts';

/** The path of a browser, and the environment that it needs. */
export interface Chromium {
  readonly executablePath: string;
  readonly env: Readonly<Record<string, string>>;
}

const packageFolder = dirname(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))));
const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
  readonly version: string;
};
const cache = join(project, `node_modules/.cache/chromium-${version}`);

/** Only the packaged font, so that pages have the same width on every machine. */
const fontsConf = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir></fontconfig>
`;

/**
 * Unpacks the browser of the npm package once for each clone, with the libraries and the font that a
 * machine without a desktop lacks; the package itself unpacks those only on AWS Lambda. It runs on
 * Linux on x64; elsewhere CHROMIUM names an installed browser.
 */
export async function unpackChromium(): Promise<Chromium> {
  const { CHROMIUM: installed } = process.env;
  if (installed !== undefined) return { executablePath: installed, env: environment() };
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Error(
      'The packaged Chromium is for Linux on x64: set CHROMIUM to the path of yours.',
    );
  }
  if (!existsSync(cache)) await unpackInto(cache);
  return {
    executablePath: join(cache, 'chromium'),
    env: {
      ...environment(),
      LD_LIBRARY_PATH: join(cache, 'al2023/lib'),
      FONTCONFIG_FILE: join(cache, 'fonts.conf'),
    },
  };
}

/** Why no browser starts here, for example because a library is missing; undefined if one does. */
export async function chromiumProblem(): Promise<string | undefined> {
  try {
    const { executablePath, env } = await unpackChromium();
    await promisify(execFile)(executablePath, ['--version'], { env });
    return undefined;
  } catch (error) {
    const lines = (error as Error).message.split('\n');
    return lines.find((line) => line !== '' && !line.startsWith('Command failed')) ?? lines[0];
  }
}

/** Unpacks into a temporary folder first: a parallel process may do the same, or a run may be aborted. */
async function unpackInto(folder: string): Promise<void> {
  await mkdir(dirname(folder), { recursive: true });
  const unfinished = await mkdtemp(`${folder}-`);
  const script = join(import.meta.dirname, 'unpack.ts');
  const archive = join(packageFolder, 'bin/al2023.tar.br');
  const env = { ...environment(), TMPDIR: unfinished };
  await promisify(execFile)(process.execPath, [script, archive], { env });
  await writeFile(join(unfinished, 'fonts.conf'), fontsConf);
  try {
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true });
    if (!existsSync(folder)) throw error;
  }
}

function environment(): Record<string, string> {
  const set = Object.entries(process.env).filter(([, value]) => value !== undefined);
  return Object.fromEntries(set) as Record<string, string>;
}
