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
import { type PictureMetadata, PictureProcess, PictureProcessEnded } from './picture-process.ts';
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

/** Pictures that wait for their turn; the whole one is sent of others. */
const variantsWaitingMax = 256;

/** How long a request waits for a variant; otherwise the whole picture is sent. */
const variantWaitMs = 5_000;

/** How long a picture has no variants that ended the process: it may have been no fault of it. */
const endedMs = 600_000;

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
  readonly pictureProcess?: PictureProcess;
  /** How long a request waits. */
  readonly waitMs?: number;
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

interface Whole {
  readonly width: number;
  readonly height: number;
}

/** What a file says of its picture: its size as it is shown, and whether it moves. */
interface Measured {
  readonly whole: Whole;
  readonly isAnimated: boolean;
  /** Whether it would take too much memory to make it smaller. */
  readonly isTooLarge: boolean;
}

/** Creates the variants in the folder of the assets. */
export function createVariants({
  waitMs = variantWaitMs,
  pictureProcess = new PictureProcess(),
  ...parts
}: VariantsParts): Variants {
  const { now, log } = parts;
  const folder = new VariantsFolder(join(parts.files.folder, variantsFolder), now, parts.bytesMax);
  const maker = new VariantsMaker({ ...parts, pictureProcess, folder });
  /** Until when a picture cannot be made smaller. */
  const unusable = createLruCache<number>(knownPicturesMax);
  /** Pictures for which somebody has waited long enough. */
  const late = new Set<string>();

  async function findAnew(asset: Asset, wanted: SizeAndType): Promise<Asset | undefined> {
    const { name, sha256 } = asset;
    try {
      // What was made is there, whatever happens to the process now.
      const made = await maker.made(asset, wanted);
      if (made !== undefined) return made.variant;
      if (late.has(sha256) || (unusable.get(sha256) ?? 0) > now()) return undefined;
      return await maker.make(asset, wanted);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (error instanceof Failure || code === 'ENOENT') return undefined;
      // A damaged picture, or one that takes too much memory or time; not a full disk.
      const isEnded = error instanceof PictureProcessEnded;
      if (code === undefined) unusable.set(sha256, isEnded ? now() + endedMs : Infinity);
      log.warn({ err: error, asset: name }, 'cannot make a smaller picture; the whole one is sent');
      return undefined;
    }
  }

  /** The work goes on if it takes longer: what it makes is there for later requests. */
  async function findSoon(asset: Asset, wanted: SizeAndType): Promise<Asset | undefined> {
    const { sha256 } = asset;
    const finding = findAnew(asset, wanted);
    const waited = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      late.add(sha256);
      void finding.then(() => late.delete(sha256));
      waited.resolve(undefined);
    }, waitMs).unref();
    const variant = await Promise.race([finding, waited.promise]);
    clearTimeout(timer);
    return variant;
  }

  return {
    isAvailable: async () => folder.bytesMax > 0 && (await pictureProcess.version()) !== undefined,
    limit(bytes) {
      folder.bytesMax = bytes;
    },
    find(asset, { size, accept, address, isGone = false }) {
      const { contenttype, bytes } = asset;
      if (!hasVariants(contenttype) || bytes > variantSourceBytesMax) return undefined;
      if (folder.bytesMax === 0) return undefined;
      const wanted = { size, type: variantType(accept, contenttype), address };
      const known = isGone ? undefined : maker.known(asset, wanted);
      return known === undefined ? findSoon(asset, wanted) : known.variant;
    },
  };
}

interface MakerParts extends Pick<VariantsParts, 'files' | 'now'> {
  readonly pictureProcess: PictureProcess;
  readonly folder: VariantsFolder;
}

/**
 * Finds and makes variants. Pictures are read and made one after the other, so that the process
 * ends with the picture that is the cause.
 */
class VariantsMaker {
  readonly #parts: MakerParts;
  readonly #found = createLruCache<FoundVariant>(knownPicturesMax);
  readonly #measured = createLruCache<Measured>(knownPicturesMax);
  readonly #readings: SharedTasks<Measured>;
  readonly #makings: SharedTasks<number>;

