import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SharedLimit, type Shares } from '../../core/fair/shared-limit.ts';
import { SharedTasks } from '../../core/fair/shared-tasks.ts';
import type { Log } from '../../core/report/log.ts';
import { Failure } from '../../core/values/failure.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { MIB } from '../../core/values/units.ts';
import { type AssetFiles, variantsFolder } from './asset-files.ts';
import type { Asset } from './asset.ts';
import { type PictureMetadata, PictureProcess } from './picture-process.ts';
import {
  type PictureSize,
  type PictureType,
  hasVariants,
  variantType,
  variantWidth,
} from './picture-request.ts';

/** A picture with a longer side has no variants: the work on one row grows with it. */
const variantSideMax = 65_535;

/** A picture that takes more bytes of memory to decode has no variants. */
const variantUnpackedBytesMax = 256 * MIB;

/** A longer file has no variants. */
const variantSourceBytesMax = 64 * MIB;

/** Variants that wait for their turn, and how long; otherwise the whole picture is sent. */
const variantsWaitingMax = 64;
const variantWaitMs = 5_000;

/** Pictures whose sizes, or failures, a process keeps in memory. */
const knownPicturesMax = 10_000;

/** The share of its room that the folder of variants is reduced to when it is full. */
const variantsKeptShare = 0.9;

/** Makes smaller pictures, in the formats that clients accept (docs/how-to/assets.md). */
export interface Variants {
  /** Whether this server can make them. */
  readonly isAvailable: () => Promise<boolean>;
  /**
   * The file of the variant of a picture, as an asset whose file has the name `sha256`; undefined
   * if the whole picture is to be sent. Never rejects.
   */
  find(asset: Asset, wanted: WantedPicture): Asset | undefined | Promise<Asset | undefined>;
  /** Sets the bytes that all variants may have on the disk; 0 for none. */
  limit(bytesMax: number): void;
}

