import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { project } from '../../tidy/sources.ts';
import { rowOf, type Ask, type startServers } from './answers.ts';
import type { Form } from './forms.ts';
import { cellsIn, cellsOf, type TableName } from './table.ts';

/** The columns of nginx and Caddy, which are measured by a command, and those of Waymark. */
const othersCount = 4;
const waymarkCount = 3;

/** Asks Waymark for the forms of a table of the documentation, and requires the same answers. */
export async function requireDocumented(
  name: TableName,
  forms: readonly Form[],
  {
    servers,
    ask,
  }: { readonly servers: Awaited<ReturnType<typeof startServers>>; readonly ask: Ask },
): Promise<void> {
  const rows = [];
  for (const form of forms) rows.push(cellsOf(name, await rowOf(servers, ask, form)));
  const page = readFileSync(join(project, 'docs/reference/request-forms.md'), 'utf8');
  assert.deepEqual(rows.map(withoutOthers), cellsIn(name, page).map(withoutOthers));
}

function withoutOthers(cells: readonly string[]): readonly string[] {
  return cells.toSpliced(-waymarkCount - othersCount, othersCount);
}
