import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { browserAsk, rawAsk, rowOf, startServers, type Ask } from '../conformance/forms/answers.ts';
import { browserForms, programForms, type Form } from '../conformance/forms/forms.ts';
import { cellsIn, cellsOf, type TableName } from '../conformance/forms/table.ts';
import { project } from '../tidy/sources.ts';
import { oneBrowser } from './browser.ts';

const openTab = oneBrowser();
const page = readFileSync(join(project, 'docs/reference/request-forms.md'), 'utf8');

/** The columns of nginx and Caddy, which are measured by a command. */
const othersCount = 4;
const waymarkCount = 3;

function withoutOthers(cells: readonly string[]): readonly string[] {
  return cells.toSpliced(-waymarkCount - othersCount, othersCount);
}

const tables: readonly (readonly [TableName, readonly Form[]])[] = [
  ['browsers', browserForms],
  ['programs', programForms],
];

for (const [name, forms] of tables) {
  test(`Waymark answers what ${name} send as the documentation says`, async (t) => {
    const servers = await startServers(t, { isAlone: true });
    const ask: Ask = name === 'browsers' ? browserAsk((await openTab(t)).page) : rawAsk;
    const rows = [];
    for (const form of forms) rows.push(cellsOf(name, await rowOf(servers, ask, form)));
    assert.deepEqual(rows.map(withoutOthers), cellsIn(name, page).map(withoutOthers));
  });
}
