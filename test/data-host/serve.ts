// The data host of the demo: the tables of conf/tables, in memory, for `npm start` beside it.
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { problemText } from '../../src/config/problem.ts';
import { readConfig } from '../../src/config/read.ts';
import { startDataHost } from '../browser/data-host.ts';

const iniFile = fileURLToPath(new URL('../../conf/server.ini', import.meta.url));
const result = await readConfig({ file: iniFile, env: process.env, cores: 1, hostName: '' });
if (!result.ok) throw new Error(result.problems.map(problemText).join('\n'));
const port = Number(result.config.variables.POST_ROOM_PORT);
const schemas = fileURLToPath(new URL('../../conf/tables', import.meta.url));

const tables = new Map<string, object>();
for (const file of await readdir(schemas)) {
  const schema = JSON.parse(await readFile(join(schemas, file), 'utf8')) as object;
  tables.set(basename(file, '.json'), schema);
}
const host = await startDataHost(tables, port);
process.stdout.write(`The data host of the demo answers at ${host.url}; Ctrl-C ends it.\n`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void host.close());
}
