import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startSite, type Answer, type TestSocket } from '../../../harness.ts';

const origin = 'http://shop.example';
const insert = 'svc1.userinterface.insert';

/** All messages of a websocket in their order. */
function messages({
  websocket,
}: TestSocket): (isDone: (all: Answer[]) => boolean) => Promise<void> {
  const all: Answer[] = [];
  let look = (): void => undefined;
  websocket.on('message', (text: Buffer) => {
    all.push(JSON.parse(text.toString()) as Answer);
    look();
  });
  return (isDone) =>
    new Promise((resolve) => {
      look = () => {
        if (isDone(all)) resolve();
      };
      look();
    });
}

suite('a visitor who follows a place', () => {
  test('gets a packet without data for each change of a rule that covers it', async (t) => {
    const site = await startSite(t);
    const visitor = await site.socket();
    const received: Answer[] = [];
    const until = messages(visitor);
    const { data } = await visitor.call('svc1.userinterface.follow', { origin, path: '/a/b%20c' });
    assert.deepEqual(data, { seq: (await site.call('svc1.server.status', {})).data.seq });
    const rules: readonly (readonly [fields: object, isTold: boolean])[] = [
      [{ origin, path: '/a/b c' }, true],
      [{ path: '/a/b c', lang: 'de' }, true],
      [{ path: '/a/*' }, true],
      [{ path: '/a*' }, true],
      [{ path: '/*', kind: 'content.fetch', enginedata: { source: 'http://x.example/*' } }, true],
      [{ origin: 'http://other.example', path: '/a/b c' }, false],
      [{ path: '/a/b' }, false],
      [{ path: '/a/b c/*' }, false],
      [{ path: '/b*' }, false],
    ];
    const told: number[] = [];
    let moving = '';
    for (const [fields, isTold] of rules) {
      const { data: rule } = await site.call(insert, {
        kind: 'content',
        enginecomments: 'secret',
        ...fields,
      });
      if (isTold) told.push(rule.seq);
      moving = rule.id;
    }
    // The rule moves into the place, and out of it again.
    for (const path of ['/a/b*', '/b*']) {
      const { data: moved } = await site.call('svc1.userinterface.edit', { id: moving, path });
      told.push(moved.seq);
    }
    await until((all) => {
      received.splice(0, received.length, ...all);
      return all.at(-1)?.data.seq === told.at(-1);
    });
    assert.deepEqual(
      received.slice(1).map(({ r, data: packet }) => [r, packet]),
      told.map((seq) => ['svc1.userinterface.stale', { seq }]),
    );
  });

  test('is told when a rule of the place begins or ends', async (t) => {
    const site = await startSite(t);
    const visitor = await site.socket();
    const until = messages(visitor);
    await visitor.call('svc1.userinterface.follow', { origin, path: '/a' });
    const nowMs = Date.now();
    const [first, other, second] = [2_000, 2_100, 2_300].map((ms) =>
      new Date(nowMs + ms).toISOString(),
    );
    for (const v of [
      { path: '/b', until: other },
      { path: '/a', lang: 'de', from: first, until: second },
      { path: '/a*', until: second },
    ]) {
      await site.call(insert, { kind: 'content', ...v });
    }
    let moments: readonly string[] = [];
    await until((all) => {
      const told = all.filter(({ r }) => r === 'svc1.userinterface.stale');
      moments = told.flatMap(({ data: { at } }) => (at === undefined ? [] : [at as string]));
      return moments.includes(second ?? '');
    });
    assert.ok(Date.now() >= nowMs + 2_300);
    assert.deepEqual(moments, [first, second]);
  });

  test('resumes after from_seq', async (t) => {
    const paths = ['/1', '/page', '/2', '/*'];
    const site = await startSite(t, { rules: paths.map((path) => ({ path, kind: 'content' })) });
    const visitor = await site.socket();
    const until = messages(visitor);
    await visitor.call('svc1.userinterface.follow', { origin, path: '/page', from_seq: 2 });
    await until(([, packet]) => packet?.data.seq === 4);
  });

  const mistakes: readonly (readonly [field: string, v: object])[] = [
    ['origin', { path: '/a' }],
    ['origin', { origin: '*', path: '/a' }],
    ['path', { origin }],
    ['path', { origin, path: 'a' }],
    ['path', { origin, path: '/a/../b' }],
    ['from_seq', { origin, path: '/a', from_seq: 99 }],
    ['from_seq', { origin, path: '/a', from_seq: -1 }],
  ];
  test('cannot follow an impossible place, or a seq in the future', async (t) => {
    const site = await startSite(t);
    const visitor = await site.socket();
    for (const [field, v] of mistakes) {
      const { error } = await visitor.call('svc1.userinterface.follow', v);
      assert.equal(error?.code, 'invalid', JSON.stringify(v));
      assert.equal(error.field, field, JSON.stringify(v));
    }
  });

  test('needs the scope render', async (t) => {
    const site = await startSite(t, { ini: '[auth]\nanonymous =\n' });
    const visitor = await site.socket();
    const { error } = await visitor.call('svc1.userinterface.follow', { origin, path: '/a' });
    assert.equal(error?.code, 'unauthenticated');
  });
});
