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

test('progress is one line of a terminal, which changes at most every 100 ms, and is removed', () => {
  const { written, progress, wait } = watched(true);
  progress.show('1 %');
  progress.show('2 %');
  wait(100);
  progress.show('3 %');
  progress.clear();
  progress.clear();
  assert.deepEqual(written, ['\r\u001b[K1 %', '\r\u001b[K3 %', '\r\u001b[K']);
});

test('no progress is written if standard error is not a terminal', () => {
  const { written, progress } = watched(false);
  progress.show('1 %');
  progress.clear();
  assert.deepEqual(written, []);
});
