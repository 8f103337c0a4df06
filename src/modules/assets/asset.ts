import { parseMediaType } from '../../core/http/representation/mediatype.ts';
import type { Store } from '../../core/log/store.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, sameJson } from '../../core/values/json/json.ts';
import type { StoredRow } from '../tables/row.ts';
import type { TableDefinition } from '../tables/table.ts';
import { assetNameBytesMax } from '../rules/asset-name.ts';
import { storedTables } from '../tables/log/family.ts';
import type { TableReads } from '../tables/log/reads.ts';

/** The author of the change that creates the table of the assets. */
const assetTableAuthor = 'serve';

/** A file that page rules refer to by its name. */
export interface Asset {
  /** A name with an extension, such as `logo.png` or `photos/2026/harbour.jpg`. */
  readonly name: string;
  /** Lower-case hex SHA-256 of its content. */
  readonly sha256: string;
  readonly bytes: number;
  readonly contenttype: string;
}

/** The table whose rows are the assets (docs/how-to/assets.md). */
export const assetTable = 'asset';

const text = { type: 'string' } as const;

/**
 * The definition of that table. Assets are rows, so that history, undo, drafts, export and replicas
 * have them like all other rows; a row has the hash of its file, and the file the name of its hash.
 */
const assetDefinition: Omit<TableDefinition, 'id'> = {
  name: assetTable,
  schema: {
    type: 'object',
    required: ['name', 'sha256', 'bytes', 'contenttype'],
    properties: {
      name: { ...text, maxLength: assetNameBytesMax },
      sha256: { ...text, minLength: 64, maxLength: 64, pattern: '^[0-9a-f]+$' },
      bytes: { type: 'integer', minimum: 0 },
      contenttype: { ...text, maxLength: 255 },
    },
  },
  key: 'name',
  index: ['sha256', 'bytes', 'contenttype'],
  search: ['name'],
  title: 'name',
  read: ['read'],
  insert: ['design'],
  edit: ['design'],
};

/** Finds assets by their names, now, at a moment of the past, or in a draft. */
export interface AssetReader {
  /** The asset that has a name; undefined if there is none. */
  asset(name: string): Asset | undefined;
}

/** Makes a reader of the assets that a store has. */
export function createAssetReader(rows: Pick<TableReads, 'rowByKey'>): AssetReader {
  return { asset: (name) => assetOf(rows.rowByKey(assetTable, name)) };
}

/** The asset of a row; undefined for none, and for a row without a file. */
export function assetOf(stored: StoredRow | undefined): Asset | undefined {
  return stored && assetIn(stored.row);
}

/** As assetOf, of the fields of a row. */
export function assetIn(row: Readonly<Record<string, unknown>>): Asset | undefined {
  const { name, sha256, bytes, contenttype } = row;
  const isWhole =
    typeof name === 'string' &&
    typeof sha256 === 'string' &&
    isDigest(sha256) &&
    typeof bytes === 'number' &&
    typeof contenttype === 'string';
  return isWhole ? { name, sha256, bytes, contenttype: sentType(contenttype) } : undefined;
}

/**
 * The media type that is sent for that of a row, which can be any text. Of a list, browsers take
 * the last one (Fetch, "extract a MIME type"), and no header field can have a line break.
 */
function sentType(contenttype: string): string {
  const isType = parseMediaType(contenttype) !== undefined;
  return isType ? contenttype.trim() : 'application/octet-stream';
}

/** The fields of the row of an asset. */
export function assetFields({ name, sha256, bytes, contenttype }: Asset): JsonObject {
  return { name, sha256, bytes, contenttype };
}

/** Whether a text is a SHA-256 in lower-case hex, as the files are named. */
export function isDigest(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

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
export function hasAssetTable(reads: Pick<Store, 'of'>): boolean {
  const stored = reads.of(storedTables).table(assetTable)?.table;
  if (stored === undefined) return false;
  if (stored.key === assetDefinition.key && sameJson(stored.schema, assetDefinition.schema)) {
    return true;
  }
  throw new Failure(
    'conflict',
    `This site has a table ${assetTable} of its own, so it has no assets. Rename that table.`,
  );
}
