import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSite } from '../../harness.ts';

interface Key {
  readonly key: string;
  readonly values: readonly string[];
  readonly line: number | null;
}

test('server.configuration names the line of each key, and shows no password', async (t) => {
  const ini = [
    '[variables]',
    'HOOK_PASSWORD = s3cret',
    '[disk.site]',
    'root = files',
    'cache_control = "${HOOK_PASSWORD}"',
    '[disk.site.headers]',
    'Link = <http://me:s3cret@x.example/>',
    '[geo]',
    'country_header = X-Country',
    '[login]',
    'issuer = https://id.example',
    'client_id = www',
    'client_secret = "a s3cret; of the client"',
    '[login.staff]',
    'issuer = https://staff.example',
    'client_id = staff',
    'client_secret = "another s3cret"',
  ].join('\n');
  const site = await startSite(t, { ini, files: { 'files/a.txt': 'a' } });
  const { data } = await site.call('svc1.server.configuration', {});
  assert.equal(data.file, site.iniFile);
  assert.equal(data.state, 'current');
  assert.match(data.warnings.join(), /country_header has no effect/);
  const sections = data.sections as readonly { section: string; line: number; keys: Key[] }[];
  const keyOf = (section: string, name: string) =>
    sections.find((one) => one.section === section)?.keys.find(({ key }) => key === name);
  assert.deepEqual(keyOf('server', 'data')?.line, 3);
  assert.deepEqual(keyOf('log', 'level'), { key: 'level', values: ['info'], line: null });
  assert.deepEqual(keyOf('disk.site', 'cache_control')?.values, ['${HOOK_PASSWORD}']);
  assert.equal(typeof keyOf('disk.site', 'root')?.line, 'number');
  assert.deepEqual(keyOf('disk.site.headers', 'Link')?.values, ['<http://…@x.example/>']);
  assert.deepEqual(keyOf('login', 'client_secret')?.values, ['…']);
  assert.deepEqual(keyOf('login.staff', 'client_secret')?.values, ['…']);
  assert.deepEqual(keyOf('login', 'client_id')?.values, ['www']);
  assert.doesNotMatch(JSON.stringify(data), /s3cret/);
  const { key } = (await site.call('svc1.key.insert', { name: 'r', scopes: ['read'] })).data;
  const refused = await site.call('svc1.server.configuration', {}, { apikey: key });
  assert.equal(refused.error?.code, 'forbidden');
});
