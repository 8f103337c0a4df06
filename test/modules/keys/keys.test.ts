import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { operations } from '../../../src/modules.ts';
import { startSite, type TestSite } from '../../harness.ts';

async function keysOf(site: TestSite): Promise<readonly string[]> {
  const { data } = await site.call('svc1.key.list', {});
  return (data.rows as readonly { readonly name: string }[]).map(({ name }) => name);
}

test('a key that ends makes no key that ends later, and moves no end beyond its own', async (t) => {
  const site = await startSite(t);
  const until = '2999-01-01T00:00:00.000Z';
  const made = await site.call('svc1.key.insert', { name: 'agency', scopes: ['admin'], until });
  const { id, key: apikey } = made.data;
  const refusal = async (name: string, v: object): Promise<unknown> => {
    const { error } = await site.call(name, v, { apikey });
    return error && [error.code, error.field];
  };
  const [none, key] = [undefined, { name: 'more', scopes: ['read'] }];
  const later = '2999-01-01T00:00:00.001Z';
  const refused = ['forbidden', 'until'];
  assert.deepEqual(await refusal('svc1.key.insert', key), refused);
  assert.deepEqual(await refusal('svc1.key.insert', { ...key, until: later }), refused);
  assert.equal(await refusal('svc1.key.insert', { ...key, until }), none);
  assert.deepEqual(await refusal('svc1.key.edit', { id, until: later }), refused);
  assert.deepEqual(await refusal('svc1.key.edit', { id, until: 'never' }), refused);
  assert.equal(await refusal('svc1.key.edit', { id, name: 'other' }), none);
  assert.equal((await site.call('svc1.key.read', { id })).data.until, until);
});

suite('a repeated vk', () => {
  test('makes no second key, and shows no key again', async (t) => {
    const site = await startSite(t);
    const v = { name: 'ci', scopes: ['read'], rate: 5 };
    const first = await site.call('svc1.key.insert', v, { vk: 'once' });
    const { key, ...shown } = first.data;
    assert.match(key, /^wmk_/);
    assert.deepEqual([first.vk, first.replayed], ['once', undefined]);
    const again = await site.call('svc1.key.insert', v, { vk: 'once' });
    assert.deepEqual([again.data, again.vk, again.replayed], [shown, 'once', true]);
    assert.equal(JSON.stringify(again).includes('hash'), false);
    const other = await site.call('svc1.key.insert', { ...v, name: 'x' }, { vk: 'once' });
    assert.deepEqual([other.error?.code, other.error?.field], ['conflict', 'vk']);
    await site.call('svc1.key.insert', v);
    assert.deepEqual((await keysOf(site)).filter((name) => name === 'ci').length, 2);

    const gone = { id: first.data.id };
    for (const replayed of [undefined, true]) {
      const revoked = await site.call('svc1.key.revoke', gone, { vk: 'end' });
      assert.deepEqual([revoked.data, revoked.replayed], [{ ...gone, revoked: true }, replayed]);
    }
    assert.equal((await site.call('svc1.key.revoke', gone)).error?.code, 'not_found');
  });

  test('moves the end of a key once', async (t) => {
    const site = await startSite(t);
    const socket = await site.socket(site.adminKey);
    const until = '2999-12-01T08:00[Europe/Berlin]';
    const made = await site.call('svc1.key.insert', { name: 'ci', scopes: ['read'], until });
    assert.equal(made.data.until, '2999-12-01T07:00:00.000Z');
    const { id } = made.data;
    const edit = { id, name: 'guest', until: '2999-12-02T00:00Z' };
    for (const replayed of [undefined, true]) {
      const edited = await socket.call('svc1.key.edit', edit, { vk: 'later' });
      assert.deepEqual(
        [edited.data.until, edited.replayed],
        ['2999-12-02T00:00:00.000Z', replayed],
      );
    }
    const expected = {
      ...{ id, name: 'guest', scopes: ['read'], created: made.data.created },
      ...{ until: '2999-12-02T00:00:00.000Z', state: 'valid', last_used: null },
    };
    for (const transport of [site, socket]) {
      assert.deepEqual((await transport.call('svc1.key.read', { id })).data, expected);
      const { data } = await transport.call('svc1.key.list', {});
      assert.deepEqual(data.rows.at(-1), expected);
    }
    const endless = await site.call('svc1.key.edit', { id, until: 'never' });
    assert.equal('until' in endless.data, false);
    for (const [v, code, field] of [
      [{ id }, 'invalid', 'until'],
      [{ id, until: '2020-01-01T00:00Z' }, 'invalid', 'until'],
      [{ id, until: 'soon' }, 'invalid', 'until'],
      [{ id: 'none', until: 'never' }, 'not_found', 'id'],
    ] as const) {
      const { error } = await socket.call('svc1.key.edit', v);
      assert.deepEqual([error?.code, error?.field], [code, field]);
    }
    await site.call('svc1.key.revoke', { id });
    assert.equal((await site.call('svc1.key.read', { id })).error?.code, 'not_found');
  });

  test('makes no second link of a draft, and shows no link again', async (t) => {
    const site = await startSite(t);
    await site.call('svc1.draft.insert', { name: 'spring' });
    const v = { draft: 'spring', seconds: 60 };
    const first = await site.call('svc1.draft.preview', v, { vk: 'once' });
    const { url, ...shown } = first.data;
    assert.equal((await fetch(url, { redirect: 'manual' })).status, 302);
    const again = await site.call('svc1.draft.preview', v, { vk: 'once' });
    assert.deepEqual([again.data, again.replayed], [shown, true]);
    const other = await site.call('svc1.draft.preview', { ...v, seconds: 61 }, { vk: 'once' });
    assert.equal(other.error?.code, 'conflict');
    const { data } = await site.call('svc1.draft.read', { draft: 'spring' });
    assert.equal(data.previews.length, 1);
  });

  test('is heeded by all that write, but for what is the same when it is repeated', () => {
    const same = new Set([
      // Each line of an import has a vk of its own.
      ...[
        'userinterface.import',
        'cache.purge',
        'draft.revoke',
        'login.end',
        'login.console',
        'outbox.retry',
        'outbox.discard',
      ],
      ...['session.insert', 'session.end', 'session.authenticate', 'session.unsubscribe'],
      ...['node.insert', 'node.report', 'node.secrets'],
    ]);
    const silent = operations.filter(({ effect, envelope, name }) => {
      return effect === 'writes' && envelope?.vk === undefined && !same.has(name.slice(5));
    });
    assert.deepEqual(
      silent.map(({ name }) => name),
      [],
    );
  });
});
