import assert from 'node:assert/strict';
import { test } from 'node:test';
import { folderIni } from '../../../src/core/config/read.ts';
import { parseIni } from '../../ini.ts';

/** The settings of a folder that is served without an ini file. */
function settings(folder: string, env: Readonly<Record<string, string>>, listen?: string[]) {
  const made = folderIni(folder, listen === undefined ? {} : { listen }, env);
  const ini = parseIni(made.text, { env: made.env });
  assert.deepEqual(ini.problems, []);
  const { server, disk } = ini;
  return { data: server.values.data, root: disk[0]?.values.root, listen: server.values.listen };
}

test('the data of a served folder is below the data folder of the user', () => {
  const { data } = settings('/srv/site', { XDG_DATA_HOME: '/x', HOME: '/home/u' });
  assert.match(data, /^\/x\/waymark\/site-[0-9a-f]{8}$/);
  const atHome = settings('/srv/site', { HOME: '/home/u' }).data;
  assert.match(atHome, /^\/home\/u\/\.local\/share\/waymark\/site-[0-9a-f]{8}$/);
  // A relative path is ignored (XDG Base Directory Specification).
  assert.equal(settings('/srv/site', { XDG_DATA_HOME: 'x', HOME: '/home/u' }).data, atHome);
  assert.notEqual(settings('/srv/other/site', { HOME: '/home/u' }).data, atHome);
  assert.match(settings('/', { HOME: '/home/u' }).data, /waymark\/root-/);
});

test('the name of a served folder needs no quotes, and it may have several addresses', () => {
  const folder = '/srv/a ${HOME}; "b" #c';
  const { root, listen } = settings(folder, { HOME: '/home/u' }, [':81', 'https://:444']);
  assert.equal(root, folder);
  const ports = listen.map((where) => (where.kind === 'tcp' ? where.port : 0));
  assert.deepEqual(ports, [81, 444]);
});
