import { cp, readFile, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { after } from 'node:test';
import { startWaymark, type Waymark } from '../../src/main.ts';
import { Failure } from '../../src/model/failure.ts';
import { createLogs } from '../../src/observe/log.ts';
import { temporaryFolder } from '../folder.ts';
import { readTestConfig } from '../harness.ts';
import { startDataHost, type DataHost } from '../data-host/data-host.ts';
import { project } from '../tidy/sources.ts';

/** The demo of conf/, running from a copy on ports of its own. */
export interface Demo {
  /** Origin of the shop, and what is in front of each path of it. */
  readonly url: string;
  /** Starts the data host of the letters, as `npm run data-host` does; it stops after the test. */
  readonly openPostRoom: (t: { after(cleanup: () => unknown): void }) => Promise<DataHost>;
}

/** Starts the demo for a file, whose tests come after it; it stops after them. */
export async function startDemo(attempts = 3): Promise<Demo> {
  const folder = await temporaryFolder({ after });
  await cp(join(project, 'conf'), join(folder, 'conf'), { recursive: true });
  const [shop = 0, supplier = 0, postRoom = 0] = await freePorts(3);
  for (const name of ['server.ini', 'demo.ndjson']) {
    const file = join(folder, 'conf', name);
    const text = await readFile(file, 'utf8');
    const moved = text
      .replaceAll(':8080', `:${shop}`)
      .replaceAll(':8081', `:${supplier}`)
      .replaceAll(':8082', `:${postRoom}`);
    await writeFile(file, moved);
  }
  try {
    const waymark = await start(join(folder, 'conf/server.ini'));
    after(() => waymark.stop(0));
    return {
      url: `http://localhost:${shop}`,
      async openPostRoom(t) {
        const schema = await readFile(join(folder, 'conf/tables/letters.json'), 'utf8');
        const host = await startDataHost({
          folder: join(folder, 'letters'),
          port: postRoom,
          tables: new Map([['letters', JSON.parse(schema) as object]]),
        });
        t.after(() => host.close());
        return host;
      },
    };
  } catch (error) {
    const isTaken = error instanceof Failure && error.code === 'unavailable';
    if (!isTaken || attempts === 1) throw error;
    return startDemo(attempts - 1);
  }
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

/** Ports that were free a moment ago: the demo's files name them before it is started. */
async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  const ports: number[] = [];
  for (const server of servers) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ports.push((server.address() as AddressInfo).port);
  }
  for (const server of servers) await new Promise((resolve) => server.close(resolve));
  return ports;
}
