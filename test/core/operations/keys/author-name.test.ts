import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { runHere } from '../../../cli/here.ts';
import { startSite, type TestSite } from '../../../harness.ts';
import { transports } from '../../../modules/status/transports.ts';

const rule = 'svc1.userinterface';

/** A page and a draft by a key that is gone, and an edit by the admin. */
async function written(
  site: TestSite,
  end: (key: { id: string; txn: string }) => Promise<unknown>,
) {
  const made = await site.call('svc1.key.insert', { name: 'Ann', scopes: ['design', 'read'] });
  const { id: by, key: apikey } = made.data;
  const page = await site.call(`${rule}.insert`, { path: '/a', content: 'a' }, { apikey });
  const { id } = page.data;
  await site.call('svc1.draft.insert', { name: 'spring' }, { apikey });
  const { data: keys } = await site.call('svc1.change.list', { family: 'key', action: 'insert' });
  const { txn } = keys.rows.find((row: { id: string }) => row.id === by);
  await end({ id: by, txn });
  const gone = await site.call(`${rule}.read`, { id }, { apikey });
  assert.equal(gone.error?.code, 'unauthenticated');
  return { id: id as string, by: by as string };
}

const ends = {
  revoked: (site: TestSite) => (key: { id: string }) =>
    site.call('svc1.key.revoke', { id: key.id }),
  undone: (site: TestSite) => async (key: { txn: string }) => {
    const { data } = await site.call('svc1.change.invalidate', { txn: key.txn });
    const confirmed = { txn: key.txn, confirm: data.digest };
    await site.call('svc1.change.invalidate', confirmed);
  },
} as const;

for (const [how, ending] of Object.entries(ends)) {
  for (const [transport, open] of Object.entries(transports)) {
    suite(`the author of a change by a key that was ${how}, over ${transport}`, () => {
      test('has its name in histories, lists, undos, drafts and exports', async (t) => {
        const site = await startSite(t);
        const call = await open(site);
        const { id, by } = await written(site, ending(site));
        const { data: history } = await call(`${rule}.read`, { id }, { qk: 'history' });
        assert.deepEqual([history.rows[0].by, history.rows[0].by_name], [by, 'Ann']);
        const { data: changes } = await call('svc1.change.list', { by });
        assert.deepEqual(
          changes.rows.map((row: { by_name?: string }) => row.by_name),
          changes.rows.map(() => 'Ann'),
        );
        const { data: keys } = await call('svc1.change.list', { family: 'key' });
        assert.equal(keys.rows[0].title, 'Ann');
        const { data: draft } = await call('svc1.draft.read', { draft: 'spring' });
        assert.equal(draft.by_name, 'Ann');
        // A conflict of an undo names who has changed the record since.
        const { data: edited } = await call(`${rule}.edit`, { id, content: 'b' });
        const { data: undo } = await call(`${rule}.invalidate`, {
          id,
          until: String(edited.seq - 1),
        });
        assert.match(undo.conflicts[0].later[0].by_name, /./);
      });
    });
  }
}

suite('the name of an author', () => {
  test('is for those who may list keys', async (t) => {
    const site = await startSite(t);
    const { id, by } = await written(site, ends.revoked(site));
    const { data: reader } = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
    const apikey = reader.key as string;
    const read = await site.call(`${rule}.read`, { id }, { qk: 'history', apikey });
    assert.deepEqual([read.data.rows[0].by, read.data.rows[0].by_name], [by, undefined]);
    const list = await site.call('svc1.change.list', { by }, { apikey });
    assert.equal(list.data.rows[0].by_name, undefined);
  });

  test('stands in `waymark rule history`, `change list` and `export --history`', async (t) => {
    const site = await startSite(t);
    const { id, by } = await written(site, ends.revoked(site));
    const env = { WAYMARK_APIKEY: site.adminKey, WAYMARK_URL: site.url };
    const history = await runHere(['rule', 'history', id], { env });
    assert.ok(history.out.includes(`Ann (${by})`), history.out);
    const list = await runHere(['change', 'list', '--by', by], { env });
    assert.ok(list.out.includes(`Ann (${by})`), list.out);
    const lines = await runHere(['export', '--history', '--config', site.iniFile], { env });
    const [line] = lines.out.split('\n').filter((one) => one.includes('"family":"userinterface"'));
    assert.equal((JSON.parse(line ?? '{}') as { by_name?: string }).by_name, 'Ann');
  });
});
