import assert from 'node:assert/strict';
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { createAssetPages } from '../../../src/modules/assets/asset-pages.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';

test('all who ask for the file of an asset while it is read share that', async (t) => {
  const folder = await temporaryFolder(t);
  await writeFiles(folder, { file: 'hello' });
  let opened = 0;
  const open = () => {
    opened += 1;
    return { descriptor: openSync(join(folder, 'file'), 'r'), bytes: 5 };
  };
  const pages = { prepare: () => ({ identity: { bytes: Buffer.alloc(5) } }), respond: () => ({}) };
  const compressors = { pages, responses: {} } as never;
  const variants = { find: () => undefined } as never;
  const replies = createAssetPages({ open }, { compressors, variants });
  const asset = { name: 'a', sha256: 'x', bytes: 5, contenttype: 'text/plain' };
  const view = { status: 200, contentType: 'text/plain', fields: [], source: 'asset:a' };
  const asked = { method: 'GET', fields: {}, query: '', address: '192.0.2.1' } as const;
  const ask = async () => replies.respond(asset, view, asked);
  await Promise.all(Array.from({ length: 50 }, ask));
  assert.equal(opened, 1);
  await ask();
  assert.equal(opened, 1);
});