  constructor(parts: MakerParts) {
    this.#parts = parts;
    const limit = new SharedLimit(turns);
    this.#readings = new SharedTasks(limit);
    this.#makings = new SharedTasks(limit);
  }

  /** What was found lately. */
  known({ sha256 }: Asset, { size, type }: SizeAndType): FoundVariant | undefined {
    const known = this.#found.get(keyOf(sha256, this.#likelyWidth(sha256, size), type));
    return known !== undefined && this.#parts.now() - known.atMs < notedEveryMs ? known : undefined;
  }

  /** What is on the disk. */
  async made(asset: Asset, { size, type }: SizeAndType): Promise<FoundVariant | undefined> {
    const width = this.#likelyWidth(asset.sha256, size);
    const file = await this.#file(asset, width, type);
    if (file === undefined) return undefined;
    const bytes = await this.#parts.folder.use(file);
    return bytes === undefined ? undefined : this.#note(asset, { width, type, file, bytes });
  }

  /** Makes a variant, when it is the turn of the client; undefined for the whole picture. */
  async make(asset: Asset, { size, type, address }: SizeAndType): Promise<Asset | undefined> {
    const { files, folder, pictureProcess } = this.#parts;
    const { sha256, contenttype, bytes: wholeBytes } = asset;
    const client = { keyId: undefined, address };
    const read = (): Promise<Measured> => this.#read(sha256);
    const { whole, isAnimated, isTooLarge } =
      this.#measured.get(sha256) ?? (await this.#readings.run(sha256, client, read));
    const width = variantWidth(size, whole);
    const file = await this.#file(asset, width, type);
    if (file === undefined) return undefined;
    const isWhole = width === whole.width && type === contenttype;
    if (isAnimated || isWhole || isTooLarge) {
      return this.#note(asset, { width, type, file, bytes: 0 }).variant;
    }
    const target = folder.path(file);
    const job = { source: files.path(sha256), target, width, type, bytes: wholeBytes };
    const make = (): Promise<number> => encode(pictureProcess, job, folder);
    const bytes = (await folder.use(file)) ?? (await this.#makings.run(target, client, make));
    return this.#note(asset, { width, type, file, bytes }).variant;
  }

  /** Reads the size of a picture once, whatever sizes strangers ask for. */
  async #read(sha256: string): Promise<Measured> {
    const source = this.#parts.files.path(sha256);
    // Not there yet, at a node that gets its files from a centre.
    await stat(source);
    const measured = measuredOf(await this.#parts.pictureProcess.read(source));
    this.#measured.set(sha256, measured);
    return measured;
  }

  /** The width of a variant; of a picture that was not read yet, the width if it is no smaller. */
  #likelyWidth(sha256: string, size: PictureSize): number {
    return variantWidth(size, this.#measured.get(sha256)?.whole ?? unmeasured);
  }

  /** The name of a file; undefined if this server cannot make variants. */
  async #file({ sha256 }: Asset, width: number, type: PictureType): Promise<string | undefined> {
    const version = await this.#parts.pictureProcess.version();
    return version && `${sha256}-${width}-${version}.${type.slice('image/'.length)}`;
  }

  /** Notes a variant; one of 0 bytes stands for the whole picture. */
  #note({ name, sha256 }: Asset, { width, type, file, bytes }: NotedFile): FoundVariant {
    const stored = { name, bytes, contenttype: type, sha256: join(variantsFolder, file) };
    const found = { variant: bytes === 0 ? undefined : stored, atMs: this.#parts.now() };
    this.#found.set(keyOf(sha256, width, type), found);
    return found;
  }
}

interface NotedFile {
  readonly width: number;
  readonly type: PictureType;
  readonly file: string;
  readonly bytes: number;
}

/** The size of a picture that was not read yet: every width is smaller than it. */
const unmeasured: Whole = { width: Infinity, height: Infinity };

function measuredOf(metadata: PictureMetadata): Measured {
  const { pages = 1, autoOrient: whole, width, height } = metadata;
  const isLong = Math.max(width, height) > variantSideMax;
  const isTooLarge = isLong || unpackedBytesOf(metadata) > variantUnpackedBytesMax;
  return { whole, isAnimated: pages > 1, isTooLarge };
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

/** Pictures are read and made one after the other. */
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
