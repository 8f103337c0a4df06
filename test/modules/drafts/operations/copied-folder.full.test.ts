import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { runHere } from '../../../cli/here.ts';
import { temporaryFolder, writeFiles } from '../../../folder.ts';
import { postOperation, type Answer } from '../../../harness.ts';
import { serverFolder, startServed } from '../../../process.ts';

const rule = 'svc1.userinterface';
const draft = 'spring';
const [former, current] = ['Bearer former-header-value', 'Bearer current-header-value'];

/** A stopped site with an open draft that has changed a header twice. */
async function siteWithDraft(t: TestContext) {
  const { folder, iniFile } = await serverFolder(t, '');
  const first = await startServed(t, iniFile);
  const { url, adminKey: apikey } = first;
  const call = (name: string, v: object, more: object = {}): Promise<Answer> =>
    postOperation(url, name, v, { apikey, ...more });
  const fetched = (authorization: string): object => ({
    ...{ path: '/s/*', kind: 'content.fetch' },
    enginedata: { source: 'http://127.0.0.1:9/*', headers: { authorization } },
  });
  const { data: page } = await call(`${rule}.insert`, { path: '/a', content: 'live' });
  await call('svc1.draft.insert', { name: draft });
  await call(`${rule}.edit`, { id: page.id, content: 'drafted' }, { draft });
  const { data: far } = await call(`${rule}.insert`, fetched(former), { draft });
  await call(`${rule}.edit`, { id: far.id, ...fetched(current) }, { draft });
  first.child.kill('SIGTERM');
  await first.closed;
  return { folder, iniFile, apikey, far: far.id as string };
}

/** Reads, compares and publishes the draft of a site, which is then checked. */
async function requireWhole(
  t: TestContext,
  {
    iniFile,
    apikey,
    far,
  }: { readonly iniFile: string; readonly apikey: string; readonly far: string },
): Promise<void> {
  const checked = await runHere(['check', '--data', '--config', iniFile]);
  assert.equal(checked.code, 0, checked.err);
  const served = await startServed(t, iniFile, { first: false });
  const call = (name: string, v: object, more: object = {}): Promise<Answer> =>
    postOperation(served.url, name, v, { apikey, ...more });
  const { data: changes } = await call('svc1.draft.changes', { draft });
  assert.equal(changes.rows.length, 2);
  const { data: read } = await call(`${rule}.read`, { id: far }, { draft });
  assert.equal(read.enginedata.headers.authorization, current);
  assert.equal((await call('svc1.draft.compare', { draft, urls: '/a' })).data.differing, 1);
  const { data: report } = await call('svc1.draft.publish', { draft });
  await call('svc1.draft.publish', { draft, confirm: report.digest });
  assert.equal(await (await fetch(`${served.url}/a`)).text(), 'drafted');
  const { data: undo } = await call('svc1.draft.undo', { draft });
  await call('svc1.draft.undo', { draft, confirm: undo.digest });
  assert.equal(await (await fetch(`${served.url}/a`)).text(), 'live');
  served.child.kill('SIGTERM');
  await served.closed;
  const again = await runHere(['check', '--data', '--config', iniFile]);
  assert.equal(again.code, 0, again.err);
}

suite('an open draft', () => {
  test('is in a backup, and goes on where that is restored', async (t) => {
    const site = await siteWithDraft(t);
    const target = join(await temporaryFolder(t), 'data');
    const made = await runHere(['backup', target, '--config', site.iniFile]);
    assert.equal(made.code, 0, made.err);
    const folder = await temporaryFolder(t);
    const ini = await readFile(site.iniFile, 'utf8');
    await writeFiles(folder, { 'server.ini': ini.replace(/^data = .*$/m, `data = ${target}`) });
    await requireWhole(t, { ...site, iniFile: join(folder, 'server.ini') });
  });

  test('loses its former secrets by a purge, and nothing else', async (t) => {
    const site = await siteWithDraft(t);
    const bytes = () => readFile(join(site.folder, 'data/data.mdb'), 'latin1');
    assert.ok((await bytes()).includes(former));
    const purged = await runHere(['purge-secret', '--all', '--config', site.iniFile]);
    assert.equal(purged.code, 0, purged.err);
    assert.ok(!(await bytes()).includes(former));
    await requireWhole(t, site);
  });
});
