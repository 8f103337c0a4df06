import assert from 'node:assert/strict';
import { after, suite, test } from 'node:test';
import { startSite } from '../../harness.ts';

const started = startSite({ after });

interface Row {
  readonly seq: number;
  readonly txn: string;
  readonly by: string;
  readonly by_name?: string;
  readonly family: string;
  readonly action: string;
  readonly title?: string;
  readonly fields: readonly string[];
  readonly applies: boolean;
}

async function list(v: object, apikey?: string): Promise<{ rows: Row[]; next: number | null }> {
  const site = await started;
  const { data, error } = await site.call('svc1.change.list', v, apikey ? { apikey } : {});
  assert.equal(error, undefined);
  return data;
}

suite('change.list', () => {
  test('lists changes newest first, without the values that they wrote', async () => {
    const site = await started;
    const { data: page } = await site.call('svc1.userinterface.insert', {
      path: '/one',
      kind: 'content',
      content: 'secret words',
    });
    await site.call('svc1.userinterface.edit', { id: page.id, content: 'two' });
    const { rows } = await list({ family: 'userinterface' });
    const [edit, insert] = rows;
    assert.deepEqual([edit?.action, edit?.title, edit?.fields], ['edit', '/one', ['content']]);
    assert.deepEqual([insert?.action, insert?.by_name], ['insert', 'admin']);
    assert.ok(!JSON.stringify(rows).includes('secret words'));
    assert.deepEqual((await list({ txn: insert?.txn })).rows, [insert]);
    assert.equal((await list({ by: insert?.by, family: 'userinterface' })).rows.length, 2);
    assert.deepEqual((await list({ by: 'nobody' })).rows, []);
    assert.deepEqual(await list({ txn: 'none' }), { rows: [], next: null });
    const first = await list({ family: 'userinterface', limit: 1 });
    assert.equal(first.next, (edit?.seq ?? 0) - 0);
    const second = await list({ family: 'userinterface', limit: 1, before: first.next });
    assert.deepEqual(second.rows, [insert]);
  });

  test('shows hooks and keys only to callers with their scopes, and no sessions', async () => {
    const site = await started;
    const { data: made } = await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] });
    const { key } = made as { key: string };
    await site.call('svc1.webhook.insert', { url: 'http://x.example/', event: ['a.b'] });
    await site.call('svc1.session.insert', { apikey: key }, { apikey: undefined });
    const families = (rows: readonly Row[]) => [...new Set(rows.map(({ family }) => family))];
    const mine = await list({}, key);
    assert.ok(families(mine.rows).every((family) => family === 'userinterface'));
    assert.ok(mine.rows.every((row) => row.by_name === undefined));
    const all = await list({});
    assert.deepEqual(families(all.rows).sort(), ['key', 'userinterface', 'webhook']);
    assert.equal(all.rows.filter(({ family }) => family === 'key').length, 2);
    assert.ok(!JSON.stringify(all.rows).includes('hash'));
  });
});
