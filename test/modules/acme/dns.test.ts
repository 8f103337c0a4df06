import assert from 'node:assert/strict';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { dnsHook, dnsUpdate } from '../../../src/modules/acme/dns/dns-records.ts';
import { readTsigKey } from '../../../src/modules/acme/dns/tsig-key.ts';
import { updateMessage, updateRefusal } from '../../../src/modules/acme/dns/update-message.ts';
import { temporaryFolder } from '../../folder.ts';
import { freePort } from '../../free-port.ts';
import { startSite } from '../../harness.ts';
import { eventually } from '../files/disk-rig.ts';
import { startNameServer, tsigKeyText, tsigSecret } from './name-server.ts';

const record = { name: '_acme-challenge.www.shop.example', value: 'a'.repeat(43) };
const never = new AbortController().signal;

async function updateWith(t: TestContext, address: string, key = tsigKeyText()) {
  const keyFile = join(await temporaryFolder(t), 'tsig.key');
  await writeFile(keyFile, key);
  const [host = '', port] = address.split(':');
  return dnsUpdate({ server: { host, port: Number(port) }, keyFile });
}

suite('changes of records at a name server', () => {
  test('add and remove one record of its zone', async (t) => {
    const names = await startNameServer(t, 'shop.example');
    const dns = await updateWith(t, names.address);
    await dns.present(record, never);
    await dns.present({ ...record, value: 'b' }, never);
    await dns.cleanup(record, never);
    assert.deepEqual([...names.records], [`${record.name} b`]);
  });

  test('say why they fail', async (t) => {
    const names = await startNameServer(t, 'shop.example');
    const failure = async (key?: string, name = record.name): Promise<string> => {
      const dns = await updateWith(t, names.address, key);
      return dns.present({ ...record, name }, never).then(
        () => 'none',
        (error: unknown) => (error as Error).message,
      );
    };
    assert.match(await failure(tsigKeyText(Buffer.alloc(32))), /another secret .* \(BADSIG\)/);
    assert.match(await failure(tsigKeyText(tsigSecret, 'other')), /does not know .* \(BADKEY\)/);
    assert.match(await failure(undefined, '_acme-challenge.other.example'), /has no zone for/);
    assert.match(await failure('nothing'), /acme_dns_key has no key .+ `tsig-keygen/);
    names.code = 5;
    assert.match(await failure(), /the key may not change the record \(REFUSED\)/);
    names.code = 0;
    names.isForged = true;
    assert.match(await failure(), /does not sign its answer with the key/);
  });

  test('end if the server does not answer', async (t) => {
    const names = await startNameServer(t, 'shop.example');
    names.isSilent = true;
    const dns = await updateWith(t, names.address);
    await assert.rejects(dns.present(record, AbortSignal.timeout(200)), /does not answer/);
    const nobody = await updateWith(t, `127.0.0.1:${await freePort()}`);
    await assert.rejects(nobody.present(record, never), /does not answer/);
  });

  test('are signed as other programs sign them', () => {
    const key = { name: 'waymark', secret: tsigSecret };
    const parts = { zone: 'shop.example', key, id: 4_711, nowMs: 1_795_877_046_000 };
    const { mac } = updateMessage('add', { name: record.name, value: 'abc_DEF-1' }, parts);
    // dnspython 2.8 has verified a message with this signature.
    assert.equal(mac.toString('base64'), 'VRpNJk/LvQvuwsRrV2E3C60TVCsyhymMYVKGNZRHS/A=');
  });

  test('take no answer that is broken', () => {
    const key = { name: 'waymark', secret: tsigSecret };
    const mac = Buffer.alloc(32);
    for (let length = 0; length < 64; length += 1) {
      for (const byte of [0, 0xff, 0xc0, 0x81]) {
        const answer = Buffer.alloc(length, byte);
        assert.notEqual(updateRefusal(answer, { id: 0, mac }, key), undefined);
      }
    }
  });

  test('need a key for hmac-sha256', async (t) => {
    const file = join(await temporaryFolder(t), 'key');
    for (const [text, pattern] of [
      [tsigKeyText(tsigSecret, 'a.b.', 'hmac-md5'), /another algorithm/],
      [tsigKeyText(Buffer.alloc(4)), /has no key/],
      ['', /has no key/],
    ] as const) {
      await writeFile(file, text);
      const read = await readTsigKey(file);
      assert.match('refused' in read ? read.refused : '', pattern);
    }
    await writeFile(file, `# a comment\n${tsigKeyText(tsigSecret, 'Key.Example.')}`);
    assert.deepEqual(await readTsigKey(file), { name: 'key.example', secret: tsigSecret });
  });
});

suite('a program that changes records', () => {
  const program = async (t: TestContext, lines: string): Promise<string> => {
    const file = join(await temporaryFolder(t), 'hook');
    await writeFile(file, `#!/bin/sh\n${lines}\n`);
    await chmod(file, 0o755);
    return file;
  };

  test('fails with the last line that it has written', async (t) => {
    const hook = dnsHook(await program(t, 'echo one >&2; echo "two" >&2; exit 7'));
    await assert.rejects(hook.present(record, never), /present .* ended with 7: two$/);
    await assert.rejects(dnsHook('/none').present(record, never), /cannot be started/);
  });

  test('gets a value that looks like an option as its third argument', async (t) => {
    const file = join(await temporaryFolder(t), 'seen');
    const hook = dnsHook(await program(t, `printf '%s|' "$#" "$@" "$ACME_VALUE" > ${file}`));
    const value = '-rf$(id);"x"';
    await hook.present({ ...record, value }, never);
    const seen = await readFile(file, 'utf8');
    assert.equal(seen, `3|present|${record.name}|${value}|${value}|`);
  });

  test('is ended with all that it has started', async (t) => {
    const pids = join(await temporaryFolder(t), 'pids');
    const hook = dnsHook(
      await program(t, `sleep 600 & echo $! > ${pids}.new\nmv ${pids}.new ${pids}\nwait`),
    );
    const stop = new AbortController();
    const done = hook.present(record, stop.signal);
    const pid = Number(
      await eventually(
        () => readFile(pids, 'utf8').catch(() => ''),
        (text) => text !== '',
      ),
    );
    stop.abort(new Error('stopped'));
    await assert.rejects(done, /stopped/);
    const isRunning = async (): Promise<boolean> =>
      readFile(`/proc/${pid}/stat`, 'utf8').then(
        (text) => !/\) [ZX]/.test(text),
        () => false,
      );
    assert.equal(await eventually(isRunning, (one) => !one), false);
  });
});

test('mistakes in the keys of dns-01 are named', async (t) => {
  const files = { 'tsig.key': tsigKeyText(), 'plain.sh': '' };
  for (const [lines, pattern] of [
    ['acme_dns_hook = none.sh\n', /`acme_dns_hook` = `none.sh` does not exist/],
    ['acme_dns_hook = plain.sh\n', /is not executable/],
    ['acme_dns_server = a.example\n', /`acme_dns_server` needs `acme_dns_key`, too/],
    ['acme_dns_key = tsig.key\n', /`acme_dns_key` needs `acme_dns_server`, too/],
    ['acme_dns_server = a:0\nacme_dns_key = tsig.key\n', /write a name server/],
    ['[tls.*.a.example]\nacme = yes\n', /that needs a DNS challenge\. Set `acme_dns_hook`/],
  ] as const) {
    await assert.rejects(startSite(t, { ini: `[tls]\n${lines}`, files }), pattern, lines);
  }
});
