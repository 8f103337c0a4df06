import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { buildDocs } from '../../docs/site/build.ts';
import { loadDocsFiles, type DocsFiles } from '../../src/modules/docs/docs-files.ts';

/** The documentation in a temporary folder, and as the server reads it. */
interface BuiltDocs {
  readonly folder: string;
  readonly docs: DocsFiles;
}

let built: Promise<BuiltDocs> | undefined;

/** Builds the documentation once for all test files of this process. Call it outside of suites. */
export function builtDocs(): Promise<BuiltDocs> {
  return (built ??= build());
}

async function build(): Promise<BuiltDocs> {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-docs-'));
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  await buildDocs(folder);
  return { folder, docs: await loadDocsFiles(folder) };
}
