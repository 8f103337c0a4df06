import { defineModule } from '../../core/module.ts';
import { invalidateAsset, listAssets, readAsset } from './operations/assets.ts';
import { assetPath } from './upload/asset-upload.ts';

/** Pictures and other files of pages, in sizes and formats that browsers take: `[asset]`. */
export const assets = defineModule({
  name: 'assets',
  needs: ['compression', 'files', 'peers', 'rules', 'tables'],
  operations: [listAssets, readAsset, invalidateAsset],
  commands: [
    {
      name: 'asset',
      summary: 'upload and list the pictures and other files of pages',
      load: async () => (await import('./command.ts')).defineAsset,
    },
  ],
  provision: () => ({ paths: { asset: assetPath, 'asset-file': assetPath } }),
});
