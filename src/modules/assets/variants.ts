import { randomBytes } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Metadata, SharpOptions } from 'sharp';
import { SharedLimit, type Shares } from '../../core/fair/shared-limit.ts';
import { SharedTasks } from '../../core/fair/shared-tasks.ts';
import { createLruCache } from '../../core/values/lru-cache.ts';
import { Failure } from '../../core/values/failure.ts';
import type { Log } from '../../core/report/log.ts';
import type { Asset } from './asset.ts';
import { variantsFolder, type AssetFiles } from './asset-files.ts';
import {
  knownPicturesMax,
  variantPixelsMax,
  variantSecondsMax,
  variantSourceBytesMax,
  variantUnpackedBytesMax,
  variantsKeptShare,
  variantsWaitingMax,
  variantWaitMs,
} from './limits.ts';
import {
  hasVariants,
  variantType,
  variantWidth,
  type PictureSize,
  type PictureType,
} from './picture-request.ts';

type Sharp = typeof import('sharp').default;

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
  /** About how many bytes of memory its decoder takes. */
  readonly unpackedBytes: number;
}

/** Creates the variants in the folder of the assets. They are made one after the other. */
export function createVariants({ files, bytesMax, now, log }: VariantsParts): Variants {
  const found = createLruCache<FoundVariant>(knownPicturesMax);
  const pictures = createMeasure(files);
  const unusable = createLruCache<true>(knownPicturesMax);
  const folder = new VariantsFolder(join(files.folder, variantsFolder), now, bytesMax);
  const tasks = new SharedTasks<number>(new SharedLimit(turns));

  async function look(
    asset: Asset,
    { size, type, address }: SizeAndType,
  ): Promise<Asset | undefined> {
    const sharp = await loadSharp();
    if (sharp === undefined) return undefined;
    const { name, sha256, contenttype } = asset;
    const measured = pictures.known(sha256) ?? (await pictures.read(sharp, sha256));
    const { whole, isAnimated, unpackedBytes } = measured;
    const width = variantWidth(size, whole);
    const isWhole = width === whole.width && type === contenttype;
    const note = (variant: Asset | undefined): Asset | undefined => {
      found.set(keyOf(sha256, width, type), { variant, atMs: now() });
      return variant;
    };
    const isTooLarge = unpackedBytes > variantUnpackedBytesMax;
    if (isAnimated || isWhole || isTooLarge) return note(undefined);
    const file = `${sha256}-${width}-${sharp.versions.vips}.${type.slice('image/'.length)}`;
    const source = files.path(sha256);
    const target = folder.path(file);
    const job = { source, target, width, type, bytes: asset.bytes };
    const make = (): Promise<number> => encode(sharp, job, folder);
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
      // A damaged picture, or one that would unpack to too many pixels; not a full disk.
      if (code === undefined) unusable.set(asset.sha256, true);
      const { name } = asset;
      log.warn({ err: error, asset: name }, 'cannot make a smaller picture; the whole one is sent');
      return undefined;
    }
  }

  return {
    isAvailable: async () => folder.bytesMax > 0 && (await loadSharp()) !== undefined,
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
function createMeasure(files: VariantsParts['files']) {
  const known = createLruCache<Measured>(knownPicturesMax);
  const running = new Map<string, Promise<Measured>>();
  async function read(sharp: Sharp, sha256: string): Promise<Measured> {
    const source = files.path(sha256);
    // Not there yet, at a node that gets its files from a centre.
    await stat(source);
    const metadata = await sharp(source, guarded).metadata();
    const { pages = 1, autoOrient: whole } = metadata;
    const made = { whole, isAnimated: pages > 1, unpackedBytes: unpackedBytesOf(metadata) };
    known.set(sha256, made);
    return made;
  }
  return {
    known: (sha256: string): Measured | undefined => known.get(sha256),
    read(sharp: Sharp, sha256: string): Promise<Measured> {
      const begun = running.get(sha256);
      if (begun !== undefined) return begun;
      const reading = read(sharp, sha256).finally(() => running.delete(sha256));
      running.set(sha256, reading);
      return reading;
    },
  };
}

/**
 * The bytes that a decoder needs for all of a picture, as measured with libvips: an interlaced PNG
 * comes in seven passes, a progressive JPEG is in memory as coefficients, and WebP and AVIF have
 * whole frames. Other pictures are read row by row.
 */
function unpackedBytesOf({ format, isProgressive, ...picture }: Metadata): number {
  const { width, height, channels, depth } = picture;
  const pixels = width * height;
  const isDeep = depth === 'ushort';
  if (format === 'heif') return pixels * (isDeep ? 22 : 14);
  if (format === 'webp') return pixels * 5;
  if (!isProgressive) return 0;
  return format === 'jpeg' ? pixels * 3 : pixels * channels * (isDeep ? 2 : 1);
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

/** Guards against pictures that unpack to much, and against damaged ones. */
const guarded: SharpOptions = {
  limitInputPixels: variantPixelsMax,
  failOn: 'error',
  sequentialRead: true,
};

/** The decoders of libvips that read what `hasVariants` names; AVIF is HEIF. */
const loaders = ['Jpeg', 'Png', 'Webp', 'Heif'] as const;

let loading: Promise<Sharp | undefined> | undefined;

/** The package `sharp`, which is optional; undefined where it is not installed. */
function loadSharp(): Promise<Sharp | undefined> {
  loading ??= import('sharp').then(
    ({ default: sharp }) => {
      // One thread for all pictures: the others serve.
      sharp.concurrency(1);
      sharp.cache(false);
      // A file can pass for a picture, and be an SVG or TIFF for libvips.
      sharp.block({ operation: ['VipsForeignLoad'] });
      sharp.unblock({ operation: loaders.map((format) => `VipsForeignLoad${format}`) });
      return sharp;
    },
    () => undefined,
  );
  return loading;
}

/** The options of the encoders: what the eye does not see, and little CPU time. */
const encoders = {
  'image/avif': { quality: 55, effort: 2 },
  'image/webp': { quality: 78, effort: 4 },
  'image/jpeg': { quality: 80, progressive: true },
  'image/png': { compressionLevel: 9 },
} as const;

/** Encodes a variant. A file of 0 bytes says that it would be no smaller than the picture. */
async function encode(
  sharp: Sharp,
  { source, target, width, type, bytes }: Job,
  folder: VariantsFolder,
): Promise<number> {
  // The colours become those of sRGB, and the metadata, such as the place of a photo, is left out.
  const made = await sharp(source, guarded)
    .autoOrient()
    .resize({ width, withoutEnlargement: true })
    .timeout({ seconds: variantSecondsMax })
    .toFormat(type.slice('image/'.length) as 'avif', encoders[type])
    .toBuffer();
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
