import type { Reads } from '../../../core/log/store.ts';
import { listRowsDefault, listRowsMax } from '../../../core/operations/limits.ts';
import {
  type Call,
  type OperationResult,
  defineOperation,
} from '../../../core/operations/operation.ts';
import { invalidateOperation } from '../../../core/operations/records/invalidate.ts';
import { listOperation } from '../../../core/operations/records/list.ts';
import { vkMember } from '../../../core/operations/records/schema.ts';
import { turnsOf } from '../../../core/operations/turns.ts';
import { Failure } from '../../../core/values/failure.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { ruleKinds } from '../../rules/rule.ts';
import type { StoredRow } from '../../tables/row.ts';
import { type RowParts, rowFamily } from '../../tables/rows/row-family.ts';
import { type Asset, assetOf, assetTable, hasAssetTable } from '../asset.ts';
import { assetNameBytesMax } from '../../rules/asset-name.ts';
import { storedRules } from '../../rules/log/family.ts';
import { storedTables } from '../../tables/log/family.ts';

/** Page rules that show an asset: those that asset.read lists, and asset.list for each asset. */
const usesMax = 100;
const shownUsesMax = 3;

/** Up to this number, the page rules that show an asset are counted. */
const usesCountedMax = 1_000;

/** An asset is a row, so the operations on rows do the work. */
const listRows = listOperation(rowFamily);
const invalidateRows = invalidateOperation(rowFamily);

type AssetReads = Pick<Reads, 'of'>;

const text = { type: 'string' } as const;
const name = {
  ...text,
  maxLength: assetNameBytesMax,
  description: 'The name of the asset, such as photos/harbour.jpg.',
} as const;
const optional = { ...text, nullable: true } as const;

const useSchema = {
  title: 'AssetUse',
  description: 'A page rule that shows the asset.',
  type: 'object',
  required: ['id', 'origin', 'path', 'kind'],
  properties: { id: text, origin: text, path: text, kind: { ...text, enum: ruleKinds } },
} as const satisfies JsonObject;

const assetProperties = {
  id: { ...text, description: 'The id of its row in the table asset.' },
  seq: { type: 'integer', description: 'The change by which it is as it is.' },
  name: text,
  sha256: { ...text, description: 'The SHA-256 of its content, in hexadecimal digits.' },
  bytes: { type: 'integer' },
  contenttype: text,
  used: {
    type: 'integer',
    description: `Page rules that show it, counted up to ${usesCountedMax}.`,
  },
  uses: { type: 'array', items: useSchema, description: 'The first of these page rules.' },
} as const satisfies JsonObject;

const assetSchema = {
  title: 'Asset',
  type: 'object',
  required: ['id', 'seq', 'name', 'sha256', 'bytes', 'contenttype', 'used', 'uses'],
  properties: assetProperties,
} as const satisfies JsonObject;

/** What asset.list needs besides the parts of rows. */
interface ListParts extends RowParts {
  /** The widths in which this server makes pictures smaller. */
  readonly pictureWidths: () => Promise<readonly number[]>;
}

/** asset.list: the assets by name or size, or those that have a text in their name. */
export const listAssets = defineOperation({
  name: 'svc1.asset.list',
  scope: 'read',
  effect: 'reads',
  inDrafts: true,
  summary: 'Lists the pictures and other files of pages, with the page rules that show them.',
  input: {
    type: 'object',
    properties: {
      text: { ...optional, description: 'Words in the name.' },
      prefix: { ...optional, description: 'The start of the name, such as photos/.' },
      type: { ...optional, description: 'The start of the media type, such as image/.' },
      unused: {
        type: 'boolean',
        nullable: true,
        description: 'Whether to list only those that no page rule shows.',
      },
      sort: {
        ...optional,
        enum: ['name', '-name', 'bytes', '-bytes', 'inserted', null],
        description: 'The order: name by default, bytes, or inserted (oldest first).',
      },
      after: { ...optional, description: 'The next of the page before.' },
      limit: { type: 'integer', minimum: 1, maximum: listRowsMax, nullable: true },
    },
  },
  output: {
    title: 'AssetList',
    type: 'object',
    required: ['rows', 'next', 'widths'],
    properties: {
      rows: { type: 'array', items: assetSchema },
      next: { type: ['string', 'null'], description: 'The after of the next page.' },
      widths: {
        type: 'array',
        items: { type: 'integer' },
        description:
          'The widths that width=… behind the path of a picture makes; none without them.',
      },
    },
  },
  run: (parts: ListParts) => async (v, call) => {
    const { store } = parts;
    const widths = await parts.pictureWidths();
    if (!hasAssetTable(store)) return { kind: 'data', data: { rows: [], next: null, widths } };
    const { text: sought, prefix, type, unused, sort = 'name', after, limit = listRowsDefault } = v;
    const hasText = sought !== undefined && sought.trim() !== '';
    const { rows, next } = dataOf(
      await listRows.run(parts)(
        {
          table: assetTable,
          limit,
          ...(after !== undefined && { after }),
          ...(hasText && { text: sought }),
          // What a search finds is in the order of its relevance.
          ...(!hasText && sort !== 'inserted' && { sort }),
          where: { ...startsWith('name', prefix), ...startsWith('contenttype', type) },
        },
        call,
      ),
    );
    const assets: AssetView[] = [];
    const turns = turnsOf(call);
    for (const row of rows as readonly JsonObject[]) {
      if (turns.isOver()) await turns.next();
      const view = assetView(store, row, shownUsesMax);
      if (view !== undefined && (unused !== true || view.used === 0)) assets.push(view);
    }
    return { kind: 'data', data: { rows: assets, next: next as string | null, widths } };
  },
});

