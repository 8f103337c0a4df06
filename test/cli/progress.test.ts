import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createProgress } from '../../src/cli/progress.ts';

function watched(isTTY: boolean) {
  let ms = 0;
  const written: string[] = [];
  const stream = { isTTY, write: (text: string) => written.push(text) > 0 };
  const progress = createProgress(stream, () => ms);
  const wait = (passedMs: number): void => {
    ms += passedMs;
  };
  return { written, progress, wait };
}

test('progress stands in one line of a terminal, changes as fast as one reads, and goes', () => {
  const { written, progress, wait } = watched(true);
  progress.show('1 %');
  progress.show('2 %');
  wait(100);
  progress.show('3 %');
  progress.clear();
  progress.clear();
  assert.deepEqual(written, ['\r\u001b[K1 %', '\r\u001b[K3 %', '\r\u001b[K']);
});

test('nothing is written where nobody watches', () => {
  const { written, progress } = watched(false);
  progress.show('1 %');
  progress.clear();
  assert.deepEqual(written, []);
});
