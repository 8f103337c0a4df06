import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { temporaryFolder } from '../../test/folder.ts';
import { project } from '../sources.ts';
import { built, version } from './built.ts';

const run = promisify(execFile);

const needsRoot = {
  skip:
    spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status !== 0 &&
    'needs root and namespaces',
};

suite('the Debian package', () => {
  test('has its files, a conffile, and a manual page', async () => {
    for (const arch of ['amd64', 'arm64']) {
      const deb = built(`waymark_${version}_${arch}.deb`);
      const { stdout } = await run('dpkg-deb', ['--contents', deb], { maxBuffer: 16 << 20 });
      for (const path of [
        './usr/bin/waymark',
        './usr/lib/systemd/system/waymark.service',
        './usr/lib/systemd/system/waymark.socket',
        './etc/waymark/server.ini',
        './usr/share/man/man1/waymark.1.gz',
        './usr/share/bash-completion/completions/waymark',
        './usr/share/zsh/vendor-completions/_waymark',
        './usr/share/fish/vendor_completions.d/waymark.fish',
        './usr/share/doc/waymark/copyright',
      ]) {
        assert.ok(stdout.includes(` ${path}\n`), path);
      }
      assert.ok(!/^\S+ (?!root\/root)/m.test(stdout), 'everything belongs to root');
      const { stdout: control } = await run('dpkg-deb', ['--field', deb]);
      assert.match(control, new RegExp(`Version: ${version}\n`));
      assert.match(control, new RegExp(`Architecture: ${arch}\n`));
    }
  });

  test('is installed, upgraded, removed and purged in a root of its own', needsRoot, async (t) => {
    const folder = await temporaryFolder(t);
    const script = join(project, 'packaging/test/scratch-root.sh');
    const deb = built(`waymark_${version}_amd64.deb`);
    const words = ['--mount', '--pid', '--fork', 'bash', script, deb, folder];
    const { stdout } = await run('unshare', words, { maxBuffer: 16 << 20 });
    assert.deepEqual(
      stdout.split('\n').filter((line) => line.startsWith('ok ')),
      ['ok install', 'ok serve', 'ok upgrade', 'ok remove', 'ok purge'],
      stdout,
    );
  });
});

suite('the unit of systemd', () => {
  const has = spawnSync('systemd-analyze', ['--version']).status === 0;

  test('has an exposure of at most 2.5', { skip: !has && 'needs systemd' }, async () => {
    const unit = join(project, 'packaging/debian/waymark.service');
    const { stdout } = await run('systemd-analyze', [
      'security',
      '--offline=true',
      '--no-pager',
      unit,
    ]);
    const [, level] = /exposure level for .*: ([\d.]+)/.exec(stdout) ?? [];
    assert.ok(Number(level) <= 2.5, stdout);
  });
});
