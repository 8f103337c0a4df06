import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { readTraceContext } from '../../../src/modules/telemetry/telemetry.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const spanId = 'b7ad6b7169203331';
const valid = `00-${traceId}-${spanId}-01`;

suite('a traceparent', () => {
  for (const [what, value, isSampled] of [
    ['of version 00', valid, true],
    ['without the flag sampled', `00-${traceId}-${spanId}-02`, false],
    ['of a later version', `01-${traceId}-${spanId}-01`, true],
    ['of a later version with more parts', `cc-${traceId}-${spanId}-01-what-comes`, true],
  ] as const) {
    test(`${what} is read`, () => {
      const found = readTraceContext(['Accept', '*/*', 'TraceParent', value]);
      assert.deepEqual(found, { traceId, spanId, isSampled, state: undefined });
    });
  }

  for (const value of [
    '',
    'x',
    `ff-${traceId}-${spanId}-01`,
    `00-${traceId}-${spanId}-01-more`,
    `00-${traceId}-${spanId}-1`,
    `00-${traceId}-${spanId}`,
    `01-${traceId}-${spanId}-01more`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${'0'.repeat(32)}-${spanId}-01`,
    `00-${traceId}-${'0'.repeat(16)}-01`,
    `00-${traceId}x-${spanId}-01`,
    ` ${valid}`,
    `${valid}, ${valid}`,
    `01-${traceId}-${spanId}-01-${'a'.repeat(100_000)}`,
  ]) {
    test(`that is ${JSON.stringify(value.slice(0, 70))} is ignored`, () => {
      assert.equal(readTraceContext(['traceparent', value]), undefined);
    });
  }

  test('that is sent twice is ignored', () => {
    assert.equal(readTraceContext(['traceparent', valid, 'traceparent', valid]), undefined);
  });
});

suite('a tracestate', () => {
  const stateOf = (...values: readonly string[]): string | undefined =>
    readTraceContext([
      ...['traceparent', valid],
      ...values.flatMap((value) => ['tracestate', value]),
    ])?.state;

  for (const [values, state] of [
    [['rojo=00f067aa0ba902b7'], 'rojo=00f067aa0ba902b7'],
    [['a=1', 'b=2 3,,c@d=4'], 'a=1,b=2 3,c@d=4'],
    [[' a=1 ,\tb=2'], 'a=1,b=2'],
    [['1a@b=x'], '1a@b=x'],
    [['1a=x'], undefined],
    [['A=1'], undefined],
    [['a=1,a=2'], undefined],
    [['a'], undefined],
    [['a='], undefined],
    [['a=b=c'], undefined],
    [['a=\u00e9'], undefined],
    [[''], undefined],
    [[Array.from({ length: 32 }, (_, at) => `k${at}=1`).join()], 'all'],
    [[Array.from({ length: 33 }, (_, at) => `k${at}=1`).join()], undefined],
    [[`a=${'b'.repeat(600)}`], undefined],
    [[' '.repeat(100_000)], undefined],
  ] as const) {
    test(`${JSON.stringify(values).slice(0, 60)} is ${state === undefined ? 'left out' : 'kept'}`, () => {
      assert.equal(stateOf(...values), state === 'all' ? values[0] : state);
    });
  }
});
