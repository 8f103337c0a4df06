import type { PageKind } from '../rules/pages/page-kind.ts';
import { pageStatus } from '../rules/pages/stored-pages.ts';
import type { AssetPages } from './asset-pages.ts';
import type { AssetReader } from './asset.ts';

/** Page rules that answer with the file of an asset. */
export function assetKind(assets: AssetReader, pages: Pick<AssetPages, 'respondFor'>): PageKind {
  return {
    takes: ({ kind, content, asset }) =>
      kind === 'content' && content === undefined && asset !== undefined,
    respond(found, request) {
      const asset = assets.asset(found.stored.rule.asset ?? '');
      return pages.respondFor({ ...found, asset }, request);
    },
    explain({ stored: { rule } }) {
      const { asset = '' } = rule;
      if (assets.asset(asset) !== undefined) return { status: pageStatus(rule) };
      return { status: 404, notes: [`There is no asset ${JSON.stringify(asset)}.`] };
    },
  };
}
