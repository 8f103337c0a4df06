import { type ChildProcess, fork } from 'node:child_process';
import { isSea } from 'node:sea';
import type { Metadata, SharpOptions } from 'sharp';
import { MIB } from '../../core/values/units.ts';
import type { PictureType } from './picture-request.ts';

/** A picture with more pixels has no variants: a small file can unpack to gigabytes. */
const variantPixelsMax = 64_000_000;

/**
 * The memory of the process that makes pictures, which ends with more: enough for the decoder, the
 * encoder and the process itself.
 */
const pictureProcessBytesMax = 768 * MIB;

/** How long that process stays without a picture. */
const pictureProcessIdleMs = 60_000;

/** Seconds that a variant may take. */
const variantSecondsMax = 20;

/** What the process may take for one picture. */
interface PictureLimits {
  readonly bytesMax: number;
  /** The decoder stops by itself before that, unless it hangs. */
  readonly ms: number;
}

const pictureLimits: PictureLimits = {
  bytesMax: pictureProcessBytesMax,
  ms: 2 * variantSecondsMax * 1_000,
};

/** What a file says of its picture. */
export type PictureMetadata = Pick<
  Metadata,
  | 'autoOrient'
  | 'channels'
  | 'chromaSubsampling'
  | 'depth'
  | 'format'
  | 'height'
  | 'isProgressive'
  | 'pages'
  | 'width'
>;

/** A smaller picture that is to be made of a file. */
interface SmallerPicture {
  readonly source: string;
  readonly width: number;
  readonly type: PictureType;
}

type Question =
  | ({ readonly kind: 'make' } & SmallerPicture)
  | { readonly kind: 'read'; readonly source: string }
  | { readonly kind: 'version' };

/** A request to the process. */
interface Job {
  readonly id: number;
  /** The memory that the process may take. */
  readonly bytesMax: number;
  readonly question: Question;
}

/** Its answer: `failed` is the reason of a failure. */
interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly failed?: string;
}

/** A question that the process works on. */
interface Asked {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** How the process has ended: by a limit of ours, or maybe by someone else. */
type End = 'limit' | 'signal';

/** The process has ended while it worked on a picture. */
export class PictureProcessEnded extends Error {
  readonly by: End;

  constructor(by: End) {
    const reasons = {
      limit: 'The picture takes too much memory or time.',
      signal: 'The process that makes pictures was ended.',
    };
    super(reasons[by]);
    this.by = by;
  }
}

/**
 * The title of the process, which also tells it what it is. A flag of Node sets it, so that it
 * holds before any module is loaded.
 */
const title = 'waymark-pictures';

/**
 * Reads and makes pictures in a process of its own: a decoder that takes too much memory, hangs or
 * crashes ends there, and the server sends the whole picture. The process starts with the first
 * picture, and ends when there were none for a while.
 *
 * Ask for one picture at a time: the end of the process then is that of no other picture.
 *
 * It measures its resident memory itself. A limit of the system for addresses would end V8, which
 * reserves gigabytes that it does not use, and one for data needs a shell or util-linux, which a
 * container may not have.
 */
export class PictureProcess {
  #child: ChildProcess | undefined;
  readonly #asked = new Map<number, Asked>();
  readonly #limits: PictureLimits;
  #last = 0;
  #idle: NodeJS.Timeout | undefined;

  #version: Promise<string | undefined> | undefined;

  /** The process ends when a picture takes more than the limits. */
  constructor(limits: Partial<PictureLimits> = {}) {
    this.#limits = { ...pictureLimits, ...limits };
  }

  /** The process id; undefined while there is no process. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /**
   * The version of libvips; undefined without the package `sharp`, which is optional, or if
   * the process ends: a later call tries again.
   */
  version(): Promise<string | undefined> {
    this.#version ??= isSea() ? Promise.resolve(undefined) : this.#askVersion();
    return this.#version;
  }

  async #askVersion(): Promise<string | undefined> {
    try {
      return String(await this.#ask({ kind: 'version' }));
    } catch (error) {
      if (error instanceof PictureProcessEnded) this.#version = undefined;
      return undefined;
    }
  }

  /** Reads the head of a file. Rejects with the reason. */
  read(source: string): Promise<PictureMetadata> {
    return this.#ask({ kind: 'read', source }) as Promise<PictureMetadata>;
  }

  /**
   * Makes a smaller picture. Rejects with the reason, with `PictureProcessEnded` if it takes too
   * much memory or time.
   */
  async make(picture: SmallerPicture): Promise<Buffer> {
    const made = await this.#ask({ kind: 'make', ...picture });
    return Buffer.from(made as Uint8Array);
  }

