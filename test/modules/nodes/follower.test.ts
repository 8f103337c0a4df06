import { families } from '../../../src/families.ts';
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { keyHash } from '../../../src/core/operations/keys/authenticate.ts';
import type { ApiKey, Caller } from '../../../src/core/values/key.ts';
import { feedRowsMax } from '../../../src/modules/nodes/follower.ts';
import { passedTool, passedToolFields } from '../../../src/modules/nodes/passed-tool.ts';
import { writeFiles } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { signIn } from '../keys/sign-in.ts';
import { connectTool } from '../mcp/client.ts';
import { eventually, nodeKey, seqOf, startFollower, stateOf, untilEqual } from './rig.ts';

const page = (path: string, content: string) => ({
  ...{ origin: '*', path, kind: 'content', content, contenttype: 'text/html' },
});

const textOf = async (url: string): Promise<string> => (await fetch(url)).text();

test('a replica copies the log, serves its pages, and follows every change', async (t) => {
  const centre = await startSite(t, { rules: [page('/a', 'one'), page('/b', 'two')] });
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  assert.equal(await textOf(`${replica.url}/a`), 'one');
  const { data } = await centre.call('svc1.userinterface.insert', page('/c', 'three'));
  await untilEqual(centre, replica);
  assert.equal(await textOf(`${replica.url}/c`), 'three');
  const { id } = data as { id: string };
  await centre.call('svc1.userinterface.edit', { id, content: 'changed' });
  const seq = await untilEqual(centre, replica);
  assert.equal(await textOf(`${replica.url}/c`), 'changed');
  const past = await replica.call(
    'svc1.userinterface.get',
    { origin: 'http://x.example', path: '/c', as_of: seq - 1 },
    { apikey: centre.adminKey },
  );
  assert.equal((past.data as { content: string }).content, 'three');
  assert.equal(await stateOf(replica, seq), await stateOf(centre, seq));
});

