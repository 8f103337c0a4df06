import assert from 'node:assert/strict';
import { rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test, type TestContext } from 'node:test';
import { silentLog } from '../../../src/core/report/log.ts';
import { openGeoDatabase } from '../../../src/modules/visitors/geo-database.ts';
import { temporaryFolder } from '../../folder.ts';
import { mmdb } from './mmdb.ts';

const swiss = { country: { iso_code: 'CH' } };

/** A database file, with a clock for the test. */
async function lookUpIn(t: TestContext, content: Buffer | undefined) {
  const file = join(await temporaryFolder(t), 'countries.mmdb');
  if (content !== undefined) await writeFile(file, content);
  let nowMs = 0;
  const warnings: string[] = [];
  const locations = openGeoDatabase({
    file,
    now: () => nowMs,
    log: {
      ...silentLog,
      warn: (fields) => warnings.push(String((fields as { err: unknown }).err)),
    },
  });
  return {
    file,
    warnings,
    later: (ms: number) => {
      nowMs += ms;
    },
    countryOf: async (address: string) => {
      await locations.prepare();
      return locations.locationOf(address).country;
    },
    /** Whether a look-up has to wait now. */
    waits: () => locations.prepare() !== undefined,
  };
}

suite('the country of an address', () => {
  test('is the one of its network', async (t) => {
    const { countryOf } = await lookUpIn(
      t,
      mmdb({
        '192.0.2.0/24': swiss,
        '198.51.100.128/25': { registered_country: { iso_code: 'LI' } },
        '203.0.113.0/24': { country: { names: 'x' }, registered_country: { iso_code: 'AT' } },
        '2001:db8::/32': { country: 'de' },
        '2001:db9::/32': { country_code: 'FR' },
        '2001:dba::/32': { continent: { code: 'EU' } },
      }),
    );
    const cases: readonly (readonly [address: string, country: string | undefined])[] = [
      ['192.0.2.0', 'CH'],
      ['192.0.2.255', 'CH'],
      ['192.0.3.0', undefined],
      ['198.51.100.128', 'LI'],
      ['198.51.100.127', undefined],
      ['203.0.113.9', 'AT'],
      ['2001:db8:1::1', 'DE'],
      ['2001:db9::1', 'FR'],
      ['2001:dba::1', undefined],
      ['::1', undefined],
      ['', undefined],
      ['nowhere', undefined],
    ];
    for (const [address, country] of cases) {
      assert.equal(await countryOf(address), country, address);
      assert.equal(await countryOf(address), country, `${address}, remembered`);
    }
  });

  test('is unknown for IPv6 in a database of IPv4', async (t) => {
    const database = mmdb({ '0.0.0.0/1': swiss, '128.0.0.0/1': swiss }, { ipVersion: 4 });
    const { countryOf } = await lookUpIn(t, database);
    assert.equal(await countryOf('192.0.2.1'), 'CH');
    assert.equal(await countryOf('2001:db8::1'), undefined);
  });

  test('follows a change of the file within a second', async (t) => {
    const { file, countryOf, later, warnings } = await lookUpIn(t, mmdb({ '192.0.2.0/24': swiss }));
    assert.equal(await countryOf('192.0.2.1'), 'CH');
    await writeFile(`${file}.new`, mmdb({ '192.0.2.0/24': { country: { iso_code: 'LI' } } }));
    await rename(`${file}.new`, file);
    assert.equal(await countryOf('192.0.2.1'), 'CH', 'the file is not looked at for every visitor');
    later(1_000);
    assert.equal(await countryOf('192.0.2.1'), 'LI');
    assert.deepEqual(warnings, []);
  });

  test('stays the same while the file is unusable, which is logged once', async (t) => {
    const good = mmdb({ '192.0.2.0/24': swiss });
    const { file, countryOf, later, warnings } = await lookUpIn(t, good);
    assert.equal(await countryOf('192.0.2.1'), 'CH');
    const uses: readonly [string, () => Promise<void>][] = [
      ['half of it', () => writeFile(file, good.subarray(0, good.length / 2))],
      ['something else', () => writeFile(file, 'not a database')],
      ['nothing', () => rm(file)],
    ];
    for (const [at, [title, change]] of uses.entries()) {
      await change();
      for (let look = 0; look < 3; look += 1) {
        later(1_000);
        assert.equal(await countryOf('192.0.2.1'), 'CH', title);
      }
      assert.equal(warnings.length, at + 1, title);
    }
    await writeFile(file, mmdb({ '192.0.2.0/24': { country: { iso_code: 'LI' } } }));
    later(1_000);
    assert.equal(await countryOf('192.0.2.1'), 'LI');
  });

  test('is unknown as long as there is no file', async (t) => {
    const { countryOf, warnings } = await lookUpIn(t, undefined);
    assert.equal(await countryOf('192.0.2.1'), undefined);
    assert.equal(warnings.length, 1);
  });

  test('waits for the first read, and for a check once a second', async (t) => {
    const { countryOf, waits, later } = await lookUpIn(t, mmdb({ '192.0.2.0/24': swiss }));
    assert.ok(waits());
    assert.ok(waits(), 'as long as the file is being read');
    await countryOf('192.0.2.1');
    assert.ok(!waits());
    later(999);
    assert.ok(!waits());
    later(1);
    assert.ok(waits());
    await countryOf('192.0.2.1');
  });
});
