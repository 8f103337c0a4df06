import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Failure } from '../../../../src/core/values/failure.ts';
import {
  undefinedIfMissing,
  undefinedIfMissingAsync,
} from '../../../../src/core/http/content/file-errors.ts';

function failing(code: string): () => string {
  return () => {
    throw Object.assign(new Error(`${code}: a secret path`), { code });
  };
}

suite('errors of the file system', () => {
  for (const code of ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ELOOP', 'ENXIO', 'ENODEV']) {
    test(`${code} means that the file is missing`, async () => {
      const look = failing(code);
      assert.equal(undefinedIfMissing(look), undefined);
      assert.equal(await undefinedIfMissingAsync(() => Promise.resolve().then(look)), undefined);
    });
  }

  const failures = [
    ['EACCES', 'forbidden', undefined],
    ['EPERM', 'forbidden', undefined],
    ['EMFILE', 'unavailable', 1],
    ['ENFILE', 'unavailable', 1],
  ] as const;
  for (const [errorCode, code, retryAfterSeconds] of failures) {
    test(`${errorCode} becomes ${code}, and the message names no path`, async () => {
      const look = failing(errorCode);
      const isClear = (thrown: unknown) => {
        assert.ok(thrown instanceof Failure);
        assert.deepEqual([thrown.code, thrown.retryAfterSeconds], [code, retryAfterSeconds]);
        assert.doesNotMatch(thrown.message, /secret/);
        return true;
      };
      assert.throws(() => undefinedIfMissing(look), isClear);
      await assert.rejects(
        undefinedIfMissingAsync(() => Promise.resolve().then(look)),
        isClear,
      );
    });
  }

  test('other errors pass unchanged', async () => {
    const look = failing('EIO');
    assert.throws(() => undefinedIfMissing(look), { code: 'EIO', name: 'Error' });
    await assert.rejects(
      undefinedIfMissingAsync(() => Promise.resolve().then(look)),
      { code: 'EIO' },
    );
  });

  test('results pass unchanged, undefined too', async () => {
    assert.equal(
      undefinedIfMissing(() => 7),
      7,
    );
    assert.equal(await undefinedIfMissingAsync(() => Promise.resolve('x')), 'x');
  });
});
