import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitMessages } from '../../../src/core/values/limit.ts';
import { limitLogMs } from '../../../src/core/report/limits.ts';
import { createLimitLog } from '../../../src/core/report/limit-log.ts';
import { silentLog } from '../../../src/core/report/log.ts';

test('a limit has one line a minute, with the number of cases since the line before', () => {
  const lines: object[] = [];
  let nowMs = 1_000;
  const limits = createLimitLog({
    log: { ...silentLog, warn: (fields, message) => lines.push({ ...fields, message }) },
    now: () => nowMs,
  });
  for (let at = 0; at < 1_000; at += 1) limits.passed('ranges', `192.0.2.${at % 250}`);
  limits.passed('unread_answer', '192.0.2.1');
  nowMs += limitLogMs - 1;
  limits.passed('ranges', '192.0.2.2');
  assert.deepEqual(lines, [
    { limit: 'ranges', address: '192.0.2.0', message: limitMessages.ranges },
    { limit: 'unread_answer', address: '192.0.2.1', message: limitMessages.unread_answer },
  ]);
  nowMs += 1;
  limits.passed('ranges', '192.0.2.3');
  limits.passed('unread_answer', '192.0.2.4', 'There were 200.');
  assert.deepEqual(lines.slice(2), [
    { limit: 'ranges', address: '192.0.2.3', more: 1_000, message: limitMessages.ranges },
    {
      limit: 'unread_answer',
      address: '192.0.2.4',
      why: 'There were 200.',
      message: limitMessages.unread_answer,
    },
  ]);
  // A clock that was set back must not suppress lines.
  nowMs = 0;
  limits.passed('ranges', '192.0.2.5');
  assert.equal(lines.length, 5);
});