test('a write at a replica is made by the centre with the key of the caller', async (t) => {
  const centre = await startSite(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const more = { apikey: centre.adminKey, vk: 'mine' };
  const made = await replica.call('svc1.userinterface.insert', page('/new', 'hello'), more);
  assert.equal(made.error, undefined);
  // The answer comes once the replica has the change.
  assert.equal(await textOf(`${replica.url}/new`), 'hello');
  assert.equal(await textOf(`${centre.url}/new`), 'hello');
  const again = await replica.call('svc1.userinterface.insert', page('/new', 'hello'), more);
  assert.deepEqual([again.replayed, again.data.id], [true, made.data.id]);
  const { data: keys } = await centre.call('svc1.key.list', {});
  const admin = (keys as { rows: { id: string; name: string }[] }).rows.find(
    ({ name }) => name === 'admin',
  );
  const history = await centre.call(
    'svc1.userinterface.read',
    { id: made.data.id },
    { qk: 'history' },
  );
  assert.equal((history.data as { rows: { by: string }[] }).rows[0]?.by, admin?.id);
  const refused = await replica.call(
    'svc1.userinterface.insert',
    { kind: 'content' },
    {
      apikey: centre.adminKey,
    },
  );
  assert.equal(refused.error?.code, 'invalid');
  const stranger = await replica.call('svc1.userinterface.insert', page('/y', ''), {
    apikey: undefined,
  });
  assert.equal(stranger.error?.code, 'unauthenticated');
});

test('a replica makes sessions of its own, also without its centre, and passes their writes on', async (t) => {
  const centre = await startSite(t, { listen: 'listen = 127.0.0.1:0' });
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const { data: made } = await centre.call('svc1.key.insert', {
    name: 'desk',
    scopes: ['read', 'design'],
  });
  const { key, id: keyId } = made as { key: string; id: string };
  await untilEqual(centre, replica);
  const seq = await seqOf(replica, centre.adminKey);
  const { as, id } = await signIn(replica, key);
  assert.equal((await replica.call('svc1.server.status', {}, { apikey: as.apikey })).status, 401);
  assert.equal((await centre.call('svc1.server.status', {}, as)).status, 401);
  const written = await replica.call('svc1.userinterface.insert', page('/new', 'hello'), as);
  assert.equal(written.error, undefined);
  const v = { id: written.data.id as string };
  const history = await centre.call('svc1.userinterface.read', v, { qk: 'history' });
  assert.equal((history.data as { rows: { by: string }[] }).rows[0]?.by, keyId);
  const { data: open } = await replica.call('svc1.session.list', {}, { apikey: centre.adminKey });
  assert.deepEqual(
    (open as { rows: { id: string; name: string }[] }).rows.map((one) => one.id),
    [id],
  );
  // The page is the only change: the session is in no log.
  assert.equal(await seqOf(replica, centre.adminKey), seq + 1);
  await centre.waymark.stop(0);
  const second = await signIn(replica, key);
  assert.equal((await replica.call('svc1.session.end', {}, second.as)).status, 200);
  assert.equal((await replica.call('svc1.server.status', {}, second.as)).status, 401);
  assert.equal((await replica.call('svc1.server.status', {}, as)).status, 200);
});

test('a session at a replica ends with its key, and its key is in no file of the replica', async (t) => {
  const centre = await startSite(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const { data: made } = await centre.call('svc1.key.insert', { name: 'desk', scopes: ['read'] });
  const { key, id } = made as { key: string; id: string };
  await untilEqual(centre, replica);
  const { as } = await signIn(replica, key);
  const folder = join(replica.folder, 'data');
  for (const name of await readdir(folder)) {
    const text = await readFile(join(folder, name), 'latin1').catch(() => '');
    for (const secret of [key, as.apikey, as.headers.cookie.split('=')[1] ?? '']) {
      assert.ok(!text.includes(secret), name);
    }
  }
  await centre.call('svc1.key.revoke', { id });
  await untilEqual(centre, replica);
  assert.equal((await replica.call('svc1.server.status', {}, as)).status, 401);
});

test('a replica serves on without its centre, and refuses writes with Retry-After', async (t) => {
  const centre = await startSite(t, { rules: [page('/a', 'one')] });
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  await replica.untilLogged(/Connected to/);
  await centre.waymark.stop(0);
  await replica.untilLogged(/The copying of the log of the centre stopped/);
  assert.equal(await textOf(`${replica.url}/a`), 'one');
  const reply = await fetch(`${replica.url}/svc1/userinterface/insert`, {
    method: 'POST',
    headers: { apikey: centre.adminKey, 'content-type': 'application/json' },
    body: JSON.stringify({ v: page('/new', 'hello') }),
  });
  assert.equal(reply.status, 503);
  assert.match(reply.headers.get('retry-after') ?? '', /^\d+$/);
});

test('a key of the scope follow belongs to one node', async (t) => {
  const centre = await startSite(t);
  const apikey = await nodeKey(centre, 'shop-1');
  const end = await centre.call('svc1.log.end', { node: 'shop-1' }, { apikey });
  assert.equal(end.error, undefined);
  const other = await centre.call('svc1.log.end', { node: 'shop-2' }, { apikey });
  assert.equal(other.error?.code, 'forbidden');
  assert.match(other.error.message, /belongs to the node shop-1, not to shop-2/);
  const admin = await centre.call('svc1.log.end', { node: 'shop-1' });
  assert.equal(admin.error?.code, 'forbidden');
  const keyless = await centre.call('svc1.key.insert', { name: 'n', scopes: ['follow'] });
  assert.deepEqual([keyless.error?.code, keyless.error?.field], ['invalid', 'node']);
});

test('revoking the key of a node ends its feed', async (t) => {
  const centre = await startSite(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  await replica.untilLogged(/Connected to/);
  const { data } = await centre.call('svc1.key.list', {});
  const { rows } = data as { rows: { id: string; node?: string }[] };
  const id = rows.find(({ node }) => node === 'copy-1')?.id;
  await centre.call('svc1.key.revoke', { id });
  await replica.untilLogged(/The copying of the log of the centre stopped: .*revoked/);
});

test('a bound key reaches no more at a replica, and nothing once the centre has revoked it', async (t) => {
  const rules = [page('/blog/a', 'ours'), page('/shop/a', 'theirs')];
  const centre = await startSite(t, { rules });
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const put = { method: 'PUT', body: 'theirs', headers: { apikey: centre.adminKey } };
  const asset = await fetch(`${centre.url}/svc1/asset/a.txt`, put);
  const { data: uploaded } = (await asset.json()) as { data: { sha256: string } };
  const bind = { name: 'bound', scopes: ['read', 'design'], paths: ['/blog/'] };
  const { key: apikey, id } = (await centre.call('svc1.key.insert', bind)).data;
  await untilEqual(centre, replica);
  const more = { apikey };

  for (const { url } of [replica, centre]) {
    for (const path of [
      ...[`asset-file/${uploaded.sha256}`, 'asset/a.txt', 'asset/a.txt?draft=x', 'log/rows'],
      ...['log/follow', 'node/list', 'metrics', 'record/list?_v.table=asset', 'visit/rows'],
    ]) {
      const answer = await fetch(`${url}/svc1/${path}`, { headers: { apikey, via: '1.1 x' } });
      const text = await answer.text();
      assert.ok(answer.status >= 400 && !text.includes('theirs'), `${path}: ${text}`);
    }
    const body = { method: 'PUT', body: 'ours', headers: { apikey } };
    assert.equal((await fetch(`${url}/svc1/asset/b.txt`, body)).status, 403);
  }
  const outer = await replica.call('svc1.userinterface.insert', page('/shop/b', 'x'), more);
  assert.equal(outer.error?.code, 'forbidden');
  const inner = { ...page('/blog/b', 'ours'), origin: replica.url };
  const made = await replica.call('svc1.userinterface.insert', inner, more);
  assert.equal(made.error, undefined);
  const forged = { ...more, headers: { 'waymark-via': 'tool by somebody' } };
  const edit = { id: made.data.id, path: '/shop/b' };
  assert.equal(
    (await replica.call('svc1.userinterface.edit', edit, forged)).error?.code,
    'forbidden',
  );

  const [socket, session] = [await replica.socket(apikey), await signIn(replica, apikey)];
  const closed = once(socket.websocket, 'close');
  const listed = await replica.call('svc1.change.list', {}, session.as);
  assert.ok(!JSON.stringify(listed).includes('/shop/'));
  await socket.call('svc1.userinterface.subscribe', {});
  await centre.call('svc1.key.revoke', { id });
  await untilEqual(centre, replica);
  await closed;
  for (const as of [more, session.as]) {
    const refused = await replica.call('svc1.userinterface.list', {}, as);
    assert.equal(refused.error?.code, 'unauthenticated');
  }
});

test('a node whose key ends says so, and goes on when that gets a later end', async (t) => {
  const centre = await startSite(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  await untilEqual(centre, replica);
  const nowMs = Date.now();
  t.mock.timers.enable({ apis: ['Date'], now: nowMs });
  const { rows } = (await centre.call('svc1.key.list', {})).data;
  const { id } = rows.find(({ name }: { name: string }) => name === 'copy-1');
  const until = new Date(nowMs + 60_000).toISOString();
  await centre.call('svc1.key.edit', { id, until });
  t.mock.timers.setTime(nowMs + 60_000);
  const problemOf = async (): Promise<string> => {
    const as = { apikey: centre.adminKey };
    const { data } = await replica.call('svc1.server.status', {}, as);
    return data.node.central.problem ?? '';
  };
  await eventually(async () => {
    assert.ok((await problemOf()).includes(`The API key ended at ${until}`), await problemOf());
  });
  await centre.call('svc1.key.edit', { id, until: 'never' });
  await centre.call('svc1.userinterface.insert', page('/later', 'x'));
  await untilEqual(centre, replica);
});

test('only a node that delivers a hook gets its secret', async (t) => {
  const centre = await startSite(t);
  const [one, two] = [
    await startFollower(t, centre, { name: 'copy-1' }),
    await startFollower(t, centre, { name: 'copy-2' }),
  ];
  const v = { event: ['a.b'], url: 'https://receiver.example/', where: 'copy-1' };
  const { data } = await centre.call('svc1.webhook.insert', v);
  const { secret } = data as { id: string; secret: string };
  const seq = await untilEqual(centre, one);
  await untilEqual(centre, two);
  const hasSecret = async (site: typeof one): Promise<boolean> => {
    const { openStore } = await import('../../../src/core/log/open.ts');
    const folder = `${site.folder}/data`;
    const store = await openStore({
      families,
      folder,
      now: Date.now,
      newId: String,
      readOnly: true,
    });
    const texts = Array.from({ length: seq }, (_, at) => JSON.stringify(store.change(at + 1)));
    await store.close();
    return texts.join('').includes(secret);
  };
  await eventually(async () => {
    assert.equal(await hasSecret(one), true);
  });
  assert.equal(await hasSecret(two), false);
  assert.equal(await stateOf(one, seq), await stateOf(two, seq));
});

test('the key of a node decides which hooks it delivers, not the role that a request names', async (t) => {
  const centre = await startSite(t, { ini: '[auth]\nanonymous = event\n' });
  const secrets = new Map<string, string>();
  for (const where of [undefined, 'counters', 'copy-1', 'shop-7', 'central']) {
    const hook = {
      event: ['a.b'],
      url: 'https://receiver.example/',
      headers: { x: `of ${where}` },
    };
    const { data } = await centre.call('svc1.webhook.insert', { ...hook, ...(where && { where }) });
    secrets.set(String(where), data.secret as string);
  }
  for (const [scopes, role, shown] of [
    [['follow'], 'replica', ['copy-1']],
    [['follow'], 'counter', ['copy-1']],
    [['follow', 'read', 'webhook'], 'counter', ['copy-1']],
    [['follow', 'event'], 'replica', ['copy-1']],
    [['follow', 'event'], 'counter', ['undefined', 'counters', 'copy-1']],
    [['follow', 'record.write:lamps'], 'counter', ['undefined', 'counters', 'copy-1']],
  ] as const) {
    const v = { name: 'n', scopes, node: 'copy-1' };
    const { data: made } = await centre.call('svc1.key.insert', v);
    const asked = { node: 'copy-1', role };
    const more = { apikey: made.key as string };
    const answer = JSON.stringify(await centre.call('svc1.node.secrets', asked, more));
    const found = [...secrets].filter(([, secret]) => answer.includes(secret));
    assert.deepEqual(
      found.map(([where]) => where),
      shown,
      `${scopes.join()} as ${role}`,
    );
  }
});

test('the centre lists its nodes; a replica of a replica reports, writes and follows', async (t) => {
  const centre = await startSite(t);
  const middle = await startFollower(t, centre, { name: 'copy-1', ini: 'place = zurich' });
  const last = await startFollower(t, centre, { name: 'copy-2', central: middle });
  await last.call('svc1.userinterface.insert', page('/far', 'far'), { apikey: centre.adminKey });
  assert.equal(await textOf(`${last.url}/far`), 'far');
  await eventually(async () => {
    const { data } = await centre.call('svc1.node.list', {});
    const { rows } = data as { rows: Record<string, unknown>[] };
    assert.deepEqual(
      rows.map(({ name, role, place }) => [name, role, place]),
      [
        ['copy-1', 'replica', 'zurich'],
        ['copy-2', 'replica', undefined],
      ],
    );
    assert.ok(rows.every((row) => Math.abs(Number(row.clock_offset_ms)) < 10_000));
  });
});

test('a replica that serves copies a large transaction in a thread, as a whole', async (t) => {
  const centre = await startSite(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  await replica.untilLogged(/Connected to/);
  const lines = Array.from({ length: feedRowsMax + 1 }, (_, n) =>
    JSON.stringify({ path: `/many/${n}`, content: 'x' }),
  );
  await centre.call('svc1.userinterface.import', { ndjson: lines.join('\n') });
  const counts = new Set<number>();
  while (!counts.has(lines.length)) {
    const status = await replica.call('svc1.server.status', {}, { apikey: centre.adminKey });
    counts.add(status.data.counts.rules);
  }
  assert.deepEqual([...counts.difference(new Set([0]))], [lines.length]);
  assert.match(replica.logged(), /Copying the log of/);
  // It follows the feed again.
  await centre.call('svc1.userinterface.insert', page('/later', 'later'));
  const seq = await untilEqual(centre, replica);
  assert.equal(await textOf(`${replica.url}/later`), 'later');
  assert.equal(await stateOf(replica, seq), await stateOf(centre, seq));
});

test('a node whose key the centre refuses says how to make another one', async (t) => {
  const centre = await startSite(t);
  const key = await nodeKey(centre, 'shop-1');
  await assert.rejects(startFollower(t, centre, { name: 'shop-2', role: 'counter', key }), {
    code: 'forbidden',
    message:
      `${centre.url} refuses the key of this node (This key belongs to the node shop-1, not to ` +
      'shop-2: each node needs its own). Make one there by `waymark key add --name shop-2 --scope ' +
      'follow,event,record.write --node shop-2`, put it into the file that `key_file` names, and ' +
      'start this server if it does not run.',
  });
});

test('a node uses a new key of its file when the centre refuses the former one', async (t) => {
  const centre = await startSite(t);
  const v = { name: 'copy-1', scopes: ['follow'], node: 'copy-1' };
  const { data: former } = await centre.call('svc1.key.insert', v);
  const key = former.key as string;
  const replica = await startFollower(t, centre, { name: 'copy-1', key });
  await untilEqual(centre, replica);
  assert.equal((await centre.call('svc1.key.revoke', { id: former.id })).error, undefined);
  await replica.untilLogged(
    /The copying of the log of the centre stopped: .* refuses the key of this node/,
  );
  const { data: next } = await centre.call('svc1.key.insert', { ...v, name: 'copy-1b' });
  await writeFiles(replica.folder, { 'central.key': `${next.key as string}\n` });
  await centre.call('svc1.userinterface.insert', page('/new', 'new'));
  await untilEqual(centre, replica);
  assert.equal(await textOf(`${replica.url}/new`), 'new');
});

test('a change of a tool at a replica names the tool at the centre, and in every copy', async (t) => {
  const centre = await startSite(t);
  const replica = await startFollower(t, centre, { name: 'copy-1' });
  const { tool } = await connectTool(t, replica, { apikey: centre.adminKey });
  const { data, isError } = await tool('userinterface_insert', { v: page('/tool', 'hello') });
  assert.equal(isError, false);
  await untilEqual(centre, replica);
  for (const site of [centre, replica]) {
    const more = { apikey: centre.adminKey, qk: 'history' };
    const history = await site.call('svc1.userinterface.read', { id: data.id }, more);
    const [row] = history.data.rows;
    assert.deepEqual([row.via.client, row.via.tool], ['test-client/1.0', 'userinterface_insert']);
  }
});

test('no key makes the history name a tool that had no part in a change', async (t) => {
  const centre = await startSite(t);
  const { data: node } = await centre.call('svc1.key.list', {});
  const [admin] = node.rows as { readonly id: string }[];
  const tool = 'assistant%2F1.0 userinterface_insert';
  const proof = createHmac('sha256', '').update('[]').digest('base64url');
  for (const [path, headers] of [
    ['/a', { 'waymark-via': tool }],
    ['/b', { 'waymark-via': tool, 'waymark-via-proof': `${admin?.id} ${proof}` }],
    ['/c', { 'waymark-via': tool, 'waymark-via-proof': `nobody ${proof}` }],
    ['/d', { 'waymark-via': tool, 'waymark-via-proof': '' }],
  ] as const) {
    const { data } = await centre.call('svc1.userinterface.insert', page(path, 'x'), { headers });
    const { data: history } = await centre.call(
      'svc1.userinterface.read',
      { id: data.id },
      { qk: 'history' },
    );
    assert.equal(history.rows[0].via, undefined, path);
  }
});

test('the word of a node holds for one write of one key, with its own key', () => {
  const key = {
    id: 'k',
    scopes: ['follow'],
    node: 'copy-1',
    hash: keyHash('wmk_node'),
  } as unknown as ApiKey;
  const [tool, write] = [
    { client: 'a/1', tool: 'b' },
    { name: 'svc1.x.edit', keyId: 'caller' },
  ];
  const fields = passedToolFields({ keyByHash: () => key }, tool, { ...write, apikey: 'wmk_node' });
  const heard = (found: ApiKey | undefined, name = write.name, keyId = write.keyId) =>
    passedTool({ store: { key: () => found }, now: () => endMs - 1 }, name, {
      fields,
      caller: { keyId } as Caller,
    });
  const endMs = Date.now();
  assert.deepEqual(heard(key), tool);
  assert.deepEqual(heard({ ...key, until: new Date(endMs).toISOString() }), tool);
  assert.equal(heard({ ...key, until: new Date(endMs - 1).toISOString() }), undefined);
  assert.equal(heard(key, 'svc1.x.insert'), undefined);
  assert.equal(heard(key, write.name, 'other'), undefined);
  assert.equal(heard(undefined), undefined);
  assert.equal(heard({ ...key, hash: keyHash('wmk_other') }), undefined);
  assert.equal(heard({ ...key, scopes: ['design'] }), undefined);
  assert.deepEqual(
    passedToolFields({ keyByHash: () => undefined }, tool, { ...write, apikey: '' }),
    {},
  );
});
