import assert from 'node:assert/strict';
import { test } from 'node:test';
import { textDifference } from '../../../src/modules/compare/text-diff.ts';

/** The first line that differs, of each text, found line by line. */
function linesOf(one: string, other: string): readonly string[] {
  const [lines, others] = [one.split('\n'), other.split('\n')];
  const at = lines.findIndex((line, index) => line !== others[index]);
  const index = at === -1 ? lines.length : at;
  return [lines[index] ?? '', others[index] ?? ''];
}

test('the first lines that differ are those of a comparison line by line', () => {
  const pieces = ['', '\n', 'a', 'b', '\n\n', 'a\n', '\nb'];
  const texts = pieces.flatMap((one) => pieces.map((two) => one + two));
  for (const one of texts) {
    for (const other of texts) {
      if (one === other) continue;
      const found = textDifference(Buffer.from(one), Buffer.from(other));
      assert.deepEqual(found?.lines, linesOf(one, other), JSON.stringify([one, other]));
    }
  }
});
