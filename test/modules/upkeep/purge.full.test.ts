import { openData } from '../../../src/cli/open-data.ts';
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { purgeSecrets } from '../../../src/modules/upkeep/purge.ts';
import { runHere } from '../../cli/here.ts';
import { temporaryFolder } from '../../folder.ts';
import { postOperation } from '../../harness.ts';
import { serverFolder, startServed } from '../../process.ts';
import { inserted, openIn, startWriter } from '../../core/log/scratch.ts';
import { upkeep } from '../../../src/modules/upkeep/upkeep.ts';

const dayMs = 86_400_000;
const formerHeader = 'Bearer former-header-value';
const currentHeader = 'Bearer current-header-value';

/** The bytes of all files of a folder. */
async function bytesOf(folder: string): Promise<string> {
  const names = await readdir(folder, { recursive: true });
  const texts = await Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      return (await stat(path)).isFile() ? readFile(path, 'latin1') : '';
    }),
  );
  return texts.join('\n');
}

/**
 * A stopped site with a rule with a changed header, and a hook with a secret that was rotated
 * twice.
 */
async function siteWithSecrets(t: TestContext) {
  const { folder, iniFile } = await serverFolder(t, '[webhook]\nallow_private = 127.0.0.0/8\n');
  const first = await startServed(t, iniFile);
  const { url, adminKey: apikey } = first;
  const call = async (name: string, v: object) =>
    (await postOperation(url, `svc1.${name}`, v, { apikey })).data;
  const enginedata = (authorization: string) => ({
    source: 'http://127.0.0.1:9/*',
    headers: { authorization },
  });
  const kind = 'content.fetch';
  const rule = (
    await call('userinterface.insert', { path: '/s/*', kind, enginedata: enginedata(formerHeader) })
  ).id as string;
  // A page that is freed and used again still contains its former bytes.
  for (let at = 0; at < 20; at += 1) {
    const content = 'x'.repeat(1_000 * at);
    await call('userinterface.insert', { path: `/page/${at}`, kind: 'content', content });
  }
  await call('userinterface.edit', { id: rule, enginedata: enginedata(currentHeader) });
  const hookFields = {
    event: 'a.b',
    url: 'http://127.0.0.1:9/',
    headers: { 'x-key': formerHeader },
  };
  const hook = await call('webhook.insert', hookFields);
  await call('webhook.edit', { id: hook.id, headers: { 'x-key': currentHeader } });
  const secrets = [hook.secret as string];
  for (let at = 0; at < 2; at += 1) {
    secrets.push((await call('webhook.rotate', { id: hook.id })).secret as string);
  }
  first.child.kill('SIGTERM');
  await first.closed;
  const waymark = (...words: string[]) => runHere([...words, '--config', iniFile]);
  return {
    data: join(folder, 'data'),
    iniFile,
    apikey,
    rule,
    hook: hook.id as string,
    secrets,
    waymark,
  };
}

