import assert from 'node:assert/strict';
import { test } from 'node:test';
import { folderIni } from '../../src/config/read.ts';
import { parseIni } from '../../src/config/parse.ts';

/** What a folder's ini text comes to. */
function settings(folder: string, env: Readonly<Record<string, string>>, listen?: string[]) {
  const made = folderIni(folder, listen === undefined ? {} : { listen }, env);
  const ini = parseIni(made.text, { env: made.env });
  assert.deepEqual(ini.problems, []);
  const { server, disk } = ini;
  return { data: server.values.data, root: disk[0]?.values.root, listen: server.values.listen };
}

test('the data of a folder is below the data folder of the user', () => {
  const { data } = settings('/srv/site', { XDG_DATA_HOME: '/x', HOME: '/home/u' });
  assert.match(data, /^\/x\/waymark\/site-[0-9a-f]{8}$/);
  const atHome = settings('/srv/site', { HOME: '/home/u' }).data;
  assert.match(atHome, /^\/home\/u\/\.local\/share\/waymark\/site-[0-9a-f]{8}$/);
  // A relative path counts as none (XDG Base Directory Specification).
  assert.equal(settings('/srv/site', { XDG_DATA_HOME: 'x', HOME: '/home/u' }).data, atHome);
  assert.notEqual(settings('/srv/other/site', { HOME: '/home/u' }).data, atHome);
  assert.match(settings('/', { HOME: '/home/u' }).data, /waymark\/root-/);
});

test('the name of a folder is taken as it is, and so are several addresses', () => {
  const folder = '/srv/a ${HOME}; "b" #c';
  const { root, listen } = settings(folder, { HOME: '/home/u' }, [':81', 'https://:444']);
  assert.equal(root, folder);
  const ports = listen.map((where) => (where.kind === 'tcp' ? where.port : 0));
  assert.deepEqual(ports, [81, 444]);
});
