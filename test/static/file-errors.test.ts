import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../src/model/failure.ts';
import { unlessAbsent, unlessAbsentLater } from '../../src/static/file-errors.ts';

function failing(code: string): () => string {
  return () => {
    throw Object.assign(new Error(`${code}: a secret path`), { code });
  };
}

suite('what a file system says', () => {
  for (const code of ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ENXIO', 'ENODEV']) {
    test(`${code} is that nothing is there`, async () => {
      const look = failing(code);
      assert.equal(unlessAbsent(look), undefined);
      assert.equal(await unlessAbsentLater(() => Promise.resolve().then(look)), undefined);
    });
  }

  const failures = [
    ['EACCES', 'forbidden', undefined],
    ['EPERM', 'forbidden', undefined],
    ['EMFILE', 'unavailable', 1],
    ['ENFILE', 'unavailable', 1],
  ] as const;
  for (const [errorCode, code, retryAfterSeconds] of failures) {
    test(`${errorCode} is ${code}, without saying where`, async () => {
      const look = failing(errorCode);
      const isClear = (thrown: unknown) => {
        assert.ok(thrown instanceof Failure);
        assert.deepEqual([thrown.code, thrown.retryAfterSeconds], [code, retryAfterSeconds]);
        assert.doesNotMatch(thrown.message, /secret/);
        return true;
      };
      assert.throws(() => unlessAbsent(look), isClear);
      await assert.rejects(
        unlessAbsentLater(() => Promise.resolve().then(look)),
        isClear,
      );
    });
  }

  test('any other error stays what it is', async () => {
    const look = failing('EIO');
    assert.throws(() => unlessAbsent(look), { code: 'EIO', name: 'Error' });
    await assert.rejects(
      unlessAbsentLater(() => Promise.resolve().then(look)),
      { code: 'EIO' },
    );
  });

  test('a result is passed on, nothing too', async () => {
    assert.equal(
      unlessAbsent(() => 7),
      7,
    );
    assert.equal(await unlessAbsentLater(() => Promise.resolve('x')), 'x');
  });
});
