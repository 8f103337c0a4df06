import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  hasRoom,
  windowAfterStart,
  windowAfterEnd,
  initialWindow,
  type AttemptEnd,
  type ConcurrencyWindow,
} from '../../../src/modules/webhooks/concurrency-window.ts';

const widthMax = 64;
const second = 1_000;
const hour = 3_600 * second;

function open(
  window: ConcurrencyWindow,
  { isFirst = true, nowMs = 0, max = widthMax } = {},
): boolean {
  return hasRoom(window, { isFirst, nowMs, widthMax: max });
}

/**
 * Ends as many attempts as the width of the window, one after the other, while others replace them.
 * Those that are then in flight are dropped.
 */
function round(
  window: ConcurrencyWindow,
  receiver: AttemptEnd['receiver'],
  nowMs = 0,
): ConcurrencyWindow {
  const inFlight: number[] = [];
  let after = window;
  for (let left = Math.floor(window.width); left > 0; left -= 1) {
    while (open(after, { isFirst: false, nowMs })) {
      inFlight.push(after.shrinks);
      after = windowAfterStart(after);
    }
    after = end(after, receiver, { shrinksBefore: inFlight.shift() ?? NaN, nowMs });
  }
  return { ...after, inFlight: 0 };
}

function end(
  window: ConcurrencyWindow,
  receiver: AttemptEnd['receiver'],
  given: Partial<AttemptEnd> = {},
): ConcurrencyWindow {
  return windowAfterEnd(window, {
    receiver,
    shrinksBefore: window.shrinks,
    retryAfterMs: undefined,
    nowMs: 0,
    widthMax,
    ...given,
  });
}

function rounds(
  window: ConcurrencyWindow,
  count: number,
  receiver: AttemptEnd['receiver'],
): ConcurrencyWindow {
  let after = window;
  for (let at = 0; at < count; at += 1) after = round(after, receiver);
  return after;
}

/** A window after successes only. */
const wide = rounds(initialWindow, 20, 'healthy');
/** A window after failures only. */
const dead = round(wide, 'failing');

