import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { runPublish } from '../../../../src/modules/drafts/operations/publish.ts';
import {
  publishDue,
  scheduledPublishing,
  waitingDrafts,
  type ScheduleParts,
} from '../../../../src/modules/drafts/operations/scheduled-publisher.ts';
import { draftStore } from '../../../../src/modules/drafts/log/draft-store.ts';
import type { Store } from '../../../../src/core/log/store.ts';
import { startSite, type Answer, type TestSite } from '../../../harness.ts';
import type { Cleaning } from '../../../folder.ts';
import { commit, inserted, scratchStore } from '../../../core/log/scratch.ts';
import { scheduleParts } from './schedule-parts.ts';
import { testTasks } from '../../../core/background/test-tasks.ts';
import { storedDrafts } from '../../../../src/modules/drafts/log/family.ts';

const draft = 'spring';
const future = '2999-12-01T08:00';

async function siteWithDraft(t: Cleaning, ini = ''): Promise<TestSite> {
  const site = await startSite(t, { ini });
  await site.call('svc1.draft.insert', { name: draft });
  await insertInDraft(site);
  return site;
}

function insertInDraft(site: TestSite): Promise<Answer> {
  return site.call('svc1.userinterface.insert', { path: '/a', content: 'a' }, { draft });
}

async function scheduleDraft(site: TestSite, v: object): Promise<Answer> {
  const { data } = await site.call('svc1.draft.publish', { draft });
  return site.call('svc1.draft.publish', { draft, confirm: data.digest, ...v });
}

suite('the schedule of a draft', () => {
  test('is refused to a key that ends before', async (t) => {
    const site = await siteWithDraft(t);
    const until = '2999-01-01T00:00:00.000Z';
    const v = { name: 'k', scopes: ['design', 'read'], until };
    const { key: apikey } = (await site.call('svc1.key.insert', v)).data;
    const { data } = await site.call('svc1.draft.publish', { draft }, { apikey });
    const late = { draft, confirm: data.digest, at: `${future}Z` };
    const { error } = await site.call('svc1.draft.publish', late, { apikey });
    assert.deepEqual([error?.code, error?.field], ['invalid', 'at']);
    assert.match(error?.message ?? '', /Your key ends at 2999-01-01T00:00:00.000Z, before that/);
    const soon = { ...late, at: '2998-01-01T00:00Z' };
    assert.equal((await site.call('svc1.draft.publish', soon, { apikey })).error, undefined);
  });

  test('is made in a time zone, listed, and removed', async (t) => {
    const site = await siteWithDraft(t);
    const made = await scheduleDraft(site, { at: future, time_zone: 'Europe/Berlin' });
    const at = { at: '2999-12-01T07:00:00.000Z', time_zone: 'Europe/Berlin' };
    assert.deepEqual([made.data?.done, made.data?.scheduled], [false, at]);
    const { data } = await site.call('svc1.draft.list', { scheduled: true });
    assert.equal(data.rows.length, 1);
    const { by, ...schedule } = data.rows[0].schedule;
    assert.deepEqual(schedule, at);
    assert.equal(typeof by, 'string');
    assert.equal((await fetch(`${site.url}/a`)).status, 404);
    const removed = await site.call('svc1.draft.unschedule', { draft });
    assert.equal(removed.data.schedule, undefined);
    assert.equal((await site.call('svc1.draft.list', { scheduled: true })).data.rows.length, 0);
    assert.equal((await site.call('svc1.draft.unschedule', { draft })).error?.code, 'conflict');
  });

  test('keeps the draft as it was confirmed', async (t) => {
    const site = await siteWithDraft(t);
    await scheduleDraft(site, { at: `${future}Z` });
    const edited = await insertInDraft(site);
    assert.equal(edited.error?.code, 'conflict');
    assert.match(edited.error.message, /scheduled for 2999-12-01T08:00:00.000Z.*unschedule/);
    assert.equal((await site.call('svc1.draft.invalidate', { draft })).error?.code, 'conflict');
    await site.call('svc1.draft.unschedule', { draft });
    assert.equal((await insertInDraft(site)).error, undefined);
  });

  test('is refused for a time that has passed, without a zone, and without a report', async (t) => {
    const site = await siteWithDraft(t);
    for (const [v, code, message] of [
      [{ at: '2020-01-01T00:00Z' }, 'invalid', /has passed: it is 2/],
      [{ at: future }, 'invalid', /Which time zone/],
      [{ time_zone: 'UTC' }, 'invalid', /needs a time/],
      [{ at: `${future}Z`, confirm: 'x' }, 'precondition_failed', /since the report/],
      [{ at: 'x'.repeat(65) }, 'invalid', /./],
    ] as const) {
      const { error } = await scheduleDraft(site, v);
      assert.equal(error?.code, code);
      assert.match(error.message, message);
    }
    assert.equal((await site.call('svc1.draft.read', { draft })).data.schedule, undefined);
  });

  test('is one schedule for one vk, and a later one replaces it', async (t) => {
    const site = await siteWithDraft(t);
    const { digest: confirm } = (await site.call('svc1.draft.publish', { draft })).data;
    const v = { draft, confirm, at: `${future}Z` };
    const first = await site.call('svc1.draft.publish', v, { vk: 'one' });
    const again = await site.call('svc1.draft.publish', v, { vk: 'one' });
    assert.deepEqual([again.replayed, again.data], [true, first.data]);
    await site.call('svc1.draft.publish', { ...v, at: '2999-12-02T08:00Z' });
    const { data } = await site.call('svc1.draft.read', { draft });
    assert.equal(data.schedule.at, '2999-12-02T08:00:00.000Z');
    await site.call('svc1.draft.publish', { draft, confirm });
    const { data: ended } = await site.call('svc1.draft.read', { draft });
    assert.deepEqual([ended.state, ended.schedule], ['published', undefined]);
  });

  test('is carried out by a server at its time', async (t) => {
    const site = await siteWithDraft(t);
    const { digest: confirm } = (await site.call('svc1.draft.publish', { draft })).data;
    // The clock stands still until the call is answered, however long that takes.
    const nowMs = Date.now();
    t.mock.timers.enable({ apis: ['Date'], now: nowMs });
    const at = new Date(nowMs + 50).toISOString();
    const made = await site.call('svc1.draft.publish', { draft, confirm, at });
    assert.equal(made.error, undefined);
    assert.equal((await fetch(`${site.url}/a`)).status, 404);
    t.mock.timers.setTime(nowMs + 50);
    await site.untilLogged(/Published the draft spring at its time/);
    assert.equal(await (await fetch(`${site.url}/a`)).text(), 'a');
  });
});

