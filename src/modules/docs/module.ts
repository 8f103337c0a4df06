import type { Module } from '../../core/module.ts';
import { type DocsFiles, loadDocsFiles } from './docs-files.ts';
import { createDocuments, documentNames } from './documents.ts';
import { docsPath, documentsPath } from './path.ts';

/** The documentation, and the documents of the operations. */
export const docs: Module<DocsFiles> = {
  name: 'docs',
  needs: ['tables', 'webhooks'],
  open: ({ folders }) => loadDocsFiles(folders.docs),
  provision({ settings, operations, offers: given, version }, files) {
    const { base, publicUrl } = settings.server;
    const { anonymous } = settings.auth;
    const documents = createDocuments({
      ...{ base, publicUrl, anonymous, version, operations },
      // Tables come and go, and the documents are made once.
      eventTypes: () => given.eventTypes?.list().filter(({ source }) => source !== 'table') ?? [],
    });
    const answer = documentsPath(documents);
    const documentPaths = documentNames.map((name) => [name, answer] as const);
    const offers = { hasDocs: files.size > 0 };
    return { offers, paths: { docs: docsPath(files), ...Object.fromEntries(documentPaths) } };
  },
};