interface VariantsParts {
  readonly files: Pick<AssetFiles, 'folder' | 'path'>;
  /** `[asset] variants`, as `limit` takes it. */
  readonly bytesMax: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

/** A picture as a request asks for it. */
export interface WantedPicture {
  readonly size: PictureSize;
  /** The field Accept. */
  readonly accept: string | undefined;
  /** The address of the client. */
  readonly address: string;
  /** Whether the file that was found last is no longer there. */
  readonly isGone?: true;
}

/** A variant that was found, or the whole picture, and when. */
interface FoundVariant {
  readonly variant: Asset | undefined;
  readonly atMs: number;
}

/** What a file says of its picture: its size as it is shown, and whether it moves. */
interface Measured {
  readonly whole: { readonly width: number; readonly height: number };
  readonly isAnimated: boolean;
  /** Whether it would take too much memory to make it smaller. */
  readonly isTooLarge: boolean;
}

/**
 * Creates the variants in the folder of the assets. They are made one after the other, in a process
 * of their own.
 */
export function createVariants({ files, bytesMax, now, log }: VariantsParts): Variants {
  const found = createLruCache<FoundVariant>(knownPicturesMax);
  const pictureProcess = new PictureProcess();
  const pictures = createMeasure(files, pictureProcess);
  const unusable = createLruCache<true>(knownPicturesMax);
  const folder = new VariantsFolder(join(files.folder, variantsFolder), now, bytesMax);
  const tasks = new SharedTasks<number>(new SharedLimit(turns));

  async function look(
    asset: Asset,
    { size, type, address }: SizeAndType,
  ): Promise<Asset | undefined> {
    const version = await pictureProcess.version();
    if (version === undefined) return undefined;
    const { name, sha256, contenttype } = asset;
    const measured = pictures.known(sha256) ?? (await pictures.read(sha256));
    const { whole, isAnimated, isTooLarge } = measured;
    const width = variantWidth(size, whole);
    const isWhole = width === whole.width && type === contenttype;
    const note = (variant: Asset | undefined): Asset | undefined => {
      found.set(keyOf(sha256, width, type), { variant, atMs: now() });
      return variant;
    };
    if (isAnimated || isWhole || isTooLarge) return note(undefined);
    const file = `${sha256}-${width}-${version}.${type.slice('image/'.length)}`;
    const source = files.path(sha256);
    const target = folder.path(file);
    const job = { source, target, width, type, bytes: asset.bytes };
    const make = (): Promise<number> => encode(pictureProcess, job, folder);
    const client = { keyId: undefined, address };
    const bytes = (await folder.use(file)) ?? (await tasks.run(target, client, make));
    if (bytes === 0) return note(undefined);
    const stored = join(variantsFolder, file);
    return note({ name, bytes, contenttype: type, sha256: stored });
  }

  async function findAnew(asset: Asset, wanted: SizeAndType): Promise<Asset | undefined> {
    try {
      return await look(asset, wanted);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (error instanceof Failure || code === 'ENOENT') return undefined;
      // A damaged picture, or one that takes too much memory or time; not a full disk.
      if (code === undefined) unusable.set(asset.sha256, true);
      const { name } = asset;
      log.warn({ err: error, asset: name }, 'cannot make a smaller picture; the whole one is sent');
      return undefined;
    }
  }

  return {
    isAvailable: async () => folder.bytesMax > 0 && (await pictureProcess.version()) !== undefined,
    limit(bytes) {
      folder.bytesMax = bytes;
    },
    find(asset, { size, accept, address, isGone = false }) {
      const { contenttype, bytes, sha256 } = asset;
      if (!hasVariants(contenttype) || bytes > variantSourceBytesMax) return undefined;
      if (folder.bytesMax === 0 || unusable.has(sha256)) return undefined;
      const type = variantType(accept, contenttype);
      const whole = pictures.known(sha256)?.whole;
      const known = whole && found.get(keyOf(sha256, variantWidth(size, whole), type));
      const isFresh = known !== undefined && !isGone && now() - known.atMs < notedEveryMs;
      return isFresh ? known.variant : findAnew(asset, { size, type, address });
    },
  };
}

/** Reads the size of each picture once, whatever sizes strangers ask for. */
function createMeasure(files: VariantsParts['files'], pictureProcess: PictureProcess) {
  const known = createLruCache<Measured>(knownPicturesMax);
  const running = new Map<string, Promise<Measured>>();
  async function read(sha256: string): Promise<Measured> {
    const source = files.path(sha256);
    // Not there yet, at a node that gets its files from a centre.
    await stat(source);
    const metadata = await pictureProcess.read(source);
    const { pages = 1, autoOrient: whole, width, height } = metadata;
    const isLong = Math.max(width, height) > variantSideMax;
    const isTooLarge = isLong || unpackedBytesOf(metadata) > variantUnpackedBytesMax;
    const made = { whole, isAnimated: pages > 1, isTooLarge };
    known.set(sha256, made);
    return made;
  }
  return {
    known: (sha256: string): Measured | undefined => known.get(sha256),
    read(sha256: string): Promise<Measured> {
      const begun = running.get(sha256);
      if (begun !== undefined) return begun;
      const reading = read(sha256).finally(() => running.delete(sha256));
      running.set(sha256, reading);
      return reading;
    },
  };
}

/**
 * The bytes that a decoder needs at most, as measured with libvips. A wide picture is in memory
 * whole while it becomes narrow, one that is turned upright and an interlaced PNG always are. A
 * progressive JPEG is there as coefficients of 2 bytes besides, of which one with `4:2:0` has half
 * as many; WebP and AVIF have whole frames.
 */
export function unpackedBytesOf({
  format,
  isProgressive,
  chromaSubsampling,
  ...picture
}: PictureMetadata): number {
  const { width, height, channels, depth } = picture;
  const pixels = width * height;
  const isDeep = depth !== 'uchar';
  if (format === 'heif') return pixels * (isDeep ? 22 : 14);
  if (format === 'webp') return pixels * 5;
  if (format === 'jpeg' && isProgressive) {
    const coefficients = chromaSubsampling === '4:2:0' ? channels / 2 : channels;
    return pixels * (2 * coefficients + 2);
  }
  return pixels * channels * (isDeep ? 2 : 1);
}

function keyOf(sha256: string, width: number, type: PictureType): string {
  return `${sha256} ${width} ${type}`;
}

interface SizeAndType {
  readonly size: PictureSize;
  readonly type: PictureType;
  /** The address of the client. */
  readonly address: string;
}

/** A variant that is to be made. */
interface Job {
  readonly source: string;
  readonly target: string;
  readonly width: number;
  readonly type: PictureType;
  /** Bytes of the whole picture. */
  readonly bytes: number;
}

/** Variants are made one after the other. */
const turns: Shares = {
  what: 'pictures to make smaller',
  held: 'short',
  max: 1,
  waiting: { max: variantsWaitingMax, ms: variantWaitMs },
};

/** Encodes a variant. A file of 0 bytes says that it would be no smaller than the picture. */
async function encode(
  pictureProcess: PictureProcess,
  { source, target, width, type, bytes }: Job,
  folder: VariantsFolder,
): Promise<number> {
  const made = await pictureProcess.make({ source, width, type });
  const fits = fileBytes(made.length) <= folder.bytesMax * variantsKeptShare;
  const isWorth = made.length < bytes && fits;
  const content = isWorth ? made : Buffer.alloc(0);
  await folder.put(target, content);
  return content.length;
}

/** The files of variants: those that were used last stay, up to a number of bytes. */
class VariantsFolder {
  readonly #folder: string;
  readonly #now: () => number;
  bytesMax: number;
  /** An estimate, because other processes write here, too; undefined before the first count. */
  #bytes: number | undefined;

