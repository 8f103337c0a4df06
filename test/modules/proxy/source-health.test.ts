import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { silentLog } from '../../../src/core/report/log.ts';
import type { Json } from '../../../src/core/values/json/json.ts';
import { Balancer } from '../../../src/modules/proxy/balancer.ts';
import { fetchPlan, sourceTargets } from '../../../src/modules/proxy/fetch-plan.ts';
import {
  SourceHealth,
  sourcePauseMs,
  sourcePauseMsMax,
} from '../../../src/modules/proxy/source-health.ts';
import { pathOf } from '../../request-path.ts';
import { fetchRule, visit } from './fetch-rig.ts';

const a = 'http://a.example';
const b = 'http://b.example';
const c = 'http://c.example';

/** The health of three sources, with a clock that the test sets. */
function rig() {
  const clock = { ms: 1_000 };
  const health = new SourceHealth({ monotonicMs: () => clock.ms, log: silentLog });
  const source: Json = [`${a}/*`, `${b}/*`, `${c}/*`];
  const plan = fetchPlan(fetchRule({ source }));
  const ways = sourceTargets(plan, { ...pathOf('/shop/'), query: '' });
  const balancer = new Balancer(health);
  const order = () => balancer.order(plan, ways, visit()).map((way) => way.source.origin);
  const fail = (origin: string): void => {
    const attempt = health.start(origin);
    clock.ms += 1;
    attempt.failed();
    attempt.ended();
  };
  const answer = (origin: string): void => {
    const attempt = health.start(origin);
    attempt.answered();
    attempt.completed();
    attempt.ended();
  };
  return { clock, health, order, fail, answer };
}

suite('the order in which sources are tried', () => {
  test('is round robin while all are equally busy', () => {
    const { order } = rig();
    assert.deepEqual(
      [order(), order(), order(), order()].map(([first]) => first),
      [a, b, c, a],
    );
    assert.deepEqual(order(), [b, c, a]);
  });

  test('begins with the one with the fewest open requests', () => {
    const { health, order } = rig();
    const first = health.start(a);
    health.start(b);
    health.start(b);
    assert.deepEqual(order(), [c, a, b]);
    first.ended();
    assert.deepEqual(order().at(-1), b);
  });

  test('ends with those that are set aside, in the order in which their pauses end', () => {
    const { order, fail } = rig();
    fail(a);
    fail(b);
    assert.deepEqual(order(), [c, a, b]);
    fail(c);
    assert.deepEqual(order(), [a, b, c]);
  });
});

suite('a source that has failed', () => {
  test('is set aside for a pause, twice as long each time, up to a minute', () => {
    const { clock, health, fail } = rig();
    const pauses = Array.from({ length: 9 }, () => {
      fail(a);
      const [{ leftMs = 0 } = {}] = health.setAside([a, b]);
      clock.ms += leftMs;
      assert.deepEqual(health.setAside([a, b]), []);
      return leftMs;
    });
    const doubled = [1, 2, 4, 8, 16, 32].map((times) => times * sourcePauseMs);
    assert.deepEqual(pauses, [...doubled, sourcePauseMsMax, sourcePauseMsMax, sourcePauseMsMax]);
  });

  test('gets one request after its pause, and all again once that is answered', () => {
    const { clock, health, order, fail } = rig();
    fail(a);
    clock.ms += sourcePauseMs;
    const probe = health.start(a);
    assert.deepEqual(health.setAside([a]), [{ origin: a, leftMs: undefined }]);
    assert.equal(order().at(-1), a);
    probe.answered();
    assert.deepEqual(health.setAside([a]), []);
    probe.completed();
    probe.ended();
    fail(a);
    assert.deepEqual(health.setAside([a]), [{ origin: a, leftMs: sourcePauseMs }]);
  });

  test('while it answers is set aside for longer each time', () => {
    const { clock, health } = rig();
    const pauses = Array.from({ length: 3 }, () => {
      const attempt = health.start(a);
      attempt.answered();
      clock.ms += 1;
      attempt.failed();
      attempt.ended();
      const [{ leftMs = 0 } = {}] = health.setAside([a]);
      clock.ms += leftMs;
      return leftMs;
    });
    assert.deepEqual(
      pauses,
      [1, 2, 4].map((times) => times * sourcePauseMs),
    );
  });

  test('gets another probe if the client of the first goes away', () => {
    const { clock, health, fail } = rig();
    fail(a);
    clock.ms += sourcePauseMs;
    health.start(a).ended();
    assert.deepEqual(health.setAside([a]), []);
  });

  test('counts one failure when many requests fail together', () => {
    const { clock, health } = rig();
    const attempts = Array.from({ length: 50 }, () => health.start(a));
    clock.ms += 1;
    for (const attempt of attempts) attempt.failed();
    assert.deepEqual(health.setAside([a]), [{ origin: a, leftMs: sourcePauseMs }]);
  });

  test('is not set aside for longer by requests that try it as a last resort', () => {
    const { health, fail } = rig();
    fail(a);
    const [before] = health.setAside([a]);
    fail(a);
    const [after] = health.setAside([a]);
    assert.ok((after?.leftMs ?? 0) < (before?.leftMs ?? 0));
  });
});

test('metrics count the answers, failures and open requests of each source', () => {
  const { health, answer, fail } = rig();
  answer(a);
  answer(a);
  fail(b);
  health.start(b);
  health.checked(a, '/healthz', undefined);
  for (let turn = 0; turn < 2; turn += 1) health.checked(b, '/healthz', 'it answers 503');
  const shown = health.metrics().filter(({ isInternal }) => isInternal !== true);
  const values = shown.map(({ name, samples }) => [
    name.replace('waymark_fetch_source_', ''),
    samples
      .map(({ labels, value }) => `${labels.source?.at(7) ?? ''}${value}`)
      .sort()
      .join(),
  ]);
  assert.deepEqual(Object.fromEntries(values), {
    answers_total: 'a2,b0',
    check: 'a1,b0',
    failures_total: 'a0,b1',
    requests: 'a0,b1',
    set_aside: 'a0,b1',
  });
});
