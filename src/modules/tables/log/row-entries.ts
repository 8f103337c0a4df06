import type { IndexBuild } from '../../../core/log/store.ts';
import { keyPrefix } from './index-key.ts';

/** The name of the index of text search; no property has an empty name in it. */
export const searchIndex = '';

/** A build that has not begun. */
export function startedBuild(table: string, index: string, rows: number): IndexBuild {
  return { table, index, phase: 'empty', after: '', done: 0, of: rows };
}

/** Whether a write maintains the entries of a row: a build reaches the others later. */
export function isMaintained(build: IndexBuild | undefined, id: string): boolean {
  return build === undefined || (build.phase === 'fill' && id <= build.after);
}

/** The key of a build. */
export function buildKey(table: string, index: string): Buffer {
  return keyPrefix(table, index);
}

/** The value of a word of a row: how often the row has it, and how many words it has. */
export function packWord(count: number, length: number): string {
  return `${count} ${length}`;
}

/** The arguments of packWord, from its result. */
export function unpackWord(value: string): { readonly count: number; readonly length: number } {
  const [count = 0, length = 0] = value.split(' ').map(Number);
  return { count, length };
}
