import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite, test } from 'node:test';
import { SharedLimit, type Release, type Shares } from '../../../src/core/fair/shared-limit.ts';

const waiting = { max: 1_000, ms: 60_000 };

function limitOf(shares: Partial<Shares> = {}): SharedLimit {
  return new SharedLimit({ what: 'things', held: 'short', max: 1, waiting, ...shares });
}

/** The names of clients in the order in which they were served, each one at a time. */
async function turnsOf(limit: SharedLimit, asked: readonly string[]): Promise<readonly string[]> {
  const served: string[] = [];
  const work = (name: string) => async (): Promise<void> => {
    served.push(name);
    await nextTurn();
  };
  await Promise.all(asked.map((name) => limit.run(name, work(name))));
  return served;
}

suite('turns of a shared limit', () => {
  test('go round between clients, whatever one of them has waiting', async () => {
    const served = await turnsOf(limitOf(), 'AAAAAAAABBC'.split(''));
    assert.equal(served.join(''), 'ABCABAAAAAA');
  });

  test('give a client that comes late its turn next', async () => {
    const limit = limitOf();
    const served: string[] = [];
    const work = (name: string) => async (): Promise<void> => {
      served.push(name);
      await nextTurn();
    };
    const first = Array.from({ length: 100 }, () => limit.run('A', work('A')));
    for (let at = 0; at < 3; at += 1) await limit.run('B', work('B'));
    assert.equal(served.slice(0, 6).join(''), 'ABABAB');
    await Promise.all(first);
    assert.deepEqual([limit.size, limit.waiting], [0, 0]);
  });

  test('let nobody hold more than a share while others wait', async () => {
    const limit = limitOf({ max: 6 });
    const first = await Promise.all(Array.from({ length: 6 }, () => limit.acquire('A')));
    const held = { A: 6, B: 0, C: 0 };
    for (const name of ['A', 'B', 'C'] as const) {
      for (let at = 0; at < 6; at += 1) {
        const counted = (): void => {
          held[name] += 1;
        };
        // Those that still wait at the end are refused in time.
        void limit.acquire(name).then(counted, () => undefined);
      }
    }
    for (const release of first) {
      held.A -= 1;
      release();
      await nextTurn();
    }
    assert.deepEqual(held, { A: 2, B: 2, C: 2 });
  });

  test('end with the request, and with their time', async () => {
    const limit = limitOf({ waiting: { max: 10, ms: 1 } });
    const release = await limit.acquire('A');
    const gone = new AbortController();
    const waits = limit.acquire('B', 1, gone.signal);
    gone.abort(new Error('gone'));
    await assert.rejects(waits, /gone/);
    await assert.rejects(limit.acquire('B', 1, gone.signal), /gone/);
    // The timer of a wait holds no process: that of this test keeps it alive.
    const alive = setInterval(() => undefined, 1_000);
    await assert.rejects(limit.acquire('C'), { code: 'unavailable', retryAfterSeconds: 1 });
    clearInterval(alive);
    assert.equal(limit.waiting, 0);
    release();
    release();
    assert.equal(limit.size, 0);
  });

  test('are given back when a task fails', async () => {
    const limit = limitOf();
    const fail = (): Promise<never> => Promise.reject(new Error('failed'));
    await assert.rejects(limit.run('A', fail), /failed/);
    assert.equal(limit.size, 0);
  });

  test('have room for a client that nobody else fills: the longest line loses its newest', async () => {
    const limit = limitOf({ waiting: { max: 10, ms: 60_000 } });
    const release = await limit.acquire('A');
    const settled: string[] = [];
    const ask = async (name: string): Promise<void> => {
      const end = await limit.acquire(name).catch(() => undefined);
      settled.push(end === undefined ? `${name} refused` : name);
      end?.();
    };
    const asked = Array.from({ length: 12 }, () => ask('A'));
    await nextTurn();
    assert.deepEqual(settled, ['A refused', 'A refused']);
    const others = ['B', 'C', 'D'].map(ask);
    await nextTurn();
    assert.equal(settled.filter((one) => one === 'A refused').length, 5);
    release();
    await Promise.all([...asked, ...others]);
    assert.deepEqual(settled.slice(5, 9).sort(), ['A', 'B', 'C', 'D']);
  });

  test('go round between wide networks of IPv6, whose clients are many', async () => {
    const limit = limitOf({ waiting: { max: 100, ms: 60_000 } });
    const served: string[] = [];
    const ask = async (address: string): Promise<void> => {
      const end = await limit.acquire({ keyId: undefined, address }).catch(() => undefined);
      if (end !== undefined) served.push(address);
      await nextTurn();
      end?.();
    };
    const many = Array.from({ length: 200 }, (_, at) => ask(`2001:db8:1:${at.toString(16)}::1`));
    await nextTurn();
    const others = ['2001:db8:2::1', '192.0.2.1'].map(ask);
    await Promise.all([...many, ...others]);
    assert.deepEqual(served.slice(1, 4).sort(), [
      ...['192.0.2.1', '2001:db8:1:1::1', '2001:db8:2::1'],
    ]);
    // Each of the others has pushed one out of the lines.
    assert.equal(served.length, 1 + 100);
  });

  test('leave a quarter to others than the clients of a wide network', () => {
    const limit = new SharedLimit({ what: 'things', held: 'long', max: 64 });
    const take = (address: string) => limit.tryAcquire({ keyId: undefined, address });
    for (let at = 0; at < 1_000; at += 1) take(`2001:db8:1:${at.toString(16)}::1`);
    assert.equal(limit.size, 48);
    assert.ok(take('2001:db8:2::1'));
    assert.ok(take('192.0.2.1'));
  });

  test('wait for a large request at last, however many small ones come', async () => {
    const limit = limitOf({ max: 10 });
    const releases = await Promise.all(
      Array.from({ length: 10 }, (_, at) => limit.acquire(`${at}`)),
    );
    const served = new AbortController();
    void limit.acquire('large', 10).then((release) => {
      served.abort();
      release();
    });
    let rounds = 0;
    for (; !served.signal.aborted && rounds < 1_000; rounds += 1) {
      void limit.acquire(`small ${rounds}`).then((release) => releases.push(release));
      releases.shift()?.();
      await nextTurn();
    }
    assert.ok(rounds > 50 && rounds < 500, `${rounds} rounds`);
  });
});

