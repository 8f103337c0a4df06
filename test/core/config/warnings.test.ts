import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { runHere } from '../../cli/here.ts';
import { readTestConfig, startSite } from '../../harness.ts';
import { serverFolder } from '../../process.ts';

const unix = 'listen[] = 127.0.0.1:0\nlisten[] = unix:waymark.sock';

suite('`check` warns of settings without effect, and of no others', () => {
  const table: readonly (readonly [server: string, sections: string, ...said: string[]])[] = [
    ['', ''],
    ['', '[auth]\nuser_header = X-User', '[auth] user_header'],
    [
      '',
      '[auth]\nuser_header = X-User\nroles_header = X-Roles\n[geo]\ncountry_header = X-Country',
      '[auth] user_header',
      '[auth] roles_header',
      '[geo] country_header',
    ],
    ['trust_proxy = 10.0.0.0/8', '[auth]\nuser_header = X-User\n[geo]\ncountry_header = X-C'],
    [unix, '[auth]\nuser_header = X-User'],
    ['', '[tls]\nhsts = 1d', '[tls] hsts'],
    ['', '[login]\nconsole_roles = a', '[login] console_roles'],
    ['', '[login]\nissuer = https://id.example\nclient_id = a\nconsole_roles = a'],
    ['', '[log]\nfile = access.log\naccess = no', '[log] file'],
    ['', '[log]\nfile = access.log'],
    ['', '[disk.own]\nroot = site\npath = /svc1/docs/', '[disk.own]'],
    ['base = /api', '[disk.own]\nroot = site\npath = /svc1/'],
    ['base = /api', '[disk.own]\nroot = site\npath = /api/svc1/', '[disk.own]'],
  ];
  for (const [server, sections, ...said] of table) {
    test(`${server} ${sections}`.replaceAll('\n', ' '), async (t) => {
      const { iniFile, folder } = await serverFolder(t, '');
      await mkdir(join(folder, 'site'), { recursive: true });
      await writeFile(iniFile, `[server]\n${server}\ndata = data\n${sections}\n`);
      const { code, err } = await runHere(['check', '--config', iniFile]);
      assert.equal(code, 0);
      const warned = [...err.matchAll(/^(.*) has no effect: /gm)].map(([, name]) => name);
      assert.deepEqual(warned, said);
      const json = await runHere(['check', '--json', '--config', iniFile]);
      const { ok, warnings } = JSON.parse(json.out) as { ok: boolean; warnings: string[] };
      assert.deepEqual([ok, warnings.length], [true, said.length]);
    });
  }
});

test('`check` warns of a guard for one page that has more below it', async (t) => {
  const access = (path: string) => `[access.a]\npath = ${path}\nallow = 10.0.0.0/8\n`;
  const table: readonly (readonly [sections: string, warning: RegExp | undefined])[] = [
    [access('/inner'), /^\[access\.a\] covers \/inner alone, and a folder of \[disk\.site\]/m],
    [access('/inner/'), undefined],
    [access('/inner, /inner/*'), undefined],
    [access('/other'), undefined],
    [access('/index.html'), undefined],
    [`${access('/api')}[proxy.api]\npath = /api/\nsource = http://127.0.0.1:9\n`, /\[proxy\.api\]/],
    [`${access('/api')}[rate.b]\npath = /api/x\nrate = 1/s\n`, /\[rate\.b\] has paths below/],
    ['[rate.a]\npath = /inner\nrate = 1/s\n', /^\[rate\.a\] covers \/inner alone/m],
  ];
  const { iniFile, folder } = await serverFolder(t, '');
  await mkdir(join(folder, 'site/inner'), { recursive: true });
  for (const [sections, warning] of table) {
    await writeFile(iniFile, `[server]\ndata = data\n[disk.site]\nroot = site\n${sections}`);
    const { code, err } = await runHere(['check', '--config', iniFile]);
    assert.equal(code, 0);
    if (warning === undefined) assert.doesNotMatch(err, /covers/, sections);
    else assert.match(err, warning, sections);
  }
});

test('the log has these warnings after a start and after a reload', async (t) => {
  const site = await startSite(t, { ini: '[auth]\nuser_header = X-User\n' });
  const said = () => site.logged().match(/\w+_header has no effect.*trust_proxy/g);
  assert.deepEqual(said()?.length, 1, site.logged());
  const ini = await readFile(site.iniFile, 'utf8');
  await writeFile(site.iniFile, `${ini}[geo]\ncountry_header = X-Country\n`);
  site.waymark.reload({ ok: true, config: await readTestConfig(site.iniFile) });
  assert.deepEqual(said()?.length, 3, site.logged());
});
