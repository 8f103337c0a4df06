import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { LoginConfig } from '../../../src/core/config/config.ts';
import {
  createSessionRegister,
  type SessionRegister,
} from '../../../src/modules/login/sessions.ts';
import type { Cleaning } from '../../folder.ts';
import { scratchStore } from '../../core/log/scratch.ts';
import { loginSessionsPart } from '../../../src/modules/login/stored-sessions.ts';

const lifetimeMs = 3_600_000;
const provider = {
  ...{ name: 'login', issuer: 'https://id.example', lifetimeMs },
} as LoginConfig;
const ann = {
  ...{ user: 'ann', roles: ['staff'], subject: '1', providerSession: undefined, idToken: 't' },
};

/** The registers of two workers, and a person who has signed in at the first one. */
async function signedIn(t: Cleaning): Promise<{
  readonly workers: readonly [SessionRegister, SessionRegister];
  readonly id: string;
  readonly cookie: string;
  readonly clock: { nowMs: number };
}> {
  const store = (await scratchStore(t)).part(loginSessionsPart);
  const clock = { nowMs: Date.now() };
  const given = { providers: [provider], newId: uuidv7, now: () => clock.nowMs };
  const workers = [
    createSessionRegister(store, given),
    createSessionRegister(store, given),
  ] as const;
  const { session, cookie } = await workers[0].begin(ann, provider);
  return { workers, id: session.id, cookie: `waymark_login=${cookie}`, clock };
}

const userOf = (worker: SessionRegister, cookie: string) => worker.find(cookie, 'http:')?.user;

suite('a session that is remembered', () => {
  test('is closed for all workers as soon as one of them has ended it', async (t) => {
    const { workers, id, cookie } = await signedIn(t);
    const [one, other] = workers;
    for (const worker of [...workers, ...workers]) assert.equal(userOf(worker, cookie), 'ann');
    const { cookie: second } = await other.begin(ann, provider);
    assert.equal(userOf(one, `a=b; waymark_login=${second}`), 'ann');
    await other.end([id]);
    for (const worker of workers) {
      assert.equal(userOf(worker, cookie), undefined);
      assert.equal(userOf(worker, `waymark_login=${second}`), 'ann');
    }
  });

  test('ends at its time, and counts for its whole cookie only', async (t) => {
    const { workers, cookie, clock } = await signedIn(t);
    const [one] = workers;
    assert.equal(userOf(one, cookie), 'ann');
    for (const wrong of [`${cookie}x`, cookie.slice(0, -1), cookie.replace('=', '=x')]) {
      assert.equal(userOf(one, wrong), undefined);
      assert.equal(userOf(one, `${wrong}; ${cookie}`), 'ann');
    }
    assert.equal(one.find(cookie, 'https:'), undefined, 'over TLS its name has a prefix');
    clock.nowMs += lifetimeMs;
    assert.equal(userOf(one, cookie), undefined);
  });
});
