// Sends the forms of a path to nginx, Caddy and Waymark, those of a browser by Chromium, and writes
// the tables of docs/reference/request-forms.md: `npm run conformance:forms`.
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { launch } from '../browser/browser.ts';
import { versionOf } from '../other-servers.ts';
import { project } from '../tidy/sources.ts';
import { browserAsk, rawAsk, rowOf, startServers, type Row } from './forms/answers.ts';
import { browserForms, programForms } from './forms/forms.ts';
import { tableOf, withTable } from './forms/table.ts';

const page = join(project, 'docs/reference/request-forms.md');

async function main(): Promise<void> {
  const versions = (['nginx', 'caddy'] as const).map((name) => {
    const version = versionOf(name);
    if (version === undefined) throw new Error(`No ${name}: put it on PATH.`);
    return `${name} ${version}`;
  });
  const cleanups: (() => unknown)[] = [];
  const cleaning = { after: (cleanup: () => unknown) => void cleanups.push(cleanup) };
  try {
    const servers = await startServers(cleaning, { isAlone: false });
    const browser = await launch();
    cleaning.after(() => browser.close());
    const ask = browserAsk(await browser.newPage());
    const browsers: Row[] = [];
    for (const form of browserForms) browsers.push(await rowOf(servers, ask, form));
    const programs: Row[] = [];
    for (const form of programForms) programs.push(await rowOf(servers, rawAsk, form));
    const text = await readFile(page, 'utf8');
    const first = withTable('browsers', text, tableOf('browsers', browsers));
    await writeFile(page, withTable('programs', first, tableOf('programs', programs)));
    const { length } = [...browsers, ...programs];
    process.stdout.write(`${length} forms to ${versions.join(', ')} and Waymark: ${page}\n`);
  } finally {
    for (const cleanup of cleanups) await cleanup();
  }
}

await main();