suite('waymark purge-secret', () => {
  test('removes former secrets from all files of the data folder, and logs that', async (t) => {
    const site = await siteWithSecrets(t);
    const [first = '', second = '', third = ''] = site.secrets;
    const before = await bytesOf(site.data);
    assert.ok([formerHeader, currentHeader, ...site.secrets].every((one) => before.includes(one)));

    const data = await readFile(join(site.data, 'data.mdb'), 'latin1');
    const dry = await site.waymark('purge-secret', '--all', '--dry-run', '--json');
    const { rows, seq } = JSON.parse(dry.out) as { rows: number[]; seq: null };
    assert.deepEqual([rows.length, seq], [3, null]);
    const file = join(site.data, 'data.mdb');
    assert.ok((await readFile(file, 'latin1')) === data, 'a dry run changes nothing');

    await mkdir(join(site.data, '.purge-killed'));
    const done = await site.waymark('purge-secret', '--all');
    assert.equal(done.code, 0, done.err);
    assert.match(
      done.err,
      /^Purged secrets in 3 changes \(seq \d+, \d+, \d+\), and recorded it as change \d+/,
    );
    const after = await bytesOf(site.data);
    for (const gone of [formerHeader, first]) assert.ok(!after.includes(gone), gone);
    for (const kept of [currentHeader, second, third]) assert.ok(after.includes(kept), kept);
    const names = (await readdir(site.data)).filter((name) => /purge|mdb/.test(name));
    assert.deepEqual(names, ['data.mdb'], 'and no draft');

    const checked = await site.waymark('check', '--data');
    assert.equal(checked.code, 0, checked.err);
    const history = (await site.waymark('export', '--history')).out.trim().split('\n');
    const trace = JSON.parse(history.at(-1) ?? '') as { by: string; family: string; data: object };
    assert.deepEqual([trace.by, trace.family], ['waymark purge-secret', 'purge']);
    assert.deepEqual(trace.data, { rows });
    const again = await site.waymark('purge-secret', '--all');
    assert.match(again.err, /has no secret to purge\.\n$/);

    const { url } = await startServed(t, site.iniFile, { first: false });
    const read = await postOperation(
      url,
      'svc1.userinterface.read',
      { id: site.rule },
      {
        apikey: site.apikey,
      },
    );
    assert.equal(read.data.enginedata.headers.authorization, currentHeader);
    const past = await postOperation(
      url,
      'svc1.userinterface.read',
      { id: site.rule },
      {
        apikey: site.apikey,
        qk: 'history',
      },
    );
    assert.equal(past.data.rows.at(-1).data.enginedata.headers.authorization, '[purged]');
    assert.equal((await fetch(`${url}/page/3`)).status, 200);
    const refused = await site.waymark('purge-secret', '--all');
    assert.match(refused.err, /^waymark: the data folder \S+ is in use by another waymark/);
  });

  test('removes the previous secret once it no longer signs', async (t) => {
    const site = await siteWithSecrets(t);
    const [first = '', second = '', third = ''] = site.secrets;
    const purged = await purgeSecrets({
      folder: site.data,
      now: () => Date.now() + 2 * dayMs,
      newId: () => 'one',
      by: 'test',
      openStore: openData,
      selects: (id) => id === site.hook,
      dryRun: false,
    });
    assert.equal(purged.rows.length, 3);
    const after = await bytesOf(site.data);
    assert.deepEqual(
      [first, second, third].map((secret) => after.includes(secret)),
      [false, false, true],
    );
    assert.ok(after.includes(formerHeader), 'that of the rule was not asked for');
    const checked = await site.waymark('check', '--data');
    assert.equal(checked.code, 0, checked.err);
  });

  test('works on a backup, and on a single rule or hook', async (t) => {
    const site = await siteWithSecrets(t);
    const copy = join(await temporaryFolder(t), 'copy');
    assert.equal((await site.waymark('backup', copy)).code, 0);
    const done = await runHere(['purge-secret', '--data', copy, '--rule', site.rule]);
    assert.match(done.err, /^Purged secrets in one change \(seq 2\)/);
    assert.deepEqual((await readdir(copy)).toSorted(), [
      'data.mdb',
      'opening-wait.lock',
      'opening.lock',
    ]);
    assert.ok((await bytesOf(site.data)).includes(formerHeader));
    for (const words of [[], ['--all', '--rule', 'x']]) {
      assert.equal((await site.waymark('purge-secret', ...words)).code, 2);
    }
  });

  test('changes nothing if another process writes meanwhile', async (t) => {
    const folder = await temporaryFolder(t);
    const store = await openIn(folder);
    const enginedata = { source: 'http://a.example/', headers: { authorization: formerHeader } };
    const drafts = [
      inserted('rule', { path: '/s', kind: 'content.fetch', enginedata }),
      ...Array.from({ length: 5_000 }, (_, at) => inserted(`${at}`, { path: `/${at}` })),
      { family: 'userinterface', id: 'rule', action: 'edit', data: { enginedata: null } } as const,
    ];
    await store.commit('test', () => ({ drafts, answer: () => undefined }));
    await store.close();
    const { child, lines } = startWriter(t, [folder, '1000000']);
    let written = 0;
    for await (const line of lines) {
      if (line !== 'ready') written += 1;
      if (written === 100) break;
    }
    const parts = {
      folder,
      now: Date.now,
      newId: () => 'one',
      by: 'test',
      dryRun: false,
      openStore: openData,
    };
    await assert.rejects(purgeSecrets({ ...parts, selects: () => true }), {
      code: 'conflict',
      message: /another process has written to \S+ meanwhile: nothing was purged/,
    });
    child.kill('SIGKILL');
    assert.deepEqual((await readdir(folder)).toSorted(), [
      'data.mdb',
      'lock.mdb',
      'opening-wait.lock',
      'opening.lock',
    ]);
    const after = await openIn(folder);
    t.after(() => after.close());
    assert.deepEqual(after.change(1)?.data.enginedata, enginedata);
    for await (const { differences } of after.part(upkeep).verify())
      assert.deepEqual(differences, []);
  });
});
