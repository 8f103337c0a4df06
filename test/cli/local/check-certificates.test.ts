import assert from 'node:assert/strict';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { AcmeFolder } from '../../../src/modules/acme/folder.ts';
import { createAuthority } from '../../certificates.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { readTestConfig } from '../../harness.ts';
import { runHere } from '../here.ts';

const ini = `[server]
listen = https://127.0.0.1:8443
data = data
[tls]
cert = own.pem
key = own.key
acme_on_demand = http://127.0.0.1:9/may
[tls.shop.example.com]
acme = yes
`;

suite('`waymark check` lists certificates', () => {
  test('of files, of ACME and on demand, with what renews when and what fails', async (t) => {
    const folder = await temporaryFolder(t);
    const authority = await createAuthority();
    const own = await authority.issue(['www.example.com']);
    await writeFiles(folder, { 'server.ini': ini, 'own.pem': own.cert, 'own.key': own.key });
    const file = join(folder, 'server.ini');
    const { server, tls } = await readTestConfig(file);
    const acme = new AcmeFolder(server.data, tls.acme);
    await acme.prepare();
    const state = { since: '2026-01-01T00:00:00.000Z', failures: 0, error: null };
    const next = '2099-01-01T00:00:00.000Z';
    for (const [host, days] of [
      ['shop.example.com', 60],
      ['late.example.org', -0.5],
    ] as const) {
      await acme.saveCertificate(host, await authority.issue([host], { days }));
      await acme.saveState(host, { ...state, state: 'valid', next });
    }
    await acme.onDemand.use('late.example.org', 1_000);
    await acme.onDemand.use('new.example.org', 2_000);
    const failed = { state: 'failed', failures: 2, error: 'the CA says no', next: null } as const;
    await acme.saveState('new.example.org', { ...state, ...failed });

    const checked = await runHere(['check', '--config', file, '--json']);
    assert.equal(checked.code, 0, checked.err);
    const { certificates, warnings } = JSON.parse(checked.out) as {
      certificates: {
        section: string;
        names: string[];
        valid_until: string | null;
        acme: { state: string; next: string | null; error: string | null } | null;
      }[];
      warnings: string[];
    };
    assert.deepEqual(
      certificates.map(({ section, names, acme: at }) => [section, names[0], at?.state, at?.next]),
      [
        ['[tls]', 'www.example.com', undefined, undefined],
        ['[tls.shop.example.com]', 'shop.example.com', 'valid', next],
        ['tls: acme_on_demand new.example.org', 'new.example.org', 'failed', null],
        ['tls: acme_on_demand late.example.org', 'late.example.org', 'valid', next],
      ],
    );
    const expired = warnings.filter((one) => one.includes('expired on'));
    assert.equal(expired.length, 1);
    assert.match(expired[0] ?? '', /^The certificate of tls: acme_on_demand late\.example\.org /);

    const shown = await runHere(['check', '--config', file]);
    assert.match(shown.out, /^; CERTIFICATE +VALID UNTIL +STATE +NEXT ORDER +ERROR$/m);
    assert.match(
      shown.out,
      /^; tls: acme_on_demand new\.example\.org +- +failed +- +the CA says no$/m,
    );
    assert.match(shown.err, /expired on/);
  });

  const skip = process.getuid?.() === 0 && 'root may read everything';
  test('of files only if it may not read those of ACME', { skip }, async (t) => {
    const folder = await temporaryFolder(t);
    const authority = await createAuthority();
    const own = await authority.issue(['www.example.com']);
    await writeFiles(folder, { 'server.ini': ini, 'own.pem': own.cert, 'own.key': own.key });
    const file = join(folder, 'server.ini');
    const { server, tls } = await readTestConfig(file);
    await new AcmeFolder(server.data, tls.acme).prepare();
    await chmod(join(server.data, 'acme'), 0);
    const checked = await runHere(['check', '--config', file]);
    await chmod(join(server.data, 'acme'), 0o700);
    assert.equal(checked.code, 0, checked.err);
    assert.match(checked.err, /Cannot read the certificates of ACME .* as the user of the server/);
  });
});
