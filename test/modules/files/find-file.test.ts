import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { linkSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { chmod, rename, symlink } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, suite, test } from 'node:test';
import { locateFile, openLocated } from '../../../src/modules/files/precompressed.ts';
import { temporaryFolder, writeFiles } from '../../folder.ts';
import { startSite } from '../../harness.ts';
import { ask, heldText, mountOf, visitDisk } from './disk-rig.ts';

const secret = 'what lies outside of the root';

const mounts = `
[disk.within]
path = /within/
root = site
listing = yes
[disk.deny]
path = /deny/
root = site
symlinks = deny
listing = yes
[disk.follow]
path = /follow/
root = site
symlinks = follow
listing = yes
`;

suite('symlinks', () => {
  const cases: readonly (readonly [
    path: string,
    within: number | string,
    deny: number | string,
    follow: number | string,
  ])[] = [
    ['a.txt', 'inside', 'inside', 'inside'],
    ['sub/b.txt', 'below', 'below', 'below'],
    ['to-file.txt', 'inside', 404, 'inside'],
    ['to-file-absolutely.txt', 'inside', 404, 'inside'],
    ['to-link.txt', 'inside', 404, 'inside'],
    ['to-folder/b.txt', 'below', 404, 'below'],
    ['to-folder', 301, 404, 301],
    ['to-root/a.txt', 'inside', 404, 'inside'],
    ['to-outside.txt', 404, 404, secret],
    ['to-outside-absolutely.txt', 404, 404, secret],
    ['to-outside/secret.txt', 404, 404, secret],
    ['to-outside/', 404, 404, 200],
    ['to-neighbour.txt', 404, 404, secret],
    ['to-itself', 404, 404, 404],
    ['to-nothing', 404, 404, 404],
    ['to-device', 404, 404, 404],
  ];

  async function start(t: TestContext) {
    const site = await startSite(t, {
      ini: mounts,
      files: {
        'site/a.txt': 'inside',
        'site/sub/b.txt': 'below',
        'outside/secret.txt': secret,
        // A folder with a name that begins with that of the root.
        'site-neighbour/secret.txt': secret,
      },
    });
    const links: Readonly<Record<string, string>> = {
      'to-file.txt': 'a.txt',
      'to-file-absolutely.txt': join(site.folder, 'site/a.txt'),
      'to-link.txt': 'to-file.txt',
      'to-folder': 'sub',
      'to-root': '.',
      'to-outside.txt': '../outside/secret.txt',
      'to-outside-absolutely.txt': join(site.folder, 'outside/secret.txt'),
      'to-outside': '../outside',
      'to-neighbour.txt': '../site-neighbour/secret.txt',
      'to-itself': 'to-itself',
      'to-nothing': 'nothing',
      'to-device': '/dev/zero',
    };
    for (const [name, target] of Object.entries(links)) {
      await symlink(target, join(site.folder, 'site', name));
    }
    return site;
  }

  test('are followed as far as the mount allows', async (t) => {
    const site = await start(t);
    for (const [path, ...wanted] of cases) {
      for (const [at, mount] of ['within', 'deny', 'follow'].entries()) {
        const { status, text } = await ask(site.url, `/${mount}/${path}`);
        const expected = wanted[at];
        assert.equal(typeof expected === 'string' ? text : status, expected, `${mount}/${path}`);
        if (expected === 404) assert.ok(!text.includes(secret));
      }
    }
  });

  test('are listed if they lead to something that is served', async (t) => {
    const site = await start(t);
    const listed = async (mount: string): Promise<readonly string[]> => {
      const { text } = await ask(site.url, `/${mount}/`, {
        headers: { accept: 'application/json' },
      });
      const { entries } = JSON.parse(text) as { entries: { name: string; type: string }[] };
      return entries.map(({ name, type }) => (type === 'directory' ? `${name}/` : name));
    };
    const inside = ['to-file-absolutely.txt', 'to-file.txt', 'to-link.txt'];
    const outside = ['to-neighbour.txt', 'to-outside-absolutely.txt', 'to-outside.txt'];
    assert.deepEqual(await listed('deny'), ['sub/', 'a.txt']);
    assert.deepEqual(await listed('within'), [
      'sub/',
      'to-folder/',
      'to-root/',
      'a.txt',
      ...inside,
    ]);
    assert.deepEqual(await listed('follow'), [
      ...['sub/', 'to-folder/', 'to-outside/', 'to-root/', 'a.txt'],
      ...[...inside, ...outside].sort(),
    ]);
  });

  test('the root itself may be a symlink', async (t) => {
    const folder = await temporaryFolder(t);
    await writeFiles(folder, { 'versions/1/page.txt': 'one', 'versions/2/page.txt': 'two' });
    const root = join(folder, 'current');
    await symlink('versions/1', root);
    for (const symlinks of ['within', 'deny', 'follow'] as const) {
      const visit = visitDisk(t, [mountOf(root, { symlinks })]);
      assert.equal(heldText(await visit('/page.txt')), 'one', symlinks);
    }
    // Deployments switch to a new version this way.
    await symlink('versions/2', `${root}.next`);
    await rename(`${root}.next`, root);
    const visit = visitDisk(t, [mountOf(root, { symlinks: 'deny' })]);
    assert.equal(heldText(await visit('/page.txt')), 'two');
  });
});

