import { after, suite } from 'node:test';
import { builtDocs } from '../docs/built-docs.ts';
import { startSite } from '../harness.ts';
import { oneBrowser } from './browser.ts';
import { testLooks } from './docs-looks.ts';

const openTab = oneBrowser();
const { folder: docsFolder } = await builtDocs();
const site = await startSite({ after }, { docsFolder });

suite('a long page of the documentation', () => {
  testLooks(openTab, `${site.url}/svc1/docs`, [
    'reference/operations.html',
    'reference/ini-file.html',
    'design/index.html',
  ]);
});