/** asset.read: an asset and the page rules that show it. Refuses with `not_found`. */
export const readAsset = defineOperation({
  name: 'svc1.asset.read',
  scope: 'read',
  effect: 'reads',
  inDrafts: true,
  summary: `Reads an asset, with the first ${usesMax} page rules that show it.`,
  failures: ['not_found'],
  input: { type: 'object', required: ['name'], properties: { name } },
  output: assetSchema,
  run:
    ({ store }: { readonly store: AssetReads }) =>
    (v) => ({ kind: 'data', data: requireAsset(store, v.name) }),
});

/**
 * asset.invalidate: deletes an asset, which an undo brings back. Without `confirm` it only reports
 * the effect, with the page rules that would have no file. Refuses with `not_found`, and with
 * `precondition_failed` for the digest of another dry run.
 */
export const invalidateAsset = defineOperation({
  name: 'svc1.asset.invalidate',
  scope: 'design',
  effect: 'writes',
  inDrafts: true,
  summary: 'Deletes an asset; without confirm it only reports that, and who shows it.',
  failures: ['not_found', 'conflict', 'precondition_failed'],
  envelope: { vk: vkMember },
  input: {
    type: 'object',
    required: ['name'],
    properties: {
      name,
      confirm: { ...optional, description: 'The digest of a dry run, to carry it out.' },
    },
  },
  output: {
    title: 'InvalidatedAsset',
    type: 'object',
    required: ['done', 'name', 'used', 'uses'],
    properties: {
      done: { type: 'boolean', description: 'Whether it is deleted; false for a dry run.' },
      name: text,
      used: assetProperties.used,
      uses: assetProperties.uses,
      digest: { ...text, description: 'Of a dry run: send it as confirm to carry this out.' },
      txn: { ...text, description: 'The transaction, which record.invalidate undoes.' },
      seq: { type: 'integer', description: 'The seq of the change.' },
    },
  },
  run: (parts: RowParts) => async (v, call) => {
    const { id, used, uses } = requireAsset(parts.store, v.name);
    const input = { table: assetTable, id, ...(v.confirm !== undefined && { confirm: v.confirm }) };
    const result = await invalidateRows.run(parts)(input, asDesigner(call));
    const { done, digest, txn, seq } = dataOf(result);
    const report = {
      done: done === true,
      name: v.name,
      ...{ used, uses },
      ...(typeof digest === 'string' && { digest }),
      ...(typeof txn === 'string' && { txn }),
      ...(typeof seq === 'number' && { seq }),
    };
    if (result.kind !== 'data') throw new TypeError('an undo answers with data');
    return { ...result, data: report };
  },
});

/** A condition on an indexed field of the rows; none for an empty text. */
function startsWith(field: string, start: string | undefined): JsonObject {
  return start === undefined || start === '' ? {} : { [field]: { prefix: start } };
}

/** An asset as the operations show it. */
interface AssetView extends Asset {
  readonly id: string;
  readonly seq: number;
  readonly used: number;
  readonly uses: readonly AssetUse[];
}

/** A page rule that shows an asset. */
interface AssetUse {
  readonly id: string;
  readonly origin: string;
  readonly path: string;
  readonly kind: (typeof ruleKinds)[number];
}

function requireAsset(store: AssetReads, given: string): AssetView {
  const stored = hasAssetTable(store)
    ? store.of(storedTables).rowByKey(assetTable, given)
    : undefined;
  const view = stored && viewOf(store, stored, usesMax);
  if (view !== undefined) return view;
  const shown = JSON.stringify(given.slice(0, 80));
  throw new Failure('not_found', `There is no asset ${shown}.`, { field: 'name' });
}

function assetView(store: AssetReads, row: JsonObject, limit: number): AssetView | undefined {
  const { seq, ...fields } = row;
  return viewOf(store, { row: fields, seq } as unknown as StoredRow, limit);
}

function viewOf(store: AssetReads, stored: StoredRow, limit: number): AssetView | undefined {
  const asset = assetOf(stored);
  if (asset === undefined) return undefined;
  const ids = [...store.of(storedRules).rulesOfAsset(asset.name, usesCountedMax)];
  const uses = ids.slice(0, limit).flatMap((one) => {
    const rule = store.of(storedRules).rule(one)?.rule;
    if (rule === undefined) return [];
    const { id, origin, path, kind } = rule;
    return [{ id, origin, path, kind }];
  });
  return { id: stored.row.id, seq: stored.seq, ...asset, used: ids.length, uses };
}

/**
 * The call with the scope of the table of the assets: the scope `draft` may delete an asset in a
 * draft, for which the operation has authorised its caller.
 */
function asDesigner(call: Call): Call {
  const scopes = new Set([...call.caller.scopes, 'design'] as const);
  return { ...call, caller: { ...call.caller, scopes } };
}

function dataOf(result: OperationResult): JsonObject {
  if (result.kind !== 'data') throw new TypeError('an operation on rows answers with data');
  return result.data as JsonObject;
}