suite('a replacement between finding a file and opening it', () => {
  const swaps: readonly (readonly [string, (folder: string) => void])[] = [
    [
      'a symlink out of the root',
      (folder) => {
        rmSync(join(folder, 'site/sub/a.txt'));
        symlinkSync('../../outside/a.txt', join(folder, 'site/sub/a.txt'));
      },
    ],
    [
      'a symlink out of the root that replaces its folder and leads to the same file',
      (folder) => {
        linkSync(join(folder, 'site/sub/a.txt'), join(folder, 'outside/same.txt'));
        renameSync(join(folder, 'outside/same.txt'), join(folder, 'outside/a.txt'));
        renameSync(join(folder, 'site/sub'), join(folder, 'site/sub-before'));
        symlinkSync('../outside', join(folder, 'site/sub'));
      },
    ],
    [
      'another file',
      (folder) => {
        writeFileSync(join(folder, 'site/new'), 'new');
        renameSync(join(folder, 'site/new'), join(folder, 'site/sub/a.txt'));
      },
    ],
    [
      'a folder',
      (folder) => {
        rmSync(join(folder, 'site/sub/a.txt'));
        mkdirSync(join(folder, 'site/sub/a.txt'));
      },
    ],
    [
      'a FIFO without a writer',
      (folder) => {
        rmSync(join(folder, 'site/sub/a.txt'));
        execFileSync('mkfifo', [join(folder, 'site/sub/a.txt')]);
      },
    ],
    [
      'nothing',
      (folder) => {
        rmSync(join(folder, 'site/sub/a.txt'));
      },
    ],
  ];
  for (const [title, swap] of swaps) {
    test(`${title} is not served`, async (t) => {
      const folder = await temporaryFolder(t);
      await writeFiles(folder, { 'site/sub/a.txt': 'inside', 'outside/a.txt': secret });
      const located = locateFile({ root: join(folder, 'site'), symlinks: 'within' }, 'sub/a.txt');
      assert.ok(located);
      swap(folder);
      assert.equal(openLocated(located), undefined);
    });
  }

  test('a path that is replaced all the time never shows files outside the root', async (t) => {
    const site = await startSite(t, {
      ini: '[disk.site]\nroot = site\n',
      files: {
        'site/held.txt': 'inside',
        'site/large.bin': Buffer.alloc(300_000, 'i'),
        'outside/held.txt': secret,
        'outside/large.bin': Buffer.alloc(300_000, 's'),
      },
    });
    const at = (path: string) => join(site.folder, path);
    const names = ['held.txt', 'large.bin'];
    for (const name of names) await symlink(`../outside/${name}`, at(`site/link-${name}`));
    const visits = new AbortController();
    const isOver = () => visits.signal.aborted;
    const swapping = (async () => {
      for (let turn = 0; !isOver(); turn += 1) {
        for (const name of names) {
          const [one, other] = turn % 2 === 0 ? [name, `link-${name}`] : [`link-${name}`, name];
          await rename(at(`site/${one}`), at('site/aside'));
          await rename(at(`site/${other}`), at(`site/${one}`));
          await rename(at('site/aside'), at(`site/${other}`));
        }
      }
    })();
    for (let visit = 0; visit < 150; visit += 1) {
      for (const name of names) {
        const { status, bytes } = await ask(site.url, `/${name}`);
        // 404 for the symlink, 503 if the file was replaced at each attempt to open it.
        assert.ok([200, 404, 503].includes(status), String(status));
        if (status === 200) assert.equal(bytes[0], 'i'.charCodeAt(0));
      }
    }
    visits.abort();
    await swapping;
  });
});

