import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { suite, test } from 'node:test';
import { uuidv7 } from 'uuidv7';
import type { FilesReport } from '../../../src/modules/cluster/command-files.ts';
import { openStreamLog } from '../../../src/modules/cluster/stream-log.ts';
import { silentLog } from '../../../src/core/report/log.ts';
import { startNats, until } from './nats.ts';
import { needsNats, settingsOf } from './rig.ts';
import { serverFolder, startServed } from '../../process.ts';
import { runHere } from '../../cli/here.ts';

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

  test('status shows the files of assets, and which of them the cluster lacks', async (t) => {
    const servers = await startNats(t);
    const [{ url } = assert.fail()] = servers;
    const ini = `[log]\naccess = no\n[node]\nrole = central\nname = a\n[cluster]\nservers = ${url}\n`;
    const { iniFile, folder } = await serverFolder(t, ini);
    const waymark = (...words: readonly string[]) =>
      runHere(['cluster', ...words, '--config', iniFile]);
    await until(async () => {
      const { code, err } = await waymark('init');
      assert.equal(code, 0, err);
    });
    assert.match((await waymark('status')).err, /The cluster has no files of assets yet\./);
    const served = await startServed(t, iniFile, { env: { XDG_DATA_HOME: folder } });
    for (const name of ['here.bin', 'lost.bin']) {
      const reply = await fetch(`${served.url}/svc1/asset/${name}`, {
        method: 'PUT',
        body: name,
        headers: { apikey: served.adminKey },
      });
      assert.equal(reply.status, 200, await reply.text());
    }
    served.child.kill('SIGTERM');
    await served.closed;
    const log = { settings: settingsOf(servers), id: undefined, log: silentLog, newId: uuidv7 };
    const shared = await openStreamLog(log);
    t.after(() => shared.close());
    await shared.files.remove(createHash('sha256').update('lost.bin').digest('hex'), Infinity);
    const cut = shared.files.put('c'.repeat(64), 600_000, (first, length) =>
      first === 0 ? Promise.resolve(Buffer.alloc(length)) : Promise.reject(new RangeError('cut')),
    );
    await assert.rejects(cut, RangeError);
    const { out, err } = await waymark('status');
    assert.match(out, /\nFILES ON +ROLE +STATE +LAG\nn1 +leader +current +0\n$/);
    assert.match(err, /The stream waymark-files has 1 whole file of assets, in 3 messages/);
    assert.match(err, /Of 1 more it has a part/);
    assert.match(err, /It lacks the file of lost\.bin\. A machine that has it/);
    const { files } = JSON.parse((await waymark('status', '--json')).out) as {
      readonly files: FilesReport;
    };
    const { whole, incomplete, missing, copies, log_copies: logCopies } = files;
    assert.deepEqual([whole, incomplete, copies, logCopies], [1, 1, 1, 1]);
    assert.deepEqual(missing, { count: 1, names: ['lost.bin'] });
  });

  test('without servers in the ini file, it says what to set', async (t) => {
    const { iniFile } = await serverFolder(t, '');
    const { code, err } = await runHere(['cluster', 'status', '--config', iniFile]);
    assert.equal(code, 1);
    assert.match(err, /names no cluster: set `servers` of \[cluster\]/);
  });
});
