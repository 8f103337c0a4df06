import assert from 'node:assert/strict';
import fc from 'fast-check';
import { suite, test } from 'node:test';
import {
  hasRoom,
  laneWithBegun,
  laneWithEnded,
  newLane,
  type Ended,
  type ConcurrencyWindow,
} from '../../src/webhooks/concurrency-window.ts';

const widthMax = 64;
const second = 1_000;
const hour = 3_600 * second;

function open(
  lane: ConcurrencyWindow,
  { isFirst = true, nowMs = 0, max = widthMax } = {},
): boolean {
  return hasRoom(lane, { isFirst, nowMs, widthMax: max });
}

/**
 * As many attempts as the lane is wide at first, ended one after the other while others take their
 * places; then what is still under way is forgotten.
 */
function round(lane: ConcurrencyWindow, receiver: Ended['receiver'], nowMs = 0): ConcurrencyWindow {
  const underWay: number[] = [];
  let after = lane;
  for (let left = Math.floor(lane.width); left > 0; left -= 1) {
    while (open(after, { isFirst: false, nowMs })) {
      underWay.push(after.shrinks);
      after = laneWithBegun(after);
    }
    after = end(after, receiver, { shrinksBefore: underWay.shift() ?? NaN, nowMs });
  }
  return { ...after, inFlight: 0 };
}

function end(
  lane: ConcurrencyWindow,
  receiver: Ended['receiver'],
  given: Partial<Ended> = {},
): ConcurrencyWindow {
  return laneWithEnded(lane, {
    receiver,
    shrinksBefore: lane.shrinks,
    retryAfterMs: undefined,
    nowMs: 0,
    widthMax,
    ...given,
  });
}

function rounds(
  lane: ConcurrencyWindow,
  count: number,
  receiver: Ended['receiver'],
): ConcurrencyWindow {
  let after = lane;
  for (let at = 0; at < count; at += 1) after = round(after, receiver);
  return after;
}

/** A lane that has seen nothing but successes. */
const wide = rounds(newLane, 20, 'well');
/** A lane of a receiver that is down. */
const dead = round(wide, 'sick');