suite('what clients hold for long', () => {
  test('leaves as much to others as anybody holds', () => {
    const limit = limitOf({ held: 'long', max: 64 });
    const most = (name: string): number => {
      for (let held = 0; ; held += 1) {
        try {
          limit.take(name, 1);
        } catch {
          return held;
        }
      }
    };
    assert.deepEqual('ABCDEFG'.split('').map(most), [32, 16, 8, 4, 2, 1, 1]);
    assert.throws(
      () => {
        limit.take('H', 1);
      },
      { code: 'unavailable' },
    );
    assert.throws(
      () => {
        limitOf({ held: 'long', max: 3 }).take('A', 4);
      },
      { code: 'unavailable' },
    );
  });
});

test('no client starves, nothing leaks, and nobody holds more than there is', async () => {
  let seed = 11;
  const random = (below: number): number => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  for (const held of ['short', 'long'] as const) {
    for (let round = 0; round < 30; round += 1) {
      const max = 1 + random(12);
      const limit = limitOf({ held, max, waiting: { max: 200, ms: 60_000 } });
      const open: Release[] = [];
      const counts = { asked: 0, served: 0, refused: 0 };
      const ask = (): void => {
        const abort = new AbortController();
        counts.asked += 1;
        // One client asks for most, as an attacker does.
        const name = random(3) > 0 ? 'greedy' : `client ${random(8)}`;
        const one = limit.acquire(name, 1 + random(max), abort.signal);
        if (random(10) === 0) abort.abort(new Error('gone'));
        one.then(
          (release) => {
            counts.served += 1;
            open.push(release);
          },
          () => (counts.refused += 1),
        );
      };
      for (let step = 0; step < 300; step += 1) {
        if (random(5) < 3) ask();
        else open.splice(random(open.length + 1), 1)[0]?.();
        if (step % 7 === 0) await nextTurn();
        assert.ok(limit.size >= 0 && limit.size <= max, `${limit.size} of ${max}`);
      }
      while (limit.size > 0 || limit.waiting > 0) {
        await nextTurn();
        assert.ok(open.length > 0, 'somebody waits, and nobody is served');
        for (const release of open.splice(0)) release();
      }
      assert.equal(counts.served + counts.refused, counts.asked);
      assert.deepEqual([limit.size, limit.waiting], [0, 0]);
    }
  }
});