suite('a concurrency window', () => {
  test('starts at 4 and doubles with each round of successes, up to its maximum', () => {
    const widths: number[] = [];
    let window = initialWindow;
    for (let at = 0; at < 6; at += 1) {
      widths.push(Math.floor(window.width));
      window = round(window, 'healthy');
    }
    assert.deepEqual(widths, [4, 8, 16, 32, 64, 64]);
  });

  test('does not grow while it is not full', () => {
    let window = initialWindow;
    for (let at = 0; at < 1_000; at += 1) window = end(windowAfterStart(window), 'healthy');
    assert.equal(window.width, initialWindow.width);
  });

  test('shrinks to a single probe when all attempts in flight fail', () => {
    assert.equal(dead.width, 1);
    assert.equal(dead.inFlight, 0);
  });

  test('shrinks once, by half, if some attempts of a round fail', () => {
    let window = wide;
    while (open(window)) window = windowAfterStart(window);
    const { shrinks: shrinksBefore } = window;
    for (let at = 0; at < widthMax; at += 1) {
      window = end(window, at % 8 === 0 ? 'failing' : 'healthy', { shrinksBefore });
    }
    assert.ok(window.width >= 32 && window.width < 36, `it is ${window.width} wide`);
  });

  test('recovers by doubling up to half of its former width, then by one per round', () => {
    let window: ConcurrencyWindow = { ...dead, pausedUntilMs: 0 };
    const widths: number[] = [];
    for (let at = 0; at < 8; at += 1) {
      window = round(window, 'healthy');
      widths.push(Math.floor(window.width));
    }
    assert.deepEqual(widths.slice(0, 5), [2, 4, 8, 16, 32]);
    assert.ok(
      widths.slice(5).every((width) => width > 31 && width < 37),
      widths.join(),
    );
    assert.equal(Math.floor(rounds(window, 100, 'healthy').width), widthMax);
  });

  test('pauses longer after each failed probe, up to a minute', () => {
    let window: ConcurrencyWindow = { ...dead, failedProbes: 0, pausedUntilMs: 0 };
    const rests: number[] = [];
    let nowMs = 0;
    for (let at = 0; at < 9; at += 1) {
      window = round(window, 'failing', nowMs);
      rests.push((window.pausedUntilMs - nowMs) / second);
      assert.equal(open(window, { nowMs: window.pausedUntilMs - 1 }), false);
      nowMs = window.pausedUntilMs;
      assert.equal(open(window, { nowMs }), true);
    }
    assert.deepEqual(rests, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test('allows retries during the pause, because they have their own schedule', () => {
    const resting = round({ ...dead, pausedUntilMs: 0 }, 'failing');
    assert.equal(open(resting), false);
    assert.equal(open(resting, { isFirst: false }), true);
    assert.equal(open(windowAfterStart(resting), { isFirst: false }), false);
  });

  test('ends the pause at the first success', () => {
    const resting = round({ ...dead, pausedUntilMs: 0 }, 'failing');
    const window = end(windowAfterStart(resting), 'healthy');
    assert.equal(open(window), true);
    assert.equal(window.width, 2);
  });

  test('shrinks after several refusals in a row, but not after single ones', () => {
    let window = wide;
    for (let at = 0; at < 1_000; at += 1) {
      window = end(windowAfterStart(window), at % 2 === 0 ? 'refusing' : 'healthy');
    }
    assert.equal(window.width, widthMax);
    for (let at = 0; at < 20; at += 1) window = end(windowAfterStart(window), 'refusing');
    assert.equal(window.width, 1);
  });

  test('allows nothing before the Retry-After of its receiver', () => {
    const nowMs = 5_000;
    const held = end(windowAfterStart(wide), 'failing', { retryAfterMs: 30 * second, nowMs });
    for (const isFirst of [true, false]) {
      assert.equal(open(held, { isFirst, nowMs: nowMs + 30 * second - 1 }), false);
      assert.equal(open(held, { isFirst, nowMs: nowMs + 30 * second }), true);
    }
    const shorter = end(windowAfterStart(held), 'failing', { retryAfterMs: second, nowMs });
    assert.equal(shorter.retryAfterUntilMs, held.retryAfterUntilMs);
    const other = end(windowAfterStart(held), 'healthy', { nowMs });
    assert.equal(other.retryAfterUntilMs, held.retryAfterUntilMs);
  });

  test('obeys a Retry-After for an hour at most', () => {
    const held = end(windowAfterStart(wide), 'failing', { retryAfterMs: 24 * hour });
    assert.equal(held.retryAfterUntilMs, hour);
  });

  test('obeys a maximum that was lowered', () => {
    let window = wide;
    while (open(window, { max: 3 })) window = windowAfterStart(window);
    assert.equal(window.inFlight, 3);
    assert.equal(end(window, 'healthy', { widthMax: 3 }).width, 3);
  });
});

suite('after any sequence of attempts, a concurrency window', () => {
  interface World {
    readonly window: ConcurrencyWindow;
    readonly nowMs: number;
    /** For each attempt in flight, `shrinks` at its start. */
    readonly inFlight: readonly number[];
  }
  type Step = (world: World) => World;

  const begin = (isFirst: boolean): Step => {
    return (world) => {
      const { window, nowMs, inFlight } = world;
      if (!open(window, { isFirst, nowMs, max: 16 })) return world;
      return {
        ...world,
        window: windowAfterStart(window),
        inFlight: [...inFlight, window.shrinks],
      };
    };
  };
  const finish = (
    receiver: AttemptEnd['receiver'],
    choice: number,
    retryAfterMs: number | undefined,
  ): Step => {
    return (world) => {
      const { window, nowMs, inFlight } = world;
      const at = choice % Math.max(inFlight.length, 1);
      const shrinksBefore = inFlight[at];
      if (shrinksBefore === undefined) return world;
      const ended = { receiver, shrinksBefore, retryAfterMs, nowMs, widthMax: 16 };
      return {
        ...world,
        window: windowAfterEnd(window, ended),
        inFlight: inFlight.filter((_, other) => other !== at),
      };
    };
  };
  const steps: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: fc.boolean().map(begin) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(
          fc.constantFrom('healthy', 'failing', 'refusing'),
          fc.nat(99),
          fc.option(fc.nat(2 * hour), { nil: undefined }),
        )
        .map(([receiver, choice, retryAfterMs]) => finish(receiver, choice, retryAfterMs)),
    },
    {
      weight: 1,
      arbitrary: fc.nat(30 * second).map((ms): Step => (world) => ({
        ...world,
        nowMs: world.nowMs + ms,
      })),
    },
  );
  const histories = fc.array(steps, { maxLength: 200 });
  const start: World = { window: initialWindow, nowMs: 0, inFlight: [] };

  test('has the right number in flight, and a width between 1 and its maximum', () => {
    fc.assert(
      fc.property(histories, (history) => {
        let world = start;
        for (const step of history) {
          world = step(world);
          const { window, inFlight } = world;
          assert.equal(window.inFlight, inFlight.length);
          assert.ok(window.width >= 1 && window.width <= 16);
          assert.ok(window.inFlight <= 16);
        }
      }),
    );
  });

  test('allows an attempt within an hour once none is in flight', () => {
    fc.assert(
      fc.property(histories, (history) => {
        let { window, nowMs } = history.reduce((world, step) => step(world), start);
        while (window.inFlight > 0) window = end(window, 'failing', { nowMs });
        nowMs += hour;
        assert.ok(open(window, { nowMs, max: 16 }));
        for (const receiver of ['failing', 'refusing'] as const) {
          const once = end(windowAfterStart(window), receiver, { nowMs });
          assert.ok(open(once, { nowMs: nowMs + 60 * second, max: 16 }));
        }
      }),
    );
  });

  test('never grows after a failure and never shrinks after a success', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const { window } = history.reduce((world, step) => step(world), start);
        const busy = window.inFlight === 0 ? windowAfterStart(window) : window;
        assert.ok(end(busy, 'healthy', { widthMax: 16 }).width >= busy.width);
        assert.ok(end(busy, 'failing', { widthMax: 16 }).width <= busy.width);
        assert.ok(end(busy, 'refusing', { widthMax: 16 }).width <= busy.width);
      }),
    );
  });
});
