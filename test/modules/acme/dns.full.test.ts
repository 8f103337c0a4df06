import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { temporaryFolder } from '../../folder.ts';
import { startNameServer, tsigKeyText, type TestNameServer } from './name-server.ts';
import { startPebble, withoutPebble } from './pebble.ts';
import { certificateOf, freePorts, startManagedSite } from './rig.ts';

const hosts = ['*.shop.example', 'shop.example'];

/** A site whose certificates Pebble issues for records of a name server. */
async function siteWith(t: TestContext, names: TestNameServer, tls: string, files = {}) {
  const ports = await freePorts();
  const looksAt = { httpPort: ports.http, tlsPort: ports.https };
  const pebble = await startPebble(t, { ...looksAt, nameServer: names.address });
  const given = { acme: pebble, ports, hosts, tls: `acme_dns_wait = 0s\n${tls}` };
  return startManagedSite(t, { ...given, ways: ['https'], files });
}

suite('certificates by dns-01 from Pebble', { skip: withoutPebble }, () => {
  test('are issued for a wildcard by a name server that takes changes', async (t) => {
    const names = await startNameServer(t, 'shop.example');
    const tls = `acme_dns_server = ${names.address}\nacme_dns_key = tsig.key\n`;
    const site = await siteWith(t, names, tls, { 'tsig.key': tsigKeyText() });
    await site.untilLogged(/\[tls\.\*\.shop\.example\] is in use/);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    const wildcard = await certificateOf(site.tlsPort, 'www.shop.example');
    assert.equal(wildcard.subjectaltname, 'DNS:*.shop.example');
    const own = await certificateOf(site.tlsPort, 'shop.example');
    assert.equal(own.subjectaltname, 'DNS:shop.example');
    assert.deepEqual(
      names.changes.map((one) => one.split(' ').slice(0, 2).join(' ')),
      ['add', 'remove', 'add', 'remove'].map((one) => `${one} _acme-challenge.shop.example`),
    );
    assert.equal(names.records.size, 0);
    const [first] = (await site.status()).data.certificates;
    assert.deepEqual([first.names, first.acme.state], [['*.shop.example'], 'valid']);
  });

  test('are issued by a program', async (t) => {
    const names = await startNameServer(t, 'shop.example');
    const folder = await temporaryFolder(t);
    const [said, hook] = [join(folder, 'said'), join(folder, 'hook')];
    const row = join(folder, 'row');
    const lines = [
      '#!/bin/sh',
      `echo "$1 $2 $3 $ACME_ACTION $ACME_NAME $ACME_VALUE" >> ${said}`,
      `if [ "$1" = present ]; then echo "$2 $3" > ${row}; else rm ${row}; fi`,
    ];
    await writeFile(hook, lines.join('\n'));
    await chmod(hook, 0o755);
    names.more = () => (existsSync(row) ? [readFileSync(row, 'utf8').trim()] : []);
    const site = await siteWith(t, names, `acme_dns_hook = ${hook}\n`);
    await site.untilLogged(/\[tls\.shop\.example\] is in use/);
    await site.untilLogged(/\[tls\.\*\.shop\.example\] is in use/);
    const calls = (await readFile(said, 'utf8')).trim().split('\n');
    for (const [at, call] of calls.entries()) {
      const [action, name, value, ...same] = call.split(' ');
      assert.deepEqual(same, [action, name, value]);
      assert.deepEqual(
        [action, name],
        [at % 2 === 0 ? 'present' : 'cleanup', `_acme-challenge.shop.example`],
      );
      assert.match(value ?? '', /^[\w-]{43}$/);
    }
    assert.equal(calls.length, 4);
  });

  test('that a program fails to prove are ordered again later, with a clear line', async (t) => {
    const names = await startNameServer(t, 'shop.example');
    const hook = join(await temporaryFolder(t), 'hook');
    await writeFile(hook, '#!/bin/sh\necho "no such zone" >&2\nexit 3\n');
    await chmod(hook, 0o755);
    const site = await siteWith(t, names, `acme_dns_hook = ${hook}\n`);
    await site.untilLogged(
      /No certificate for shop\.example: acme_dns_hook present _acme-challenge\.shop\.example ended with 3: no such zone\. Retrying/,
    );
  });
});