/** A store with the key `key`, and a clock that a test moves. */
async function storeWithClock(t: Cleaning): Promise<{
  readonly store: Store;
  readonly clock: { ms: number };
  readonly parts: (required?: boolean) => ScheduleParts;
  readonly due: (required?: boolean) => Promise<void>;
}> {
  const clock = { ms: Date.UTC(2026, 10, 1) };
  const store = await scratchStore(t, { now: () => clock.ms });
  const scopes = ['publish', 'read'];
  const key = { name: 'editor', scopes, hash: 'x', created: '2026-11-01T00:00:00.000Z' };
  await commit(store, { family: 'key', id: 'key', action: 'insert', data: key });
  let count = 0;
  const newId = (): string => `id-${String((count += 1))}`;
  const parts = (required?: boolean): ScheduleParts =>
    scheduleParts({ store, newId, now: () => clock.ms }, required);
  const due = (required?: boolean): Promise<void> =>
    publishDue(parts(required), waitingDrafts(store));
  return { store, clock, parts, due };
}

/** A draft with one page, which is scheduled. */
async function scheduled(store: Store, name: string, at: string): Promise<void> {
  await commit(store, { family: 'draft', id: name, action: 'insert', data: { name } });
  const opened = store.of(storedDrafts).draft(name);
  assert.ok(opened);
  const page = inserted(`page-${name}`, { path: `/${name}`, content: name });
  await commit(draftStore(store, opened), page);
  const given = {
    ...{ draft: name, resolve: {}, others: undefined, by: 'key', request: undefined },
    ...{ reader: { keyId: 'key', scopes: new Set(['admin'] as const) }, needsApproval: false },
  };
  const parts = { store, newId: () => 'id', now: () => 0 };
  const { report } = await runPublish(parts, { ...given, confirm: undefined });
  await runPublish(parts, { ...given, confirm: report.digest as string, at: { at } });
}

function reasonOf(store: Store, name: string): string | undefined {
  return store.of(storedDrafts).draft(name)?.schedule?.failed?.reason;
}

