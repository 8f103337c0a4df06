import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { project } from '../../tidy/sources.ts';

/** Where `npm run nats` puts the server. */
export const fetchedServer = join(project, 'test/modules/cluster/.nats/nats-server');

/** Why tests that need nats-server are skipped, and what to do. */
export const noServer =
  'nats-server 2.12 or newer is not here: put it into PATH, name it by NATS_SERVER, or fetch it ' +
  'on Debian by `npm run nats`';

/**
 * The path of nats-server 2.12 or newer: what NATS_SERVER names, the first one in PATH that is new
 * enough, or the fetched one; undefined if there is none.
 */
export function findNatsServer(): string | undefined {
  const { NATS_SERVER: named, PATH: path = '' } = process.env;
  const inPath = path.split(delimiter).map((folder) => join(folder, 'nats-server'));
  const places = named === undefined || named === '' ? [...inPath, fetchedServer] : [named];
  return places.find((file) => isExecutable(file) && isNew(file));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isNew(file: string): boolean {
  const text = execFileSync(file, ['--version'], { encoding: 'utf8' });
  const [, major = '0', minor = '0'] = /v(\d+)\.(\d+)\./.exec(text) ?? [];
  return Number(major) > 2 || (major === '2' && Number(minor) >= 12);
}
