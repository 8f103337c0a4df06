import { mkdtempSync, rmSync } from 'node:fs';
import { link, mkdir, open, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthority } from '../test/certificates.ts';
import { killAll } from './processes.ts';
import {
  hugeBytes,
  largeBytes,
  smallBytes,
  textBytes,
  visitFileBytes,
  visitFiles,
} from './scenarios.ts';
import type { RuleFields } from './servers/waymark.ts';

/**
 * A temporary folder; when this process ends, it removes the folder and kills all its processes.
 */
export interface Workspace {
  readonly folder: string;
  /** Waymark's files: those of `/file/`. */
  readonly diskRoot: string;
  /** The files of the other servers: the same, and the pages that Waymark stores. */
  readonly peerRoot: string;
  /** The files of the source. */
  readonly sourceRoot: string;
  /** Makes a certificate for 127.0.0.1; resolves to the paths of its files. */
  readonly tlsFiles: () => Promise<{ readonly cert: string; readonly key: string }>;
  /** Makes a folder for a server. */
  readonly folderFor: (name: string) => Promise<string>;
}

const mebibyte = 1024 * 1024;
const pieces = { '1k.html': content(smallBytes), '100k.html': content(largeBytes) };

/** Makes the folder with the files for all servers, below `parent`. */
export async function createWorkspace(parent = tmpdir()): Promise<Workspace> {
  const folder = mkdtempSync(join(parent, 'waymark-bench-'));
  process.once('exit', () => {
    killAll();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });
  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => process.exit(code));
  }
  const folderFor = async (name: string): Promise<string> => {
    const made = join(folder, name);
    await mkdir(made, { recursive: true });
    return made;
  };
  const [diskRoot, peerRoot, sourceRoot] = [
    await folderFor('disk'),
    await folderFor('peers'),
    await folderFor('fetched'),
  ];
  await writePieces(join(diskRoot, 'file'));
  await writePieces(join(peerRoot, 'file'));
  await writeVisit(join(diskRoot, 'file', 'visit'));
  await writeVisit(join(peerRoot, 'file', 'visit'));
  await writePieces(join(peerRoot, 'page'));
  await writePieces(join(sourceRoot, 'fetched'));
  await writePieces(join(sourceRoot, 'kept'));
  await mkdir(join(sourceRoot, 'packed'));
  await writeFile(join(sourceRoot, 'packed', '20k.html'), await text(textBytes));
  const tlsFiles = async (): Promise<{ readonly cert: string; readonly key: string }> => {
    const { cert, key } = await (await createAuthority()).issue(['127.0.0.1']);
    const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    await writeFile(files.cert, cert);
    await writeFile(files.key, key, { mode: 0o600 });
    return files;
  };
  return { folder, diskRoot, peerRoot, sourceRoot, folderFor, tlsFiles };
}

/** Adds the large file, only for scenarios that request it. */
export async function addHugeFile({ diskRoot, peerRoot }: Workspace): Promise<void> {
  const name = join('file', '100m.html');
  const file = await open(join(diskRoot, name), 'wx');
  const piece = content(mebibyte);
  for (let written = 0; written < hugeBytes; written += mebibyte) await file.write(piece);
  await file.close();
  await link(join(diskRoot, name), join(peerRoot, name));
}

/**
 * The page rules of the benchmark: `/page/` is stored, `/fetched/` and `/packed/` come from the
 * source, and `/kept/` from the cache.
 */
export function rulesFor(source: string): readonly RuleFields[] {
  return [
    ...Object.entries(pieces).map(([name, text]) => ({
      origin: '*',
      path: `/page/${name}`,
      kind: 'content',
      content: text,
    })),
    {
      origin: '*',
      path: '/fetched/*',
      kind: 'content.fetch',
      enginedata: { source: `${source}/fetched/*` },
    },
    {
      origin: '*',
      path: '/packed/*',
      kind: 'content.fetch',
      enginedata: { source: `${source}/packed/*` },
    },
    {
      origin: '*',
      path: '/kept/*',
      kind: 'content.fetch',
      enginedata: { source: `${source}/kept/*` },
    },
  ];
}

async function writePieces(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries(pieces)) await writeFile(join(folder, name), text);
}

/** Writes a page, and the files beside it. */
async function writeVisit(folder: string): Promise<void> {
  await mkdir(folder);
  await writeFile(join(folder, 'page.html'), content(smallBytes));
  for (let file = 1; file <= visitFiles; file += 1) {
    await writeFile(join(folder, `${file}.js`), content(file * visitFileBytes));
  }
}

/** Text that a person wrote, so that it compresses like a page. */
async function text(bytes: number): Promise<Buffer> {
  const written = await readFile(new URL('../CHANGELOG.md', import.meta.url));
  return written.subarray(0, bytes);
}

/** A text with this number of ASCII characters. */
function content(bytes: number): string {
  const sentence = '<p>A page that is as long as it has to be, and says nothing else.</p>\n';
  return sentence.repeat(Math.ceil(bytes / sentence.length)).slice(0, bytes);
}
