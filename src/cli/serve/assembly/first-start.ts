import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { newId, now } from '../../../core/values/clock.ts';
import { engineNames } from './operations.ts';
import type { Config } from '../../../core/config/config.ts';
import { substituteInJson } from '../../../core/config/variables.ts';
import { Failure } from '../../../core/values/failure.ts';
import { refusalsKeptMax } from '../../../modules/transfer/limits.ts';
import type { Logs } from '../../../core/report/log.ts';
import type { Store } from '../../../core/log/store.ts';
import { configuredTablesAuthor } from '../../../modules/tables/operations/configured-tables.ts';
import { importRecords } from '../../../modules/transfer/import.ts';
import { addFirstKey } from '../../../modules/keys/keys.ts';
import { createSecret } from '../../../modules/webhooks/sign.ts';

/** Imports the file of `[server] import` into an empty data folder. */
export async function importOnce(store: Store, config: Config, logs: Logs): Promise<void> {
  const file = config.server.import;
  if (file === undefined || !hasOnlyTables(store)) return;
  const text = substituteInJson(await readFile(file, 'latin1'), config.variables);
  const bytes = Buffer.from(text, 'latin1');
  try {
    const newSecret = () => createSecret(randomBytes);
    const parts = { store, newId, newSecret, engines: engineNames(config) };
    const { imported, kept } = await importRecords(parts, bytes);
    const what = imported === 1 ? 'one page rule or hook' : `${imported} page rules and hooks`;
    logs.log.info({}, `Imported ${what} into the empty data folder.`);
    for (const { line, problems } of kept.slice(0, refusalsKeptMax)) {
      for (const { message } of problems) logs.log.warn({ file, line }, message);
    }
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'invalid') throw error;
    throw new Failure('invalid', `Cannot import ${file}; nothing was imported: ${error.message}`);
  }
}

/** Whether a log has nothing but the tables of the ini file. */
function hasOnlyTables(store: Store): boolean {
  for (let seq = 1; seq <= store.seq(); seq += 1) {
    if (store.change(seq)?.by !== configuredTablesAuthor) return false;
  }
  return true;
}

/** Creates an admin key in a data folder without keys; resolves to undefined if there is a key. */
export function makeFirstKey(store: Store): Promise<string | undefined> {
  const parts = { store, newId, randomBytes, now };
  return addFirstKey(parts, { name: 'admin', scopes: ['admin'], by: 'serve' });
}
