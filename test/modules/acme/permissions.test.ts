import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { silentLog } from '../../../src/core/report/log.ts';
import { isPublicName } from '../../../src/core/server/tls/public-name.ts';
import {
  Permissions,
  createAsk,
  questionHeldMs,
  questionMs,
  questionsAtOnceMax,
} from '../../../src/modules/acme/permissions.ts';
import { httpSource } from '../../core/outbound/sources.ts';

const address = '192.0.2.100';

/** Permissions whose questions `answer` decides, and a clock. */
function rig(answer: (host: string) => number | Promise<number>) {
  const asked: string[] = [];
  const lines: object[] = [];
  const clock = { nowMs: 1_000_000 };
  const permissions = new Permissions(
    (host) => {
      asked.push(host);
      return Promise.resolve(answer(host));
    },
    {
      log: { ...silentLog, warn: (fields: object) => void lines.push(fields) },
      now: () => clock.nowMs,
    },
  );
  return { permissions, asked, lines, clock };
}

suite('the permission for a name on demand', () => {
  test('is 200, and each answer is remembered for a minute', async () => {
    const { permissions, asked, clock } = rig((host) => (host === 'a.example' ? 200 : 404));
    for (let turn = 0; turn < 3; turn += 1) {
      assert.equal(await permissions.of('a.example', address), 'allowed');
      assert.equal(await permissions.of('b.example', address), 'refused');
    }
    assert.deepEqual(asked, ['a.example', 'b.example']);
    clock.nowMs += 60_000;
    await permissions.of('a.example', address);
    assert.equal(asked.length, 3);
  });

  test('is asked once for a name at a time', async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    const { permissions, asked } = rig(() => promise);
    const answers = [permissions.of('a.example', address), permissions.of('a.example', address)];
    answers.push(permissions.confirm('a.example'));
    resolve(200);
    assert.deepEqual(await Promise.all(answers), ['allowed', 'allowed', 'allowed']);
    assert.equal(asked.length, 1);
  });

  test('is unknown without an answer, which the log says once a minute', async () => {
    let status = 500;
    const { permissions, lines, clock } = rig(() => {
      if (status === 0) throw new Error('no connection');
      return status;
    });
    assert.equal(await permissions.of('a.example', address), 'unknown');
    status = 0;
    assert.equal(await permissions.of('b.example', address), 'unknown');
    assert.equal(lines.length, 1);
    status = 200;
    assert.equal(await permissions.of('a.example', address), 'unknown');
    clock.nowMs += 10_000;
    assert.equal(await permissions.of('a.example', address), 'allowed');
  });

  test('of a flood of names is asked at a bounded pace, and other clients have their turn', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    t.mock.method(performance, 'now', () => 0);
    const { permissions, asked } = rig(() => 404);
    const names = Array.from({ length: 1_000 }, (_, at) => `n${at}.example`);
    const flood = names.map((name) => permissions.of(name, '198.51.100.1'));
    await nextTurn();
    assert.equal(asked.length, questionsAtOnceMax / 2);
    for (let at = 0; at < 3; at += 1) {
      assert.equal(await permissions.of(`customer${at}.example`, `192.0.2.${at}`), 'refused');
    }
    t.mock.timers.tick(questionHeldMs);
    await nextTurn();
    assert.equal(asked.length, questionsAtOnceMax + 3);
    // An order, of which there are few, does not wait behind the flood.
    assert.equal(await permissions.confirm('last.example'), 'refused');
    t.mock.timers.tick(questionMs);
    const answers = await Promise.all(flood);
    assert.ok(answers.filter((one) => one === 'unknown').length > 900);
  });

  test('is asked by the URL with the name in the query', async (t) => {
    const asked: unknown[] = [];
    const { origin } = await httpSource(t, ({ method, url }, response) => {
      asked.push(`${method ?? ''} ${url ?? ''}`);
      response.writeHead(asked.length === 1 ? 200 : 302).end('x'.repeat(100_000));
    });
    for (const [place, status, sent] of [
      ['/ask', 200, '/ask?domain=a.example'],
      ['/ask?kind=shop', 302, '/ask?kind=shop&domain=a.example'],
    ] as const) {
      const { ask, close } = createAsk(origin + place);
      assert.equal(await ask('a.example'), status);
      assert.equal(asked.at(-1), `GET ${sent}`);
      await close();
    }
  });
});

suite('a name that a client sends', () => {
  for (const name of ['a.example', 'xn--bcher-kva.example', '1.a-b.example', 'a.b.c.d.museum']) {
    test(`${name} may be on demand`, () => {
      assert.ok(isPublicName(name));
    });
  }
  for (const name of [
    ...['', 'localhost', '*.example.com', '127.0.0.1', '::1', '[::1]', 'a.example.', '.a.example'],
    ...['a..example', '-a.example', 'a-.example', 'a_b.example', 'A.example', 'a.1', 'a.0x1'],
    ...['../../etc/passwd', 'a/b.example', 'a b.example', `${'a'.repeat(64)}.example`],
    ...[`${'a.'.repeat(130)}example`, 'é.example', 'a.example\0'],
  ]) {
    test(`${JSON.stringify(name).slice(0, 40)} may not`, () => {
      assert.ok(!isPublicName(name));
    });
  }
});
