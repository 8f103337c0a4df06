import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { configAfterReload, restartNeeded } from '../../../src/core/config/restart.ts';
import { assembleConfig, parseIni } from '../../ini.ts';

function assemble(text: string) {
  const ini = parseIni(text, { env: {} });
  assert.deepEqual(ini.problems, []);
  return assembleConfig(ini, {
    file: '/w/server.ini',
    folder: '/w',
    cores: 4,
    hostName: 'here',
  });
}

test('a reload uses all settings of ACME, except for a host whose new files need a restart', () => {
  const names = (config: ReturnType<typeof assemble>, next: ReturnType<typeof assemble>) => {
    assert.deepEqual(restartNeeded(config, next), ['[tls.b.d] cert', '[tls.b.d] key']);
    return configAfterReload(config, next).tls;
  };
  const before = assemble('[tls.a.d]\nacme = yes\n[tls.b.d]\nacme = yes');
  const after = assemble(
    '[tls]\nacme_email = a@b.example\n[tls.b.d]\ncert = c\nkey = k\n[tls.c.d]\nacme = yes',
  );
  const { acme, certificates } = names(before, after);
  assert.deepEqual(acme.hosts, ['c.d', 'b.d']);
  assert.equal(acme.email, 'a@b.example');
  assert.deepEqual(certificates, []);
});

suite('a reload names the settings that need a restart, and no others', () => {
  const table: readonly (readonly [before: string, after: string, ...names: string[]])[] = [
    ['', ''],
    ['[server]\nlisten = 127.0.0.1:8080\nworkers = 4', '[server]\nworkers = auto'],
    ['', '[disk.a]\n[log]\nlevel = warn\n[server]\nbase = /app\n[tls]\nhttp_redirect = no'],
    ['', '[server]\nlisten = :81', '[server] listen'],
    ['[server]\nlisten[] = :1\nlisten[] = :2', '[server]\nlisten[] = :1', '[server] listen'],
    [
      '[server]\ndata = a\nimport = b',
      '[server]\ndata = b\nworkers = 2',
      '[server] data',
      '[server] import',
      '[server] workers',
    ],
    ['', '[cluster]\nname = waymark'],
    [
      '[cluster]\nservers = a:4222, [::1]:4223\nca = ca.pem',
      '[cluster]\nservers = nats://a, nats://[::1]:4223\nca = other.pem\nuser = me',
      '[cluster] user',
      '[cluster] ca',
    ],
    ['', '[tls]\ncert = c\nkey = k', '[tls] cert', '[tls] key'],
    [
      '[tls]\ncert = c\nkey = k\n[tls.a.b]\ncert = c\nkey = k',
      '[tls]\ncert = d\nkey = k\n[tls.a.b]\ncert = c\nkey = l',
      '[tls] cert',
      '[tls.a.b] key',
    ],
    [
      '[tls.a.b]\ncert = c\nkey = k\n[tls.c.d]\ncert = c\nkey = k',
      '[tls.c.d]\ncert = c\nkey = k',
      '[tls.a.b] cert',
      '[tls.a.b] key',
    ],
  ];
  for (const [before, after, ...names] of table) {
    test(JSON.stringify([before, after]), () => {
      assert.deepEqual(restartNeeded(assemble(before), assemble(after)), names);
    });
  }
});
