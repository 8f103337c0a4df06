import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { buildDocs } from '../../docs/site/build.ts';
import { loadDocsFiles, type DocsFiles } from '../../src/pages/docs-files.ts';

/** Builds the documentation into a temporary folder, and reads it as the server does. */
export async function builtDocs(): Promise<{ readonly folder: string; readonly docs: DocsFiles }> {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-docs-'));
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  await buildDocs(folder);
  return { folder, docs: await loadDocsFiles(folder) };
}