suite('a lane', () => {
  test('starts narrow and doubles with each round of successes, up to its bound', () => {
    const widths: number[] = [];
    let lane = newLane;
    for (let at = 0; at < 6; at += 1) {
      widths.push(Math.floor(lane.width));
      lane = round(lane, 'well');
    }
    assert.deepEqual(widths, [4, 8, 16, 32, 64, 64]);
  });

  test('does not grow by what it does not use', () => {
    let lane = newLane;
    for (let at = 0; at < 1_000; at += 1) lane = end(laneWithBegun(lane), 'well');
    assert.equal(lane.width, newLane.width);
  });

  test('shrinks to a single probe when all that is under way fails', () => {
    assert.equal(dead.width, 1);
    assert.equal(dead.inFlight, 0);
  });

  test('shrinks once, by half, by failures among the successes of a round', () => {
    let lane = wide;
    while (open(lane)) lane = laneWithBegun(lane);
    const { shrinks: shrinksBefore } = lane;
    for (let at = 0; at < widthMax; at += 1) {
      lane = end(lane, at % 8 === 0 ? 'sick' : 'well', { shrinksBefore });
    }
    assert.ok(lane.width >= 32 && lane.width < 36, `it is ${lane.width} wide`);
  });

  test('recovers by doubling up to half of what it was, then one by one', () => {
    let lane: ConcurrencyWindow = { ...dead, restsUntilMs: 0 };
    const widths: number[] = [];
    for (let at = 0; at < 8; at += 1) {
      lane = round(lane, 'well');
      widths.push(Math.floor(lane.width));
    }
    assert.deepEqual(widths.slice(0, 5), [2, 4, 8, 16, 32]);
    assert.ok(
      widths.slice(5).every((width) => width > 31 && width < 37),
      widths.join(),
    );
    assert.equal(Math.floor(rounds(lane, 100, 'well').width), widthMax);
  });

  test('rests longer with every probe that fails, up to a minute', () => {
    let lane: ConcurrencyWindow = { ...dead, failedProbes: 0, restsUntilMs: 0 };
    const rests: number[] = [];
    let nowMs = 0;
    for (let at = 0; at < 9; at += 1) {
      lane = round(lane, 'sick', nowMs);
      rests.push((lane.restsUntilMs - nowMs) / second);
      assert.equal(open(lane, { nowMs: lane.restsUntilMs - 1 }), false);
      nowMs = lane.restsUntilMs;
      assert.equal(open(lane, { nowMs }), true);
    }
    assert.deepEqual(rests, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test('lets what is due again go while it rests: that has its own schedule', () => {
    const resting = round({ ...dead, restsUntilMs: 0 }, 'sick');
    assert.equal(open(resting), false);
    assert.equal(open(resting, { isFirst: false }), true);
    assert.equal(open(laneWithBegun(resting), { isFirst: false }), false);
  });

  test('is open at once after the first success', () => {
    const resting = round({ ...dead, restsUntilMs: 0 }, 'sick');
    const lane = end(laneWithBegun(resting), 'well');
    assert.equal(open(lane), true);
    assert.equal(lane.width, 2);
  });

  test('is not narrowed by refusals among successes, but by a row of them', () => {
    let lane = wide;
    for (let at = 0; at < 1_000; at += 1) {
      lane = end(laneWithBegun(lane), at % 2 === 0 ? 'unwilling' : 'well');
    }
    assert.equal(lane.width, widthMax);
    for (let at = 0; at < 20; at += 1) lane = end(laneWithBegun(lane), 'unwilling');
    assert.equal(lane.width, 1);
  });

  test('sends nothing at all before the time that its receiver has asked for', () => {
    const nowMs = 5_000;
    const held = end(laneWithBegun(wide), 'sick', { retryAfterMs: 30 * second, nowMs });
    for (const isFirst of [true, false]) {
      assert.equal(open(held, { isFirst, nowMs: nowMs + 30 * second - 1 }), false);
      assert.equal(open(held, { isFirst, nowMs: nowMs + 30 * second }), true);
    }
    const shorter = end(laneWithBegun(held), 'sick', { retryAfterMs: second, nowMs });
    assert.equal(shorter.heldUntilMs, held.heldUntilMs);
    const other = end(laneWithBegun(held), 'well', { nowMs });
    assert.equal(other.heldUntilMs, held.heldUntilMs);
  });

  test('is held for an hour at most', () => {
    const held = end(laneWithBegun(wide), 'sick', { retryAfterMs: 24 * hour });
    assert.equal(held.heldUntilMs, hour);
  });

  test('keeps to a bound that was lowered while it was wide', () => {
    let lane = wide;
    while (open(lane, { max: 3 })) lane = laneWithBegun(lane);
    assert.equal(lane.inFlight, 3);
    assert.equal(end(lane, 'well', { widthMax: 3 }).width, 3);
  });
});

suite('whatever happens, a lane', () => {
  interface World {
    readonly lane: ConcurrencyWindow;
    readonly nowMs: number;
    /** `shrinks` when each of them began. */
    readonly underWay: readonly number[];
  }
  type Step = (world: World) => World;

  const begin = (isFirst: boolean): Step => {
    return (world) => {
      const { lane, nowMs, underWay } = world;
      if (!open(lane, { isFirst, nowMs, max: 16 })) return world;
      return { ...world, lane: laneWithBegun(lane), underWay: [...underWay, lane.shrinks] };
    };
  };
  const finish = (
    receiver: Ended['receiver'],
    choice: number,
    retryAfterMs: number | undefined,
  ): Step => {
    return (world) => {
      const { lane, nowMs, underWay } = world;
      const at = choice % Math.max(underWay.length, 1);
      const shrinksBefore = underWay[at];
      if (shrinksBefore === undefined) return world;
      const ended = { receiver, shrinksBefore, retryAfterMs, nowMs, widthMax: 16 };
      return {
        ...world,
        lane: laneWithEnded(lane, ended),
        underWay: underWay.filter((_, other) => other !== at),
      };
    };
  };
  const steps: fc.Arbitrary<Step> = fc.oneof(
    { weight: 3, arbitrary: fc.boolean().map(begin) },
    {
      weight: 3,
      arbitrary: fc
        .tuple(
          fc.constantFrom('well', 'sick', 'unwilling'),
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
  const start: World = { lane: newLane, nowMs: 0, underWay: [] };

  test('counts what is under way, and stays between one and its bound', () => {
    fc.assert(
      fc.property(histories, (history) => {
        let world = start;
        for (const step of history) {
          world = step(world);
          const { lane, underWay } = world;
          assert.equal(lane.inFlight, underWay.length);
          assert.ok(lane.width >= 1 && lane.width <= 16);
          assert.ok(lane.inFlight <= 16);
        }
      }),
    );
  });

  test('opens again within an hour once nothing is under way', () => {
    fc.assert(
      fc.property(histories, (history) => {
        let { lane, nowMs } = history.reduce((world, step) => step(world), start);
        while (lane.inFlight > 0) lane = end(lane, 'sick', { nowMs });
        nowMs += hour;
        assert.ok(open(lane, { nowMs, max: 16 }));
        for (const receiver of ['sick', 'unwilling'] as const) {
          const once = end(laneWithBegun(lane), receiver, { nowMs });
          assert.ok(open(once, { nowMs: nowMs + 60 * second, max: 16 }));
        }
      }),
    );
  });

  test('grows by no failure and shrinks by no success', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const { lane } = history.reduce((world, step) => step(world), start);
        const busy = lane.inFlight === 0 ? laneWithBegun(lane) : lane;
        assert.ok(end(busy, 'well', { widthMax: 16 }).width >= busy.width);
        assert.ok(end(busy, 'sick', { widthMax: 16 }).width <= busy.width);
        assert.ok(end(busy, 'unwilling', { widthMax: 16 }).width <= busy.width);
      }),
    );
  });
});
