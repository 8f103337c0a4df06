import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convertNetlify } from '../../../src/modules/convert/netlify/convert.ts';

test('20,000 redirects are converted in a few seconds, by one path or below it', () => {
  const lines = Array.from({ length: 20_000 }, (_, at) => {
    return at % 2 === 0 ? `/old/${at} /new/${at}` : `/old/${at}/* /new/${at}/:splat`;
  });
  const before = process.cpuUsage();
  const { ini, left } = convertNetlify(lines.join('\n'), '_redirects');
  const { user } = process.cpuUsage(before);
  assert.deepEqual([ini.match(/^\[redirect\./gm)?.length, left], [20_000, []]);
  // With each redirect compared to each other one, it took 17 s.
  assert.ok(user < 5_000_000, `${user} µs`);
});
