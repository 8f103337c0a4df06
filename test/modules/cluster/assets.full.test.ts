import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { temporaryFolder, writeFiles, type Cleaning } from '../../folder.ts';
import { postOperation } from '../../harness.ts';
import { runWaymark, startServed, type Served } from '../../process.ts';
import { startNats, until, type NatsServer } from './nats.ts';
import { needsNats } from './rig.ts';

/** A machine of a cluster, and its folder. */
interface Machine {
  readonly folder: string;
  readonly iniFile: string;
  served: Served;
}

async function machine(
  t: Cleaning,
  nats: readonly NatsServer[],
  { name, folder }: { readonly name: string; readonly folder?: string },
): Promise<Omit<Machine, 'served'>> {
  const at = folder ?? (await temporaryFolder(t));
  const servers = nats.map(({ url }) => url).join(', ');
  const ini =
    `[server]\nlisten = 127.0.0.1:0\ndata = data\n[log]\naccess = no\n` +
    `[node]\nrole = central\nname = ${name}\n[cluster]\nservers = ${servers}\n`;
  await writeFiles(at, { 'server.ini': ini });
  return { folder: at, iniFile: join(at, 'server.ini') };
}

async function start(t: Cleaning, one: Omit<Machine, 'served'>): Promise<Machine> {
  const env = { XDG_DATA_HOME: one.folder };
  return { ...one, served: await startServed(t, one.iniFile, { first: false, env }) };
}

const kill = async ({ served: { child, closed } }: Machine, signal: NodeJS.Signals) => {
  child.kill(signal);
  await closed;
};

const digest = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

async function put(at: Machine, apikey: string, name: string, content: Buffer): Promise<void> {
  const url = `${at.served.url}/svc1/asset/${name}`;
  const body = new Uint8Array(content);
  const reply = await fetch(url, { method: 'PUT', body, headers: { apikey } });
  assert.equal(reply.status, 200, await reply.text());
}

/** The file of an asset at a machine, once that has the row. */
const read = (at: Machine, apikey: string, name: string): Promise<Buffer> =>
  until(async () => {
    const url = `${at.served.url}/svc1/asset/${name}`;
    const reply = await fetch(url, { headers: { apikey } });
    assert.equal(reply.status, 200);
    return Buffer.from(await reply.arrayBuffer());
  });

const filesOf = async ({ folder }: Pick<Machine, 'folder'>): Promise<readonly string[]> =>
  (await readdir(join(folder, 'data/assets'))).filter((name) => !name.startsWith('.')).sort();

const hasFiles = (at: Machine, contents: readonly Buffer[]): Promise<void> =>
  until(async () => {
    assert.deepEqual(await filesOf(at), contents.map(digest).sort());
  });

suite('the files of assets in a cluster', needsNats, () => {
  test('are at all machines, and none that was acknowledged is lost', async (t) => {
    const nats = await startNats(t, { servers: 3 });
    // A machine that has a file before it becomes the first of the cluster.
    const first = await machine(t, [], { name: 'a' });
    await writeFile(
      first.iniFile,
      '[server]\nlisten = 127.0.0.1:0\ndata = data\n[node]\nrole = central\nname = a\n',
    );
    const env = { XDG_DATA_HOME: first.folder };
    const alone = { ...first, served: await startServed(t, first.iniFile, { env }) };
    const { adminKey: apikey } = alone.served;
    const early = randomBytes(700_000);
    await put(alone, apikey, 'early.bin', early);
    await kill(alone, 'SIGTERM');
    await machine(t, nats, { name: 'a', folder: first.folder });
    await until(async () => {
      const made = await runWaymark(['cluster', 'init', '--config', first.iniFile]);
      assert.equal(made.code, 0, made.err);
    });
    const a = await start(t, first);
    const b = await start(t, await machine(t, nats, { name: 'b' }));
    const c = await start(t, await machine(t, nats, { name: 'c' }));
    assert.deepEqual(await read(c, apikey, 'early.bin'), early);

    // b takes uploads, and is lost with its disk as soon as it has acknowledged the last one.
    const [large, empty, last] = [randomBytes(3_000_000), Buffer.alloc(0), randomBytes(600_000)];
    await put(b, apikey, 'large.bin', large);
    await put(b, apikey, 'empty.bin', empty);
    assert.deepEqual(await read(a, apikey, 'large.bin'), large);
    assert.deepEqual(await read(c, apikey, 'empty.bin'), empty);
    const page = { origin: '*', path: '/last', kind: 'content', asset: 'last.bin' };
    await put(b, apikey, 'last.bin', last);
    await kill(b, 'SIGKILL');
    await rm(b.folder, { recursive: true });
    const { error } = await postOperation(c.served.url, 'svc1.userinterface.insert', page, {
      apikey,
    });
    assert.equal(error, undefined);
    const shown = await until(async () => {
      const reply = await fetch(`${a.served.url}/last`);
      assert.equal(reply.status, 200);
      return Buffer.from(await reply.arrayBuffer());
    });
    assert.deepEqual(shown, last);
    const all = [early, large, empty, last];
    await hasFiles(a, all);
    await hasFiles(c, all);

    // Neither are they lost with a server of NATS, nor missing at a machine that is new.
    const [killed = assert.fail()] = nats;
    await killed.kill();
    const late = randomBytes(1_200_000);
    await put(a, apikey, 'late.bin', late);
    const d = await start(t, await machine(t, nats, { name: 'd' }));
    assert.deepEqual(await read(d, apikey, 'late.bin'), late);
    await hasFiles(d, [...all, late]);
    const { data: status } = await postOperation(
      d.served.url,
      'svc1.server.status',
      {},
      { apikey },
    );
    const { files } = status?.node.cluster ?? assert.fail();
    assert.deepEqual([files.stream, files.copies, files.log_copies], ['waymark-files', 3, 3]);
    assert.equal(files.servers.length, 3);
    assert.match(files.problem, new RegExp(`Not all servers have all files: .*${killed.name}`));
    // A file that is damaged or gone is fetched for the request that needs it.
    await writeFile(join(d.folder, 'data/assets', digest(large)), 'short');
    await rm(join(d.folder, 'data/assets', digest(last)));
    assert.deepEqual(await read(d, apikey, 'large.bin'), large);
    assert.deepEqual(await read(d, apikey, 'last.bin'), last);
    await hasFiles(a, [...all, late]);
    await hasFiles(c, [...all, late]);
    for (const one of [a, c, d]) {
      await kill(one, 'SIGTERM');
      const checked = await runWaymark(['check', '--data', '--config', one.iniFile]);
      assert.equal(checked.code, 0, checked.out + checked.err);
      assert.match(checked.err, /Files of assets: 5 whole\./);
    }
  });
});
