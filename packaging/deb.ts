import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import packageJson from '../package.json' with { type: 'json' };
import { project } from './sources.ts';
import type { Target } from './targets.ts';

const run = promisify(execFile);
const compress = promisify(gzip);

/** The input and the output folder of a Debian package. */
interface DebParts {
  readonly executable: string;
  /** The folder that `bundle` has written. */
  readonly bundled: string;
  readonly work: string;
  /** The folder of the finished packages. */
  readonly output: string;
}

/** Builds the Debian package of a target around its single executable. */
export async function buildDeb(target: Target, parts: DebParts): Promise<void> {
  const root = join(parts.work, `deb-${target.arch}`);
  await rm(root, { recursive: true, force: true });
  const put = async (path: string, content: string | Uint8Array, mode = 0o644): Promise<void> => {
    await mkdir(dirname(join(root, path)), { recursive: true, mode: 0o755 });
    await writeFile(join(root, path), content);
    await chmod(join(root, path), mode);
  };
  await putFiles(put, parts);
  await copyFile(parts.executable, await placeIn(root, 'usr/bin/waymark'));
  await chmod(join(root, 'usr/bin/waymark'), 0o755);
  await putControl(put, root, target);
  const name = `waymark_${packageJson.version}_${target.debian}.deb`;
  const words = ['--root-owner-group', '-Zzstd', '-z9', '--build', root, join(parts.output, name)];
  await run('dpkg-deb', words);
}

type Put = (path: string, content: string | Uint8Array, mode?: number) => Promise<void>;

async function placeIn(root: string, path: string): Promise<string> {
  await mkdir(dirname(join(root, path)), { recursive: true, mode: 0o755 });
  return join(root, path);
}

/** Files for programs that read the access log or the metrics. */
const forOtherPrograms = [
  'fail2ban/filter.conf',
  'fail2ban/jail.conf',
  'prometheus/alerts.yml',
  'prometheus/alerts.test.yml',
  'grafana/waymark.json',
];

/** Everything but the executable and the control files. */
async function putFiles(put: Put, { bundled }: DebParts): Promise<void> {
  const source = (name: string) => readFile(join(project, name));
  const unit = (name: string) => source(`packaging/debian/${name}`);
  for (const name of ['waymark.service', 'waymark.socket']) {
    await put(`usr/lib/systemd/system/${name}`, await unit(name));
  }
  await put('etc/waymark/server.ini', await unit('server.ini'));
  await put('usr/share/doc/waymark/server.ini', await source('conf/server.ini'));
  for (const name of forOtherPrograms) {
    await put(`usr/share/doc/waymark/${name}`, await source(`packaging/${name}`));
  }
  const licence = await readFile(join(project, 'LICENSE'), 'utf8');
  const others = await readFile(join(bundled, 'LICENSES'), 'utf8');
  const parts = `Waymark\n\n${licence}\nThe packages that it contains\n\n${others}`;
  await put('usr/share/doc/waymark/copyright', parts);
  await put('usr/share/doc/waymark/changelog.gz', await compress(await source('CHANGELOG.md')));
  await put('usr/share/man/man1/waymark.1.gz', await compress(await waymark('manual')));
  const completions = 'usr/share';
  await put(
    `${completions}/bash-completion/completions/waymark`,
    await waymark('completion', 'bash'),
  );
  await put(`${completions}/zsh/vendor-completions/_waymark`, await waymark('completion', 'zsh'));
  await put(
    `${completions}/fish/vendor_completions.d/waymark.fish`,
    await waymark('completion', 'fish'),
  );
}

/** The output of a command that prints the same on every machine, such as `completion`. */
async function waymark(...words: readonly string[]): Promise<string> {
  const program = join(project, 'bin/waymark.js');
  return (await run(process.execPath, [program, ...words], { maxBuffer: 16 << 20 })).stdout;
}

async function putControl(put: Put, root: string, { debian }: Target): Promise<void> {
  const paths = await filesBelow(root);
  const sizes = await Promise.all(paths.map((path) => stat(join(root, path))));
  const kibibytes = Math.ceil(sizes.reduce((sum, { size }) => sum + size, 0) / 1024);
  const sums = paths.map(async (path) => {
    const hash = createHash('md5').update(await readFile(join(root, path)));
    return `${hash.digest('hex')}  ${path}\n`;
  });
  await put('DEBIAN/md5sums', (await Promise.all(sums)).join(''));
  await put('DEBIAN/conffiles', '/etc/waymark/server.ini\n');
  await put(
    'DEBIAN/control',
    `Package: waymark
Version: ${packageJson.version}
Section: httpd
Priority: optional
Architecture: ${debian}
Installed-Size: ${kibibytes}
Depends: libc6 (>= 2.28), libstdc++6 (>= 8), libgcc-s1, libatomic1, passwd
Maintainer: The maintainers of Waymark <waymark@localhost>
Description: web server with page rules, breadcrumbs and webhooks
 Serves files of the disk, page rules of a database and content of other servers on
 one port. It keeps the whole history of every page rule.
`,
  );
  for (const name of ['postinst', 'prerm', 'postrm']) {
    await put(`DEBIAN/${name}`, await readFile(join(project, 'packaging/debian', name)), 0o755);
  }
}

async function filesBelow(root: string): Promise<readonly string[]> {
  const found = await readdir(root, { recursive: true, withFileTypes: true });
  return found
    .filter((file) => file.isFile())
    .map((file) => relative(root, join(file.parentPath, file.name)))
    .sort();
}
