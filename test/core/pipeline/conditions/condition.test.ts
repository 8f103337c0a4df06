import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { defineCondition } from '../../../../src/core/pipeline/conditions/condition.ts';
import { conditionTypes } from '../../../../src/core/pipeline/conditions/table.ts';

test('the page about breadcrumbs lists every condition', async () => {
  const url = new URL('../../../../docs/how-to/breadcrumbs.md', import.meta.url);
  const rows = (await readFile(url, 'utf8')).split('\n').filter((line) => line.startsWith('| `'));
  for (const { name } of conditionTypes) {
    assert.ok(
      rows.some((row) => row.split('|')[1]?.includes(`\`${name}\``)),
      name,
    );
  }
});

test('a condition without Vary, needs or preview does not compile', () => {
  const part = { name: 'sunny', parse: () => true, holds: () => true, explain: () => 'It rains.' };
  const [vary, needs, preview] = [[], {}, {}];
  // The lint run fails if one of these lines compiles.
  defineCondition<boolean>({ ...part, vary, needs, preview });
  // @ts-expect-error -- Vary is missing
  defineCondition<boolean>({ ...part, needs, preview });
  // @ts-expect-error -- the facts that it needs are missing
  defineCondition<boolean>({ ...part, vary, preview });
  // @ts-expect-error -- the preview fields are missing
  defineCondition<boolean>({ ...part, vary, needs });
});
