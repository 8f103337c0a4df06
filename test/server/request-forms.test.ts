import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { httpSource } from '../outbound/sources.ts';
import { startSite, type TestSite } from '../harness.ts';
import { project } from '../tidy/sources.ts';

/** A row of the documentation's table: its forms, and the columns of Waymark. */
interface Row {
  readonly forms: readonly string[];
  readonly application: string;
  readonly file: string;
  readonly page: string;
}

function readRows(): readonly Row[] {
  const text = readFileSync(join(project, 'docs/reference/request-forms.md'), 'utf8');
  return text
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => {
      const cells = line.split(' | ').map((cell) => cell.replace(/^\||\|$/g, '').trim());
      const [forms = '', , , , , application = '', file = '', page = ''] = cells;
      return {
        forms: [...forms.matchAll(/`([^`]+)`/g)].map(([, one = '']) => one),
        application,
        file,
        page,
      };
    });
}

const rows = readRows();

/** The status of the answer to a target that is sent as UTF-8, and its Location. */
async function statusOf(site: TestSite, target: string): Promise<string> {
  const bytes = Buffer.from(target).toString('latin1');
  const answer = await site.raw(
    `GET ${bytes} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`,
  );
  const location = /\r\nlocation: ([^\r]*)/i.exec(answer)?.[1];
  assert.doesNotMatch(location ?? '', /^\/\//);
  return answer.split(' ')[1] ?? '';
}

async function application(t: TestContext) {
  const seen: (string | undefined)[] = [];
  const { origin } = await httpSource(t, ({ url }, response) => {
    seen.push(url);
    response.end('ok');
  });
  const site = await startSite(t, {
    ini: '[fetch]\nallow_private = 127.0.0.0/8\n',
    rules: [{ path: '/*', kind: 'content.fetch', enginedata: { source: `${origin}/*` } }],
  });
  return { site, seen };
}

suite('the forms of a path in the documentation', () => {
  test('are as it says for an application', async (t) => {
    assert.ok(rows.length >= 20);
    const { site, seen } = await application(t);
    for (const { forms, application: wanted } of rows) {
      for (const form of forms) {
        seen.length = 0;
        const status = await statusOf(site, form);
        if (wanted === 'as sent') assert.deepEqual([status, ...seen], ['200', form]);
        else assert.deepEqual([status, ...seen], [wanted.slice(0, 3)], form);
      }
    }
  });

  for (const [column, given] of [
    ['file', { ini: '[disk.site]\nroot = site\n', files: { 'site/a/b.txt': 'b' } }],
    ['page', { rules: [{ path: '/a/b.txt', kind: 'content', content: 'b' }] }],
  ] as const) {
    test(`are as it says for a ${column}`, async (t) => {
      const site = await startSite(t, given);
      for (const row of rows) {
        for (const form of row.forms) {
          assert.equal(await statusOf(site, form), row[column], form);
        }
      }
    });
  }
});