suite('what is due', () => {
  test('is published in the order of its times, once', async (t) => {
    const { store, clock, due } = await storeWithClock(t);
    await scheduled(store, 'second', '2026-11-02T00:00:00.000Z');
    await scheduled(store, 'first', '2026-11-01T12:00:00.000Z');
    await scheduled(store, 'later', '2038-01-19T03:14:08.000Z');
    await due();
    assert.equal(store.of(storedDrafts).draft('first')?.state, 'open');
    // As after a time without a server.
    clock.ms = Date.UTC(2026, 10, 5);
    const waiting = waitingDrafts(store).map(({ draft: one }) => one.name);
    assert.deepEqual(waiting, ['first', 'second', 'later']);
    await Promise.all([due(), due()]);
    await due();
    const states = ['first', 'second', 'later'].map(
      (name) => store.of(storedDrafts).draft(name)?.state,
    );
    assert.deepEqual(states, ['published', 'published', 'open']);
    const closed = ['first', 'second'].map((name) => store.of(storedDrafts).draft(name)?.seq ?? 0);
    assert.ok((closed[0] ?? 0) < (closed[1] ?? 0));
    // A clock that goes back publishes nothing again.
    clock.ms = Date.UTC(2026, 10, 1);
    const seq = store.seq();
    await due();
    assert.equal(store.seq(), seq);
    clock.ms = Date.UTC(2038, 0, 19, 3, 14, 8);
    await due();
    assert.equal(store.of(storedDrafts).draft('later')?.state, 'published');
  });

  test('keeps its reason if it fails, and does not delay the next one', async (t) => {
    const { store, clock, due } = await storeWithClock(t);
    await scheduled(store, 'taken', '2026-11-02T00:00:00.000Z');
    await scheduled(store, 'next', '2026-11-02T00:00:00.000Z');
    await commit(store, inserted('page-taken', { path: '/taken', content: 'live' }));
    clock.ms = Date.UTC(2026, 10, 3);
    await due();
    assert.equal(store.of(storedDrafts).draft('taken')?.state, 'open');
    assert.notEqual(reasonOf(store, 'taken'), undefined);
    assert.equal(store.of(storedDrafts).draft('next')?.state, 'published');
    const seq = store.seq();
    await due();
    assert.equal(store.seq(), seq, 'a failed schedule is not tried again');
    const types = Array.from({ length: seq }, (_, at) => store.change(at + 1))
      .filter((row) => row?.family === 'event')
      .map((row) => row?.data.type);
    assert.deepEqual(types, ['draft.publish_failed', 'draft.published']);
  });

  test('is not published once the key has ended that scheduled it', async (t) => {
    const { store, clock, due } = await storeWithClock(t);
    await scheduled(store, 'late', '2026-11-02T00:00:00.000Z');
    const data = { until: '2026-11-02T00:00:00.000Z' };
    await commit(store, { family: 'key', id: 'key', action: 'edit', data });
    clock.ms = Date.UTC(2026, 10, 3);
    await due();
    assert.equal(store.of(storedDrafts).draft('late')?.state, 'open');
    const reason = 'The key that has scheduled it ended at 2026-11-02T00:00:00.000Z.';
    assert.equal(reasonOf(store, 'late'), reason);
  });

  test('is published by a server that starts after its time', async (t) => {
    const { store, clock, parts } = await storeWithClock(t);
    await scheduled(store, draft, '2026-11-02T00:00:00.000Z');
    clock.ms = Date.UTC(2026, 10, 3);
    const end = new AbortController();
    t.after(() => {
      end.abort();
    });
    const seq = store.seq();
    const { stop } = testTasks().start(scheduledPublishing(parts()));
    await store.waitForRows(seq, end.signal);
    await stop();
    assert.equal(store.of(storedDrafts).draft(draft)?.state, 'published');
  });

  test('fails without the approval that the server demands', async (t) => {
    const { store, clock, due } = await storeWithClock(t);
    await scheduled(store, draft, '2026-11-02T00:00:00.000Z');
    clock.ms = Date.UTC(2026, 10, 3);
    await due(true);
    assert.match(reasonOf(store, draft) ?? '', /needs an approval/);
  });

  test('needs no scope of its key that every caller has', async (t) => {
    const { store, clock, parts } = await storeWithClock(t);
    await scheduled(store, draft, '2026-11-02T00:00:00.000Z');
    const data = { scopes: ['publish'] };
    await commit(store, { family: 'key', id: 'key', action: 'edit', data });
    clock.ms = Date.UTC(2026, 10, 3);
    await publishDue({ ...parts(), anonymous: () => ['read'] }, waitingDrafts(store));
    assert.equal(store.of(storedDrafts).draft(draft)?.state, 'published');
  });

  test('fails once its key is revoked, or may not publish any more', async (t) => {
    const { store, clock, due } = await storeWithClock(t);
    await scheduled(store, 'one', '2026-11-02T00:00:00.000Z');
    await scheduled(store, 'two', '2026-11-04T00:00:00.000Z');
    await commit(store, { family: 'key', id: 'key', action: 'edit', data: { scopes: ['read'] } });
    clock.ms = Date.UTC(2026, 10, 3);
    await due();
    assert.match(reasonOf(store, 'one') ?? '', /lacks the scope publish/);
    await commit(store, { family: 'key', id: 'key', action: 'invalidate', data: {} });
    clock.ms = Date.UTC(2026, 10, 4);
    await due();
    assert.match(reasonOf(store, 'two') ?? '', /was revoked/);
  });
});
