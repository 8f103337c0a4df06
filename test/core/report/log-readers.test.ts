import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { installed } from '../../installed.ts';
import { temporaryFolder } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { project } from '../../tidy/sources.ts';

/** Requests of visitors and attackers, and the access log that they leave. */
async function writtenLog(t: TestContext, ini: string): Promise<string> {
  const site = await startSite(t, {
    ini: `[log]\n${ini}\n`,
    rules: [{ path: '/page', content: 'x' }],
  });
  const ask = async (path: string, headers = {}) =>
    (await fetch(`${site.url}${path}`, { headers })).text();
  const agent = 'Mozilla/5.0 (X11; Linux x86_64) "quoted" \\ 401';
  await ask('/page?a=1', { 'User-Agent': agent, Referer: 'https://a.example/?q="x' });
  await ask('/page', { 'User-Agent': `x" 401 1 "-" "-` });
  await ask('/missing');
  await site.call('svc1.server.status', {}, { apikey: 'wmk_wrong' });
  await site.raw('GET /b HTTP/1.1\r\nHost: x\r\nBad Field: 1\r\n\r\n');
  await site.raw('\x16\x03\x01\x02"\\\r\n\r\n');
  const path = join(await temporaryFolder(t), 'access.log');
  await writeFile(path, site.logged().replace(/^\[.*\n/gm, ''));
  return path;
}

/** Runs a program to its end; returns what it prints. */
function run(program: string, ...words: readonly string[]): string {
  const { status, stdout, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  assert.equal(status, 0, `${stdout}${stderr}`);
  return stdout;
}

suite('GoAccess', { skip: installed('goaccess') }, () => {
  const formats: readonly (readonly [ini: string, format: string])[] = [
    ['format = combined', 'COMBINED'],
    [
      'line = \'{date} {address} "{request}" {status} {bytes} {ms} "{referer}" "{user_agent}"\'',
      '%d/%b/%Y:%H:%M:%S %^ %h "%r" %s %b %L "%R" "%u"',
    ],
  ];
  for (const [ini, format] of formats) {
    test(`reads every request of: ${ini}`, async (t) => {
      const log = await writtenLog(t, ini);
      const report = `${log}.json`;
      const dates = format === 'COMBINED' ? [] : ['--date-format=%d/%b/%Y', '--time-format=%T'];
      const pattern = format.replace('%d/%b/%Y:%H:%M:%S', '%d:%t');
      run('goaccess', log, '--no-global-config', `--log-format=${pattern}`, ...dates, '-o', report);
      const { general, status_codes: codes } = JSON.parse(await readFile(report, 'utf8'));
      // A malformed request line has no method and path, so GoAccess counts it as failed.
      assert.equal(general.total_requests, 6);
      assert.ok(general.valid_requests >= 5, JSON.stringify(general));
      const classes = codes.data.map(({ data }: { readonly data: string }) => data.slice(0, 3));
      assert.deepEqual(classes.toSorted(), ['2xx', '4xx']);
    });
  }
});

suite('fail2ban', { skip: installed('fail2ban-regex') }, () => {
  test('finds the refused clients by the filter of the package, and no others', async (t) => {
    const log = await writtenLog(t, 'format = combined');
    // fail2ban-regex takes a name with a space for a regular expression.
    const filter = join(dirname(log), 'filter.conf');
    await copyFile(join(project, 'packaging/fail2ban/filter.conf'), filter);
    const text = run('fail2ban-regex', '--print-all-matched', log, filter);
    assert.match(text, /^Lines: 6 lines, 0 ignored, 3 matched, 3 missed/m);
    const [, matched = ''] = text.split(/(?:Matched|Missed) line\(s\):/);
    assert.match(matched, / 401 /);
    assert.doesNotMatch(matched, /GET \/(?:page|missing)/);
  });

  test('accepts the jail of the package', async (t) => {
    const folder = await temporaryFolder(t);
    for (const name of ['filter.d', 'jail.d', 'action.d']) await mkdir(join(folder, name));
    const put = async (from: string, to: string): Promise<void> => {
      const text = await readFile(join(project, 'packaging/fail2ban', from), 'utf8');
      await writeFile(join(folder, to), text.replace('/var/log/waymark', folder));
    };
    await put('filter.conf', 'filter.d/waymark.conf');
    await put('jail.conf', 'jail.d/waymark.conf');
    const log = await writtenLog(t, 'format = combined');
    await writeFile(join(folder, 'access.log'), await readFile(log));
    await writeFile(join(folder, 'fail2ban.conf'), '[Definition]\nloglevel = INFO\n');
    const shown = run('fail2ban-client', '-c', folder, '-d');
    assert.match(shown, /'add', 'waymark'/);
    assert.match(shown, /'addfailregex'/);
    assert.match(shown, /'maxretry', 20/);
  });
});
