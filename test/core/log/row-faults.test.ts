import assert from 'node:assert/strict';
import { test } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { killRowWriters } from './kill-row-writers.ts';
import { randomRuns } from '../../random-runs.ts';

test('a kill loses no acknowledged change of a row, and leaves all indexes whole', async (t) => {
  const folder = await temporaryFolder(t);
  const acknowledged = await killRowWriters(t, { folder, kills: randomRuns(10), lifeMsMax: 500 });
  assert.ok(acknowledged > 0);
});
