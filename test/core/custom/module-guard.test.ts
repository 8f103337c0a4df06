import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { ModuleGuard } from '../../../src/core/custom/module-guard.ts';
import { Failure } from '../../../src/core/values/failure.ts';

interface Line {
  readonly level: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

function guardWith(more: { readonly answerMsMax?: number } = {}) {
  const lines: Line[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields: { ...fields }, message });
  };
  const [debug, info, warn, error] = ['debug', 'info', 'warn', 'error'].map(write);
  assert.ok(debug && info && warn && error);
  const guard = new ModuleGuard({
    ...{ name: 'slow', log: { debug, info, warn, error }, monotonicMs: () => 0 },
    ...more,
  });
  return { guard, lines };
}

const isFailure = (code: string) => (thrown: unknown) =>
  thrown instanceof Failure && thrown.code === code && thrown.source === 'module:slow';

suite('a module', () => {
  test('that does not answer gets a time limit, and the log names its step', async () => {
    const { guard, lines } = guardWith({ answerMsMax: 5 });
    const never = () => new Promise<never>(() => undefined);
    await assert.rejects(guard.answer('step notice', never), isFailure('gateway_timeout'));
    assert.equal(lines.length, 1);
    assert.deepEqual(lines[0]?.fields, { module: 'slow', step: 'step notice' });
    assert.match(lines[0].message, /has not answered within 0\.005 s: step notice/);
  });

  test('that rejects behind its time limit changes nothing', async () => {
    const { guard } = guardWith({ answerMsMax: 5 });
    const late = Promise.withResolvers<never>();
    await assert.rejects(
      guard.answer('x', () => late.promise),
      isFailure('gateway_timeout'),
    );
    late.reject(new Error('late'));
    await new Promise(setImmediate);
  });

  test('with 10,000 answers that do not end gets no further requests', async () => {
    const { guard } = guardWith();
    const { promise, resolve } = Promise.withResolvers<string>();
    const open = Array.from({ length: 10_000 }, () => guard.answer('x', () => promise));
    await assert.rejects(
      guard.answer('x', () => 'more'),
      isFailure('unavailable'),
    );
    resolve('done');
    await Promise.all(open);
    assert.equal(await guard.answer('x', () => 'more'), 'more');
  });

  test('that floods the log writes 300 lines a minute', () => {
    const { guard, lines } = guardWith();
    for (let at = 0; at < 1_000; at += 1) guard.log.info(`line ${at}`, { at });
    assert.equal(lines.length, 301);
    assert.deepEqual(lines[0]?.fields, { at: 0, module: 'slow' });
    assert.match(lines.at(-1)?.message ?? '', /The log leaves out its others of this minute/);
  });

  test('with a copy of Failure of its own fails with its code', () => {
    const { guard } = guardWith();
    const foreign = Object.assign(new Error('Not now.'), { name: 'Failure', code: 'conflict' });
    assert.ok(isFailure('conflict')(guard.failureOf('x', foreign)));
    const unknown = Object.assign(new Error('Not now.'), { name: 'Failure', code: 'weird' });
    assert.ok(isFailure('internal')(guard.failureOf('x', unknown)));
  });
});
