import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../../src/core/values/failure.ts';
import { parsePasswordFile } from '../../../src/modules/access/password-hash.ts';
import { Passwords, wrongPerNameMax } from '../../../src/modules/access/passwords.ts';
import { scryptLine } from './passwords.ts';

const { hashes } = parsePasswordFile(`${scryptLine('ann', 'secret')}\n`);

/** The check of passwords with a clock of the test. */
function startPasswords() {
  const clock = { nowMs: 0 };
  const passwords = new Passwords({ monotonicMs: () => clock.nowMs });
  let addresses = 0;
  /** Tries a password, by default from a network that nothing has come from. */
  const attempt = async (name: string, password: string, address?: string): Promise<string> => {
    addresses += 1;
    const fresh = `2001:db8:0:${addresses.toString(16)}::1`;
    try {
      const isRight = await passwords.isRight({ name, password }, hashes, address ?? fresh);
      return isRight ? 'right' : 'wrong';
    } catch (thrown) {
      return thrown instanceof Failure ? thrown.code : String(thrown);
    }
  };
  return { clock, attempt };
}

suite('tries of passwords', () => {
  test('for a user stay counted, whatever other names many addresses try', async () => {
    const { attempt, clock } = startPasswords();
    for (let at = 0; at < wrongPerNameMax; at += 1) {
      assert.equal(await attempt('ann', `wrong ${at}`), 'wrong');
    }
    assert.equal(await attempt('ann', 'wrong'), 'rate_limited');
    const others = Array.from({ length: 16_500 }, (_, at) => attempt(`other ${at}`, 'x'));
    assert.ok((await Promise.all(others)).includes('unavailable'));
    assert.equal(await attempt('ann', 'wrong'), 'rate_limited');
    clock.nowMs = 60_001;
    assert.equal(await attempt('ann', 'secret'), 'right');
  });

  test('for a name that nobody has are limited as those of a user', async () => {
    const { attempt } = startPasswords();
    const answers: string[] = [];
    for (let at = 0; at <= wrongPerNameMax; at += 1) answers.push(await attempt('eve', `${at}`));
    assert.deepEqual(answers.indexOf('rate_limited'), wrongPerNameMax);
  });

  test('from one address are limited for all names together', async () => {
    const { attempt } = startPasswords();
    const answers: string[] = [];
    for (let at = 0; at < 11; at += 1) answers.push(await attempt(`n${at}`, 'x', '192.0.2.1'));
    assert.deepEqual(answers.indexOf('rate_limited'), 10);
  });
});
