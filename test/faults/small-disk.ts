import { execFile } from 'node:child_process';
import { statfs } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Cleaning } from '../folder.ts';

const run = promisify(execFile);

/** A file system in memory, which can be made full. */
export class SmallDisk {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  /** Mounts one at a folder; resolves to undefined if the user may not mount. */
  static async mount(context: Cleaning, folder: string): Promise<SmallDisk | undefined> {
    try {
      await run('mount', ['-t', 'tmpfs', '-o', 'size=1g', 'tmpfs', folder]);
    } catch {
      return undefined;
    }
    context.after(() => run('umount', ['--lazy', folder]));
    return new SmallDisk(folder);
  }

  /** Uses up the free space; it sometimes leaves a few pages, so that some writes begin. */
  async fill(): Promise<void> {
    for (;;) {
      const { blocks, bfree, bsize } = await statfs(this.#folder);
      const free = Math.floor(Math.random() * 16);
      const kib = Math.ceil(((blocks - bfree + free) * bsize) / 1024);
      // A server may write in between, so that more is used than the new size.
      if (await this.#resize(`${kib}k`)) return;
      await delay(1);
    }
  }

  async free(): Promise<void> {
    await this.#resize('1g');
  }

  #resize(size: string): Promise<boolean> {
    return run('mount', ['-o', `remount,size=${size}`, this.#folder]).then(
      () => true,
      () => false,
    );
  }
}
