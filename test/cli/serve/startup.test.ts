import assert from 'node:assert/strict';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readsJournal } from '../../../src/cli/serve/startup.ts';
import { temporaryFolder } from '../../folder.ts';

test('journald reads the standard output if systemd says so of this very stream', async (t) => {
  const output = openSync(join(await temporaryFolder(t), 'journal'), 'w');
  t.after(() => {
    closeSync(output);
  });
  const { dev, ino } = fstatSync(output);
  assert.equal(readsJournal({ JOURNAL_STREAM: `${dev}:${ino}` }, output), true);
  assert.equal(readsJournal({ JOURNAL_STREAM: `${dev}:${ino + 1}` }, output), false);
  assert.equal(readsJournal({}, output), false);
});
