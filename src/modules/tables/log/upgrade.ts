import type { Databases } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import { type StoredTable, tableIndexes } from '../table.ts';
import { buildKey, searchIndex, startedBuild } from './index-key.ts';
import type { TableCounts } from './reads.ts';

/** The name in `meta` of the rules by which words were found. */
const wordRules = 'words';

/**
 * Starts a new build of the indexes in which an earlier version has date-times as texts. The caller
 * runs it in a write transaction.
 */
export function refreshInstants(databases: Databases): void {
  const { tablecount, indexbuild } = databases;
  for (const { name, instants } of instantIndexes(databases)) {
    const { rows } = storedJson(tablecount.get(keyOf(name)) ?? '{"rows":0}') as TableCounts;
    for (const field of rows > 0 ? instants : []) {
      const build = startedBuild(name, field, rows);
      indexbuild.putSync(buildKey(name, field), JSON.stringify(build));
    }
  }
}

/** The ids of the tables with date-times in their indexes. */
export function tablesWithInstants(databases: Databases): readonly string[] {
  return instantIndexes(databases).map(({ id }) => id);
}

function instantIndexes({ table }: Databases) {
  return [...table.getRange({})]
    .map(({ value }) => (storedJson(value) as StoredTable).table)
    .map((definition) => ({ ...definition, ...tableIndexes(definition) }))
    .filter(({ instants }) => instants.size > 0);
}

/**
 * Starts a new build of the words of all tables if the rules by which ICU finds words have changed
 * since the last build. The caller runs it in a write transaction.
 */
export function refreshWords({ meta, table, tablecount, indexbuild }: Databases): void {
  const rules = `${process.versions.icu ?? ''} ${process.versions.unicode ?? ''}`;
  if (meta.get(wordRules) === rules) return;
  meta.putSync(wordRules, rules);
  for (const { value } of table.getRange({})) {
    const { table: definition } = storedJson(value) as StoredTable;
    if (tableIndexes(definition).search.length === 0) continue;
    const counts = tablecount.get(keyOf(definition.name));
    const { rows } = storedJson(counts ?? '{"rows":0}') as TableCounts;
    const build = startedBuild(definition.name, searchIndex, rows);
    indexbuild.putSync(buildKey(definition.name, searchIndex), JSON.stringify(build));
  }
}
