import { LRUCache } from 'lru-cache';
import { answersPerUrlMax } from '../../model/limits.ts';
import type { HeldAnswer, StoredAnswer } from './answer.ts';
import { holdAnswer } from './held-reply.ts';

/** The answers that are kept, by their URL. */
export interface AnswerStore {
  /** All answers kept for a URL, whichever rule asked for them and whatever they vary by. */
  find(url: string): readonly HeldAnswer[];
  /** Keeps an answer; what it makes useless of the same URL goes. */
  put(answer: StoredAnswer, bytes: Buffer): HeldAnswer;
  /** Keeps a changed answer in place of one with the same id, if that is still there. */
  update(answer: StoredAnswer): HeldAnswer | undefined;
  /** Lets go of all answers of a URL. */
  remove(url: string): void;
  /** The longest content that is kept. */
  readonly contentBytesMax: number;
}

/** What an answer takes besides its content and its fields. */
const answerBytes = 1_024;

/** Keeps answers in memory, the latest ones, up to so many bytes. */
export function createMemoryStore(bytesMax: number): AnswerStore {
  const byUrl = new LRUCache<string, readonly HeldAnswer[]>({
    maxSize: Math.max(1, bytesMax),
    sizeCalculation: (held, url) =>
      held.reduce((bytes, { answer }) => bytes + answerSize(answer), url.length),
  });

  function replace(url: string, answers: readonly HeldAnswer[]): void {
    if (answers.length === 0) byUrl.delete(url);
    else byUrl.set(url, answers.slice(0, answersPerUrlMax));
  }

  return {
    contentBytesMax: Math.floor(bytesMax / 8),
    find: (url) => byUrl.get(url) ?? [],
    put(answer, bytes) {
      const held = holdAnswer(answer, bytes);
      const others = (byUrl.peek(answer.url) ?? []).filter((one) => !isReplacedBy(one, held));
      replace(answer.url, [held, ...others]);
      return held;
    },
    update(answer) {
      const answers = byUrl.peek(answer.url) ?? [];
      const before = answers.find((one) => one.answer.id === answer.id);
      if (before === undefined) return undefined;
      const held = holdAnswer(answer, before.page.bytes);
      replace(answer.url, [held, ...answers.filter((one) => one !== before)]);
      return held;
    },
    remove(url) {
      byUrl.delete(url);
    },
  };
}

function answerSize({ fields, bytesLength }: StoredAnswer): number {
  return fields.reduce((bytes, text) => bytes + text.length, answerBytes + bytesLength);
}

/** Whether a new answer stands for all that an older one of the same URL stood for. */
function isReplacedBy({ answer }: HeldAnswer, { answer: newer }: HeldAnswer): boolean {
  if (answer.rule === newer.rule && answer.plan !== newer.plan) return true;
  if (answer.rule !== newer.rule) return false;
  if (newer.range !== undefined && answer.range === undefined) return false;
  const isSameVary = answer.varyNames.join() === newer.varyNames.join();
  return isSameVary && answer.selecting.every((key) => newer.selecting.includes(key));
}
