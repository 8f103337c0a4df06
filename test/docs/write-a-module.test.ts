import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { temporaryFolder } from '../folder.ts';
import { startSite } from '../harness.ts';
import { project } from '../tidy/sources.ts';

const page = readFileSync(join(project, 'docs/how-to/write-a-module.md'), 'utf8');

/** The blocks of a language, as the page prints them. */
function blocks(language: string): readonly string[] {
  const pattern = new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms');
  return [...page.matchAll(pattern)].map(([, text = '']) => text);
}

/** The files that the page prints: programs name theirs in the first line. */
function namedFiles(): Readonly<Record<string, string>> {
  const programs = blocks('js').map((text) => {
    const [, name = '', rest = ''] = /^\/\/ (\S+)\n(.*)$/s.exec(text) ?? [];
    return [name, rest] as const;
  });
  const [schema = ''] = blocks('json');
  return { ...Object.fromEntries(programs), 'votes.json': schema };
}

test('the modules of the how-to work as it prints them', async (t) => {
  const folder = await temporaryFolder(t);
  const path = join(folder, 'articles.db');
  const database = new DatabaseSync(path);
  database.exec('create table article (path text, title text, text text)');
  database.exec("insert into article values ('/news', 'News', '<h1>News</h1>')");
  database.close();
  const site = await startSite(t, {
    ini: `[disk.main]\nroot = site\n${blocks('ini').join('\n')}`,
    files: {
      ...namedFiles(),
      'articles.db': readFileSync(path),
      'notice.html': '<p>Closed on Monday</p>',
      'site/index.html': '<!doctype html><body class="home"><h1>Home</h1>',
      'site/a.txt': 'plain <body>',
    },
  });
  const textOf = async (place: string) => (await fetch(`${site.url}${place}`)).text();
  const notice = '<p>Closed on Monday</p>';
  assert.equal(await textOf('/'), `<!doctype html><body class="home">${notice}<h1>Home</h1>`);
  assert.equal(await textOf('/a.txt'), 'plain <body>');
  assert.match(await textOf('/news'), /<body><p>Closed on Monday<\/p><h1>News<\/h1>$/);
  assert.equal((await fetch(`${site.url}/old-news`)).status, 404);
  const cast = (choice: string) => site.call('svc1.votes.cast', { choice }, { apikey: undefined });
  assert.deepEqual((await cast('tea')).data, { tea: 1, coffee: 0, water: 0 });
  assert.deepEqual((await cast('tea')).data, { tea: 2, coffee: 0, water: 0 });
  const refused = (await cast('gin')).error;
  assert.deepEqual([refused?.code, refused?.field], ['invalid', 'choice']);
  const { data } = await site.call('svc1.record.list', { table: 'votes' });
  assert.equal((data as { rows: unknown[] }).rows.length, 2);
});
