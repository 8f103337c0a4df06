import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { LoggedDraft } from '../../../src/core/log/store.ts';
import type { Call } from '../../../src/core/operations/operation.ts';
import { breadcrumbTokensMax, mintToken } from '../../../src/modules/breadcrumbs/tokens.ts';
import { commit, inserted, scratchStore } from '../../core/log/scratch.ts';
import { postOperation } from '../../harness.ts';
import { runWaymark, serverFolder, startServed } from '../../process.ts';
import { someVisitor } from '../../visitor.ts';

const rule = {
  path: 'offer',
  kind: 'resolve',
  enginedata: { when: [{ if: { user: 'anna' }, target: '/for-anna' }], target: '/for-all' },
};

const origin = 'https://shop.example';
const nowMs = Date.UTC(2026, 10, 24);
const inDays = (days: number): string => new Date(nowMs + days * 86_400_000).toISOString();

const call: Call = {
  caller: { scopes: new Set(['admin']), keyId: undefined, rate: undefined, address: '192.0.2.1' },
  vk: undefined,
  qk: undefined,
  origin,
  fields: {},
  visitor: someVisitor(),
  transport: 'http',
  signal: () => new AbortController().signal,
};

function tokenRow(at: number, end: object): LoggedDraft {
  const data = {
    name: 'offer',
    scopes: [],
    created: inDays(-9),
    hash: `hash of ${at}`,
    breadcrumb: { k: 'offer', origin, user: `user ${at}` },
    ...end,
  };
  return { family: 'key', id: uuidv7(), action: 'insert', data };
}

test('tokens that are over make room for new ones; without such, there is a limit', async (t) => {
  const store = await scratchStore(t);
  const open = { until: inDays(9) };
  await commit(
    store,
    inserted(uuidv7(), rule),
    ...Array.from({ length: breadcrumbTokensMax - 2 }, (_, at) => tokenRow(at, open)),
    tokenRow(-1, { until: inDays(-1) }),
    tokenRow(-2, { ...open, revoked: inDays(-2) }),
  );
  const run = mintToken.run({
    store,
    newId: uuidv7,
    randomBytes,
    now: () => nowMs,
    view: { base: '' },
    keyUses: { last: () => new Map(), counted: () => 0 },
  });
  const mint = async () => run({ k: 'offer', user: 'anna', until: inDays(1) }, call);
  await mint();
  assert.equal(store.counts().keys, breadcrumbTokensMax - 1);
  assert.ok(store.keys().every(({ until, revoked }) => until !== inDays(-1) && !revoked));
  await mint();
  await assert.rejects(mint(), { code: 'conflict' });
});

test('tokens and the counts of their uses survive a restart, over all workers', async (t) => {
  const files = { 'rules.ndjson': JSON.stringify(rule) };
  const { iniFile } = await serverFolder(t, 'import = rules.ndjson\nworkers = 2\n', files);
  const first = await startServed(t, iniFile);
  const { adminKey: apikey } = first;
  const api = (url: string): readonly string[] => ['--url', url, '--apikey', apikey];
  const command = ['breadcrumb', 'token', 'offer', '--user', 'anna', '--until', '30d'];
  const made = await runWaymark([...command, ...api(first.url)]);
  assert.equal(made.code, 0, made.err);
  const [, id = ''] = /^Token (\S+) for anna ends: /m.exec(made.err) ?? [];
  const [, query = ''] = made.out.trim().split('?');
  const link = (url: string): string => `${url}/svc1/userinterface.link.htm?${query}`;
  for (let uses = 0; uses < 5; uses += 1) {
    const answer = await fetch(link(first.url), { redirect: 'manual' });
    assert.equal(answer.headers.get('location'), '/for-anna');
  }
  first.child.kill('SIGTERM');
  await first.closed;
  const second = await startServed(t, iniFile, { first: false });
  const { data } = await postOperation(second.url, 'svc1.breadcrumb.tokens', {}, { apikey });
  assert.deepEqual(
    data.rows.map((row: { readonly uses: number; readonly id: string }) => [row.id, row.uses]),
    [[id, 5]],
  );
  const list = await runWaymark(['breadcrumb', 'tokens', ...api(second.url)]);
  assert.match(list.out, new RegExp(`^${id} +valid +\\S+ +5 +\\S+ +anna +\\S+ +offer$`, 'm'));
  const revoked = await runWaymark(['breadcrumb', 'revoke-token', id, ...api(second.url)]);
  assert.equal(revoked.code, 0, revoked.err);
  const after = await runWaymark(['breadcrumb', 'tokens', 'offer', ...api(second.url)]);
  assert.match(after.out, new RegExp(`^${id} +revoked `, 'm'));
});
