import { setTimeout as delay } from 'node:timers/promises';
import type { EntryContent, Notice } from './entry.ts';
import { turnMs } from '../limits.ts';

const turnNotice = 'turn';

/**
 * The turns of nodes to append. A node that is late again and again, because its writes take long
 * to decide, claims one: the others wait until its entry comes, or for turnMs. Nothing depends on
 * that they do, apart from time.
 */
export class Turns {
  readonly #member: string;
  /** The holder of the turn, the same for all nodes, until `ended` aborts. */
  #turn:
    | { readonly member: string; readonly endMs: number; readonly ended: AbortController }
    | undefined;

  constructor(member: string) {
    this.#member = member;
  }

  /** The notice by which this node claims the next turn. */
  claim(): Notice {
    return { name: turnNotice, data: { member: this.#member } };
  }

  /** Resolves when no other node has the turn. */
  async others(): Promise<void> {
    while (this.#turn !== undefined && this.#turn.member !== this.#member) {
      const { ended, endMs } = this.#turn;
      const { signal } = ended;
      const leftMs = Math.max(0, endMs - performance.now());
      await delay(leftMs, undefined, { signal, ref: false }).catch(() => undefined);
      if (!signal.aborted) this.#end();
    }
  }

  /**
   * Reads the holder of the turn from an entry of the log; a claim during another one has no
   * effect.
   */
  see({ member, notices, rows, puts }: EntryContent): void {
    if (rows.length + puts.length > 0 && member === this.#turn?.member) this.#end();
    const now = performance.now();
    for (const { name, data } of notices) {
      const isTaken = this.#turn !== undefined && now < this.#turn.endMs;
      if (name !== turnNotice || isTaken) continue;
      this.#end();
      const ended = new AbortController();
      this.#turn = { member: data.member as string, endMs: now + turnMs, ended };
    }
  }

  #end(): void {
    this.#turn?.ended.abort();
    this.#turn = undefined;
  }
}
