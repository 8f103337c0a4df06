import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { startNats, until } from '../../cluster/nats.ts';
import { needsNats } from '../../cluster/rig.ts';
import { serverFolder } from '../../process.ts';
import { runHere } from '../here.ts';

suite('waymark cluster', needsNats, () => {
  test('init makes the stream once, status shows it, leave ends the part of the folder', async (t) => {
    const [server] = await startNats(t);
    assert.ok(server !== undefined);
    const cluster = `[cluster]\nservers = ${server.url}\n`;
    const { iniFile } = await serverFolder(t, cluster);
    const waymark = (...words: readonly string[]) =>
      runHere(['cluster', ...words, '--config', iniFile]);
    const missing = await waymark('status');
    assert.deepEqual([missing.code, missing.out], [1, '']);
    assert.match(missing.err, /NATS has no stream waymark: .*`waymark cluster init`/);
    const made = await until(async () => {
      const result = await waymark('init', '--json');
      assert.equal(result.code, 0, result.err);
      return JSON.parse(result.out) as { readonly stream: string; readonly log: string };
    });
    assert.equal(made.stream, 'waymark');
    assert.equal((await waymark('init')).code, 0);
    const { out, err } = await waymark('status');
    assert.match(out, /^SERVER +ROLE +STATE +LAG\nn1 +leader +current +0\n$/);
    assert.match(
      err,
      new RegExp(`stream waymark has no messages.* log ${made.log}\\. It keeps all`),
    );
    assert.match(err, /This machine has applied the messages up to 0: all of them\./);
    const short = await waymark('retention', '5m');
    assert.match(short.err, /Write a time from 1h to 3650d, such as 30d, or unlimited\./);
    const limited = await waymark('retention', '30d');
    assert.match(limited.err, /The retention of the stream waymark has changed\. .* for 30d\./);
    assert.match((await waymark('status')).err, /It keeps entries for 30d\./);
    const { iniFile: other } = await serverFolder(t, cluster);
    const foreign = await runHere(['cluster', 'init', '--config', other]);
    assert.equal(foreign.code, 1);
    assert.match(foreign.err, /the log of another cluster than this data folder/);
    assert.match((await waymark('leave')).err, /is that of a single machine, with 0 changes/);
    assert.match((await waymark('leave')).err, /is no part of a cluster/);
    assert.match((await waymark('status')).err, /This data folder is no part of the cluster/);
  });

  test('without servers in the ini file, it says what to set', async (t) => {
    const { iniFile } = await serverFolder(t, '');
    const { code, err } = await runHere(['cluster', 'status', '--config', iniFile]);
    assert.equal(code, 1);
    assert.match(err, /names no cluster: set `servers` of \[cluster\]/);
  });
});
