// `npm run nats`: fetches nats-server from Debian's unstable suite, for the tests of a cluster,
// without changing the system: apt gets another root folder, with the machine's sources but another
// suite.
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fetchedServer, findNatsServer } from './nats-server.ts';

const found = findNatsServer();
if (found === undefined) await fetchServer();
process.stdout.write(`nats-server: ${findNatsServer() ?? 'not found'}\n`);

async function fetchServer(): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'waymark-nats-'));
  try {
    const source = debianSource();
    for (const folder of ['lists/partial', 'cache/archives/partial', 'sources', 'state', 'x']) {
      await mkdir(join(root, folder), { recursive: true });
    }
    await writeFile(
      join(root, 'sources/sid.sources'),
      [
        ...['Types: deb', `URIs: ${source}`, 'Suites: sid', 'Components: main'],
        'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n',
      ].join('\n'),
    );
    await writeFile(join(root, 'state/status'), '');
    const options = Object.entries({
      'Dir::State::Lists': join(root, 'lists'),
      'Dir::State::status': join(root, 'state/status'),
      'Dir::Cache': join(root, 'cache'),
      'Dir::Etc::sourcelist': '/dev/null',
      'Dir::Etc::sourceparts': join(root, 'sources'),
      'APT::Sandbox::User': 'root',
    }).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
    const run = (program: string, words: readonly string[]): void => {
      execFileSync(program, words, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
    };
    run('apt-get', [...options, 'update', '-qq']);
    run('apt-get', [...options, 'download', '-qq', 'nats-server']);
    const [archive = ''] = globSync('nats-server_*.deb', { cwd: root });
    run('dpkg', ['-x', archive, 'x']);
    const [program = ''] = globSync('x/usr/{,s}bin/nats-server', { cwd: root });
    await mkdir(dirname(fetchedServer), { recursive: true });
    // Another process may fetch it at the same time, or run it.
    const draft = `${fetchedServer}.${process.pid}`;
    await copyFile(join(root, program), draft);
    await chmod(draft, 0o755);
    await rename(draft, fetchedServer);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** The address of the packages that this machine uses. Throws an Error on another system. */
function debianSource(): string {
  const files = ['/etc/apt/sources.list.d/debian.sources', '/etc/apt/sources.list'];
  const lines = files
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, 'utf8').split('\n'));
  const sources = lines.flatMap((line) => {
    const [, inList] = /^deb (?:\[[^\]]*\] )?(\S+) /.exec(line) ?? [];
    const source = line.startsWith('URIs:') ? line.slice('URIs:'.length).trim() : inList;
    return source === undefined || source.includes('security') ? [] : [source.split(' ')[0] ?? ''];
  });
  const [source] = sources;
  if (source !== undefined) return source;
  throw new Error('This is not Debian: install nats-server 2.12 or newer, and put it into PATH.');
}
