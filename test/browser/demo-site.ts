import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { startWaymark, type Waymark } from '../../src/main.ts';
import { createLogs } from '../../src/core/report/log.ts';
import { cleaningAfterAll, temporaryFolder, type Cleaning } from '../folder.ts';
import { freePort } from '../free-port.ts';
import { readTestConfig } from '../harness.ts';
import { project } from '../tidy/sources.ts';

/** The demo of conf/, running from a copy on free ports. */
export interface Demo {
  /** Origin of the shop. */
  readonly url: string;
  readonly adminKey: string;
  /** The folder with conf/, as a clone of the project has it. */
  readonly folder: string;
  readonly iniFile: string;
}

/** Starts the demo before the tests of a file, or for the test `t`, and stops it after them. */
export async function startDemo(
  t: Cleaning = cleaningAfterAll(),
  receiverPort = 9099,
): Promise<Demo> {
  const folder = await temporaryFolder(t);
  await cp(join(project, 'conf'), join(folder, 'conf'), { recursive: true });
  const [shop, supplier] = [await freePort(), await freePort()];
  const iniFile = join(folder, 'conf/server.ini');
  const moved = (await readFile(iniFile, 'utf8'))
    .replace(/^SHOP_PORT = .*/m, `SHOP_PORT = ${shop}`)
    .replace(/^SUPPLIER_PORT = .*/m, `SUPPLIER_PORT = ${supplier}`);
  await writeFile(iniFile, moved);
  const records = join(folder, 'conf/demo.ndjson');
  const imported = await readFile(records, 'utf8');
  await writeFile(records, imported.replace('127.0.0.1:9099', `127.0.0.1:${receiverPort}`));
  const waymark = await start(iniFile);
  t.after(() => waymark.stop(0));
  return {
    url: `http://localhost:${shop}`,
    adminKey: waymark.firstKey ?? '',
    folder,
    iniFile,
  };
}

async function start(iniFile: string): Promise<Waymark> {
  const config = await readTestConfig(iniFile);
  const destination = new Writable({
    write(_chunk, _encoding, done) {
      done();
    },
  });
  const logs = createLogs({ settings: config.log, destination, colour: false, now: Date.now });
  return startWaymark(config, logs);
}
