import type { Database } from 'lmdb';
import type { Databases } from '../../../core/log/databases.ts';
import { identityFields } from '../../../core/log/identity.ts';
import type { SharedPut } from '../../../core/log/shared/entry.ts';
import { isTaskKey } from './task-turn.ts';

/** The databases of the deliverer of hooks, which all nodes of a cluster share. */
const recordedNames = [
  'delivery',
  'lane',
  'pending',
  'attempt',
  'due',
  'exhausted',
  'job',
] as const;

type RecordedName = (typeof recordedNames)[number] | 'meta';

/** Databases that also record each put into those of the deliverer. */
export function recordingDatabases(databases: Databases): {
  readonly databases: Databases;
  readonly puts: readonly SharedPut[];
} {
  const puts: SharedPut[] = [];
  const recording = recordedNames.map((name) => {
    const database = databases[name] as Database<string>;
    return [name, recordingDatabase(database, name, puts)] as const;
  });
  return { databases: { ...databases, ...Object.fromEntries(recording) }, puts };
}

/** Does puts that another node has recorded. The caller runs it in a write transaction. */
export function putRecorded(databases: Databases, puts: readonly SharedPut[]): void {
  for (const [name, key, value] of puts) {
    const database = databases[name as RecordedName] as Database<string>;
    const stored = isOfBytes(name) ? Buffer.from(String(key), 'hex') : key;
    if (value === null) database.removeSync(stored);
    else database.putSync(stored, value);
  }
}

/**
 * The puts that all nodes get besides the log: the generation of the log, and the databases of the
 * deliverer without the nodes that have tasks.
 */
export function* allPuts(databases: Databases): Iterable<SharedPut> {
  const generation = databases.meta.get(identityFields.generation);
  if (generation !== undefined) yield ['meta', identityFields.generation, generation];
  for (const name of recordedNames) {
    const database = databases[name] as Database<string>;
    for (const { key, value } of database.getRange()) {
      if (name === 'delivery' && isTaskKey(String(key))) continue;
      yield [name, sharedKey(name, key), value];
    }
  }
}

function recordingDatabase(
  database: Database<string>,
  name: RecordedName,
  puts: SharedPut[],
): Database<string> {
  return new Proxy(database, {
    get(target, member) {
      if (member === 'putSync') {
        return (key: Uint8Array | string | number, value: string) => {
          puts.push([name, sharedKey(name, key), value]);
          target.putSync(key, value);
        };
      }
      if (member === 'removeSync') {
        return (key: Uint8Array | string | number) => {
          puts.push([name, sharedKey(name, key), null]);
          target.removeSync(key);
        };
      }
      const value: unknown = Reflect.get(target, member);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

function sharedKey(name: string, key: unknown): string | number {
  if (isOfBytes(name)) return Buffer.from(key as Uint8Array).toString('hex');
  return key as string | number;
}

/** Databases with binary keys. */
function isOfBytes(name: string): boolean {
  return name !== 'meta' && name !== 'delivery' && name !== 'lane' && name !== 'job';
}