  /** A signal may have come from outside, whatever the picture is: it then gets a new process. */
  async #ask(question: Question): Promise<unknown> {
    try {
      return await this.#send(question);
    } catch (error) {
      if (!(error instanceof PictureProcessEnded) || error.by === 'limit') throw error;
      return this.#send(question);
    }
  }

  #send(question: Question): Promise<unknown> {
    clearTimeout(this.#idle);
    const child = (this.#child ??= this.#start());
    child.ref();
    child.channel?.ref();
    this.#last += 1;
    const id = this.#last;
    const { bytesMax, ms } = this.#limits;
    const job: Job = { id, bytesMax, question };
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#end(child, 'limit');
      }, ms);
      this.#asked.set(id, { resolve, reject, timer });
      child.send(job);
    });
  }

  #start(): ChildProcess {
    const execArgv = [`--title=${title}`];
    const child = fork(new URL(import.meta.url), {
      ...{ execArgv, serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'] },
    });
    child.on('message', ({ id, result, failed }: Answer) => {
      const asked = this.#asked.get(id);
      if (asked === undefined) return;
      clearTimeout(asked.timer);
      this.#asked.delete(id);
      if (failed === undefined) asked.resolve(result);
      else asked.reject(new Error(failed));
      if (this.#asked.size === 0) this.#rest(child);
    });
    child.on('error', () => {
      this.#end(child, 'signal');
    });
    child.on('exit', (_code, signal) => {
      this.#end(child, signal === null ? 'limit' : 'signal');
    });
    return child;
  }

  /** The server may end meanwhile: the process then ends with its channel. */
  #rest(child: ChildProcess): void {
    child.unref();
    child.channel?.unref();
    this.#idle = setTimeout(() => {
      this.#end(child, 'limit');
    }, pictureProcessIdleMs).unref();
  }

  /** Ends the process, if it has not ended itself; the next picture gets another. */
  #end(child: ChildProcess, by: End): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    child.kill('SIGKILL');
    const all = [...this.#asked.values()];
    this.#asked.clear();
    for (const { timer, reject } of all) {
      clearTimeout(timer);
      reject(new PictureProcessEnded(by));
    }
  }
}

/** Guards against pictures that unpack to much, and against damaged ones. */
const guarded: SharpOptions = {
  limitInputPixels: variantPixelsMax,
  failOn: 'error',
  sequentialRead: true,
};

/** The decoders of libvips that read what `hasVariants` names; AVIF is HEIF. */
const loaders = ['Jpeg', 'Png', 'Webp', 'Heif'] as const;

/** The options of the encoders: what the eye does not see, and little CPU time. */
const encoders = {
  'image/avif': { quality: 55, effort: 2 },
  'image/webp': { quality: 78, effort: 4 },
  'image/jpeg': { quality: 80, progressive: true },
  'image/png': { compressionLevel: 9 },
} as const;

/** How often the process measures its memory while it works. */
const measureMs = 20;

async function loadSharp(): Promise<typeof import('sharp').default> {
  const { default: sharp } = await import('sharp');
  // One thread for all pictures: the others serve.
  sharp.concurrency(1);
  sharp.cache(false);
  // A file can pass for a picture, and be an SVG or TIFF for libvips.
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({ operation: loaders.map((format) => `VipsForeignLoad${format}`) });
  return sharp;
}

/** What runs in the process. */
function answerJobs(): void {
  const loading = loadSharp();
  const work = async (question: Question): Promise<unknown> => {
    const sharp = await loading;
    if (question.kind === 'version') return sharp.versions.vips;
    if (question.kind === 'read') return sharp(question.source, guarded).metadata();
    const { source, width, type } = question;
    // The colours become those of sRGB; the metadata, such as the place of a photo, is left out.
    return sharp(source, guarded)
      .autoOrient()
      .resize({ width, withoutEnlargement: true })
      .timeout({ seconds: variantSecondsMax })
      .toFormat(type.slice('image/'.length) as 'avif', encoders[type])
      .toBuffer();
  };
  let running = 0;
  let measuring: NodeJS.Timeout | undefined;
  process.on('message', ({ id, bytesMax, question }: Job) => {
    running += 1;
    measuring ??= setInterval(() => {
      if (process.memoryUsage.rss() > bytesMax) process.exit(1);
    }, measureMs);
    const answer = (outcome: Omit<Answer, 'id'>): void => {
      running -= 1;
      if (running === 0) {
        clearInterval(measuring);
        measuring = undefined;
      }
      process.send?.({ id, ...outcome } satisfies Answer);
    };
    work(question).then(
      (result) => {
        answer({ result });
      },
      (error: unknown) => {
        answer({ failed: error instanceof Error ? error.message : String(error) });
      },
    );
  });
  process.on('disconnect', () => process.exit(0));
}

if (process.title === title && process.send !== undefined) answerJobs();
