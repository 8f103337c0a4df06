import { assetDefinition, assetTable } from '../asset.ts';
import { Failure } from '../../../core/values/failure.ts';
import { sameJson, type JsonObject } from '../../../core/values/json/json.ts';
import type { Store } from '../../../core/log/store.ts';

/** The author of the change that creates the table of the assets. */
const assetTableAuthor = 'serve';

/**
 * Creates the table of the assets with the first upload, so that a site without assets has no row
 * for it. Rejects with `conflict` if the site has another table of this name.
 */
export async function writeAssetTable(store: Store, newId: () => string): Promise<void> {
  if (hasAssetTable(store)) return;
  await store.commit(assetTableAuthor, (reads) => {
    const data = { ...assetDefinition } as unknown as JsonObject;
    const isThere = hasAssetTable(reads);
    return {
      drafts: isThere ? [] : [{ family: 'table', id: newId(), action: 'insert', data }],
      answer: () => undefined,
    };
  });
}

/** Whether the site has that table. Throws `conflict` if it has another one of this name. */
export function hasAssetTable(reads: Pick<Store, 'table'>): boolean {
  const stored = reads.table(assetTable)?.table;
  if (stored === undefined) return false;
  if (stored.key === assetDefinition.key && sameJson(stored.schema, assetDefinition.schema)) {
    return true;
  }
  throw new Failure(
    'conflict',
    `This site has a table ${assetTable} of its own, so it has no assets. Rename that table.`,
  );
}