  constructor(folder: string, now: () => number, bytesMax: number) {
    this.#folder = folder;
    this.#now = now;
    this.bytesMax = bytesMax;
  }

  path(file: string): string {
    return join(this.#folder, file);
  }

  /** The bytes of a file, which is noted as used; undefined if there is none. */
  async use(file: string): Promise<number | undefined> {
    const path = this.path(file);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined) return undefined;
    const now = this.#now();
    if (now - found.mtimeMs > notedEveryMs) {
      await utimes(path, now / 1000, now / 1000).catch(() => undefined);
    }
    return found.size;
  }

  /** Writes a file, which appears as a whole. */
  async put(path: string, content: Buffer): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const draft = join(this.#folder, `.${process.pid}-${randomBytes(8).toString('hex')}`);
    try {
      await writeFile(draft, content, { mode: 0o600 });
      await rename(draft, path);
    } catch (error) {
      await rm(draft, { force: true });
      throw error;
    }
    this.#bytes = this.#bytes === undefined ? undefined : this.#bytes + fileBytes(content.length);
    if (this.#bytes === undefined || this.#bytes > this.bytesMax) await this.#reduce();
  }

  /** Counts the files, and removes those that were not used for the longest time. */
  async #reduce(): Promise<void> {
    const files = [];
    for (const name of await readdir(this.#folder)) {
      const path = join(this.#folder, name);
      const found = await stat(path).catch(() => undefined);
      if (found !== undefined)
        files.push({ path, bytes: fileBytes(found.size), at: found.mtimeMs });
    }
    let bytes = files.reduce((sum, one) => sum + one.bytes, 0);
    const target = bytes > this.bytesMax ? this.bytesMax * variantsKeptShare : Infinity;
    for (const file of files.toSorted((one, other) => one.at - other.at)) {
      if (bytes <= target) break;
      await rm(file.path, { force: true });
      bytes -= file.bytes;
    }
    this.#bytes = bytes;
  }
}

/** How exactly a file says when it was used last. */
const notedEveryMs = 3_600_000;

/** What a file takes on a disk with blocks of 4 KiB. */
function fileBytes(length: number): number {
  return Math.max(1, Math.ceil(length / 4_096)) * 4_096;
}
