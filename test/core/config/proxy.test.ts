import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consistencyProblems } from '../../../src/core/config/consistency.ts';
import { parseIni } from '../../ini.ts';

/** Problems of an ini text, also of keys against each other, as `line: message`. */
function problems(text: string): readonly string[] {
  const ini = parseIni(text, { env: {} });
  const found = [...ini.problems, ...consistencyProblems(ini)];
  return found.map(({ line, message }) => `${line}: ${message}`);
}

test('the sources of a proxy have a weight each, one of them more than 0', () => {
  const sources = 'source[] = http://a\nsource[] = http://b\n';
  for (const [line, problem] of [
    ['weight = 1', '`weight` of [proxy.a] needs 2 for the 2 sources, in their order'],
    ['weight = 0, 0', '`weight` of [proxy.a]: one has to be more than 0'],
    ['weight = 1, 1001', '`weight` cannot be `1001`: write a whole number from 0 to 1000'],
    ['retries = 16', '`retries` cannot be `16`: write a whole number from 0 to 15'],
    [
      'balance = random',
      '`balance` cannot be `random`: write `least`, `turn`, `cookie` or `address`',
    ],
  ] as const) {
    assert.deepEqual(problems(`[proxy.a]\n${sources}${line}`), [`4: ${problem}`]);
  }
  assert.deepEqual(problems(`[proxy.a]\n${sources}weight = 0, 5\nbalance = cookie`), []);
});

test('a source of a proxy is a URL that can be reached', () => {
  for (const [line, problem] of [
    ['source = srv+http://_a._tcp.test:81', /^2: `source` cannot be .*write the URL/],
    ['source = srv+ftp://a', /^2: `source` cannot be .*write the URL/],
    ['source = http://a\nmirror = srv+http://a', /^3: `mirror` cannot be .*URL of a server/],
    ['source = http://a\nhealth = status', /^3: `health` cannot be `status`: write a path/],
    ['source = http://a\nhealth_interval = 1ms', /^3: .*write a time from 100ms to 1h$/],
    ['source = http://a\nhttp_version = 3', /^3: .*write `1\.1` or `2`$/],
    ['source = http://a\nproxy_protocol = yes', /^3: .*write `v1` or `v2`$/],
  ] as const) {
    assert.match(problems(`[proxy.a]\n${line}`)[0] ?? '', problem);
  }
  assert.deepEqual(problems('[proxy.a]\nsource = srv+https://_a._tcp.test/v1'), []);
});