test('a FIFO, a socket or a device is a 404 at once', async (t) => {
  const site = await startSite(t, { ini: mounts, files: { 'site/a.txt': 'inside' } });
  const at = (name: string) => join(site.folder, 'site', name);
  execFileSync('mkfifo', [at('fifo')]);
  const names = ['fifo', 'socket', 'zero'];
  const socket = createServer();
  await new Promise<void>((resolve) => socket.listen(at('socket'), resolve));
  t.after(() => socket.close());
  try {
    execFileSync('mknod', [at('zero'), 'c', '1', '5'], { stdio: 'ignore' });
  } catch {
    // Only root may create a device, so the test links to one.
    await symlink('/dev/zero', at('zero'));
  }
  for (const mount of ['within', 'deny', 'follow']) {
    for (const name of names) {
      assert.equal((await ask(site.url, `/${mount}/${name}`)).status, 404, `${mount}/${name}`);
    }
    const listing = await ask(site.url, `/${mount}/`, { headers: { accept: 'application/json' } });
    const { entries } = JSON.parse(listing.text) as { entries: { name: string }[] };
    assert.deepEqual(
      entries.map(({ name }) => name),
      ['a.txt'],
    );
  }
});

/** Runs a test as a user other than root, because root may read everything. */
async function withoutRights(act: () => Promise<void>): Promise<void> {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(65_534);
  try {
    await act();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}

test('a file that the server is not allowed to read is a 403 that names no path', async (t) => {
  const site = await startSite(t, {
    ini: `${mounts}[log]\nformat = json\n`,
    files: {
      'site/open.txt': 'open',
      'site/closed.txt': secret,
      'site/closed/a.txt': secret,
      'site/closed-large.bin': Buffer.alloc(300_000),
    },
  });
  await chmod(site.folder, 0o755);
  for (const name of ['closed.txt', 'closed', 'closed-large.bin']) {
    await chmod(join(site.folder, 'site', name), 0);
  }
  await withoutRights(async () => {
    assert.equal((await ask(site.url, '/within/open.txt')).text, 'open');
    for (const path of ['closed.txt', 'closed-large.bin', 'closed/a.txt', 'closed/']) {
      const { status, text } = await ask(site.url, `/within/${path}`);
      assert.equal(status, 403, path);
      assert.ok(!text.includes(site.folder) && !text.includes(secret), path);
      const [id = ''] = /[0-9a-f-]{36}/.exec(text) ?? [];
      assert.match(site.logged(), new RegExp(`"${id}".*not allowed to read`), path);
    }
  });
  // The clean-up needs the permission.
  await chmod(join(site.folder, 'site/closed'), 0o755);
});
