import type { Database, RootDatabase } from 'lmdb';
import { openShared } from './environment.ts';
import { silenceDiskFullErrors } from './folder/full-disk.ts';

/** Version of the layout below. A data folder with a newer version is refused. */
export const schemaVersion = 11;

/** Older versions that this one can open: opening a folder adds the missing databases. */
export const extensibleVersions: readonly number[] = [3, 4, 5, 6, 7, 8, 9, 10];

/** The value of `application` in `meta` in a data folder of Waymark. */
export const applicationMark = 'waymark';

/**
 * The databases of a data folder. Values are JSON texts, which give back exactly what was put in:
 * MessagePack as lmdb uses it changes `__proto__` members and lone surrogates. Keys are bytes.
 */
export interface Databases {
  readonly environment: RootDatabase;
  /**
   * `application` and `schema`; `log` and `follows`, the identity of the log (identity.ts); for
   * quick reads, the seq of the newest change (`seq`), and seq and transaction of the newest
   * change of any hook or secret (`hooks`); the last use of each key (key-uses.ts); `login …`, the
   * sessions of visitors (stored-sessions.ts). At a node with a centre also `link`, the places of
   * the outbox, and `sessions` (local-sessions.ts).
   */
  readonly meta: Database<string>;
  /** seq → Change. */
  readonly log: Database<string, number>;
  /** Record and seq → nothing; the log holds the rows. */
  readonly history: Database<string, Uint8Array>;
  /** Seq of a row that does not count → seq of the row that invalidated it. */
  readonly mark: Database<string, number>;
  /** Id of a transaction → seqs of its first and last row. */
  readonly txn: Database<string, Uint8Array>;
  /** Id → StoredRule. */
  readonly rule: Database<string, Uint8Array>;
  /** Origin NUL path → candidates, sorted values under one key: see index-entries.ts. */
  readonly exact: Database<string, Uint8Array>;
  /** Origin NUL path without its `*` → candidates, as in `exact`. */
  readonly wildcard: Database<string, Uint8Array>;
  /** The keys of `exact` → ids of all records that were ever indexed there. */
  readonly everexact: Database<string, Uint8Array>;
  /** The keys of `wildcard` → ids of all records that were ever indexed there. */
  readonly everwildcard: Database<string, Uint8Array>;
  /** Moment, `from` or `until`, and id of a rule → nothing: see rule-lookups.ts. */
  readonly ruletime: Database<string, Uint8Array>;
  /** Name of an asset and id of a rule → nothing: see rule-lookups.ts. */
  readonly ruleasset: Database<string, Uint8Array>;
  /** Access section of a rule, NUL and its id → nothing: see rule-access.ts. */
  readonly ruleaccess: Database<string, Uint8Array>;
  /** vk → seq of the change that claimed it, and hash of the request: see claims.ts. */
  readonly vk: Database<string, Uint8Array>;
  /** Id → Key. */
  readonly key: Database<string, Uint8Array>;
  /** Hash of a key → its id. */
  readonly keyhash: Database<string, Uint8Array>;
  /** Id → StoredHook. */
  readonly hook: Database<string, Uint8Array>;
  /** Event type, or `*` → ids of the hooks that subscribe to it, sorted values under one key. */
  readonly hooktype: Database<string, Uint8Array>;
  /** Id of a hook → HookSecret. */
  readonly hooksecret: Database<string, Uint8Array>;
  /** Id → StoredTable. */
  readonly table: Database<string, Uint8Array>;
  /** Name of a table → id, seq and transaction of its newest change. */
  readonly tablename: Database<string, Uint8Array>;
  /** Name → ids of all tables that ever had it, sorted values under one key. */
  readonly evertablename: Database<string, Uint8Array>;
  /** Id → StoredRow. */
  readonly row: Database<string, Uint8Array>;
  /** Table and id of a row that exists → nothing: see index-key.ts. */
  readonly tablerow: Database<string, Uint8Array>;
  /** Table and id of each row that was invalidated, also if it exists again → nothing. */
  readonly evertablerow: Database<string, Uint8Array>;
  /** Table and key, in the order of the keys → id of the row. */
  readonly rowkey: Database<string, Uint8Array>;
  /** Table and key → ids of the rows that no longer have it, sorted values under one key. */
  readonly everrowkey: Database<string, Uint8Array>;
  /** Table, field, value in the order of the values, and id of a row → nothing. */
  readonly rowindex: Database<string, Uint8Array>;
  /** Table, word and id of a row → how often the row has it, and how many words it has. */
  readonly rowword: Database<string, Uint8Array>;
  /** Table → TableCounts. */
  readonly tablecount: Database<string, Uint8Array>;
  /** Table and index → IndexBuild, while the index is not complete. */
  readonly indexbuild: Database<string, Uint8Array>;
  /** Id → SiteDraft. */
  readonly draft: Database<string, Uint8Array>;
  /** State and id of a draft → nothing: see drafts-reads.ts. */
  readonly draftstate: Database<string, Uint8Array>;
  /** Name → id of the latest draft that has it. */
  readonly draftname: Database<string, Uint8Array>;
  /** Draft, database and key → what the draft changes there: see draft-entries.ts. */
  readonly draftentry: Database<string, Uint8Array>;
  /** Draft, family and id → DraftedRecord: what a draft changes of a record. */
  readonly draftrecord: Database<string, Uint8Array>;
  /** Id of a record and draft → nothing: the drafts that change a record. */
  readonly drafttouch: Database<string, Uint8Array>;
  /**
   * State of the deliverer: `writer`, `cursor`, `settled`, `clock`, `outages` (delivery-log.ts). In
   * a cluster, also the node that has a task (task-turn.ts), and the values of shared-values.ts.
   */
  readonly delivery: Database<string, string>;
  /** Hook → n of the newest event in its queue. */
  readonly lane: Database<string, number>;
  /** Hook and n → seq of an event without a recorded attempt: see delivery-log.ts. */
  readonly pending: Database<string, Uint8Array>;
  /** Hook, n and attempt → AttemptRecord. */
  readonly attempt: Database<string, Uint8Array>;
  /** Hook, time and n → nothing: messages that are due at that time. */
  readonly due: Database<string, Uint8Array>;
  /** Hook and n → nothing: messages that were given up. */
  readonly exhausted: Database<string, Uint8Array>;
  /** Seq of a replay → the rest of its range. */
  readonly job: Database<string, number>;
  /** Name of a node that follows this one → NodeState. */
  readonly node: Database<string, Uint8Array>;
  /** n → OutboxEntry: writes that this node took for its centre. */
  readonly outbox: Database<string, number>;
  /** vk → n of the entry that claimed it, and hash of the request: see claims.ts. */
  readonly outboxvk: Database<string, Uint8Array>;
}

/**
 * The return value of lmdb's `putSync`, which its types lack: false if the entry was not put, with
 * `append` because its key is not the last, with `noOverwrite` because its key exists.
 */
export interface ConditionalPut<K> {
  putSync(
    key: K,
    value: string,
    options: { readonly append: true } | { readonly noOverwrite: true },
  ): boolean;
}

/**
 * Puts an entry that is usually the last of its database: appending fills pages completely and
 * needs no search.
 */
export function putLast<K extends number | Uint8Array>(
  database: Database<string, K>,
  key: K,
  value: string,
): void {
  const conditional = database as unknown as ConditionalPut<K>;
  if (!conditional.putSync(key, value, append)) database.putSync(key, value);
}

const append = { append: true } as const;

/**
 * The options of the environment.
 * - `overlappingSync` off: a change is on the disk before a reader sees it, so a crash cannot lose
 *   a change that an answer was made from; a failing sync fails the commit.
 * - `eventTurnBatching` off: with it, a failing commit leaves a rejected promise without a handler,
 *   which ends the process.
 * - `mapSize` is address space only; lmdb doubles it when it is used up.
 * - `maxFreeSpaceToLoad` and `maxFreeSpaceToRetain`: entries of the list of free pages in memory.
 *   Each commit writes and checks all of these again, which with lmdb's defaults (50,000 and
 *   75,000) takes 20 ms after a large transaction. lmdb uses the pages that were freed last first;
 *   the other entries stay on the disk until lmdb needs them.
 */
export const environmentOptions = {
  noSubdir: false,
  maxDbs: 64,
  overlappingSync: false,
  eventTurnBatching: false,
  mapSize: 2 ** 30,
  permissionsMode: 0o600,
  maxFreeSpaceToLoad: 500,
  maxFreeSpaceToRetain: 1_000,
  encoding: 'string',
} as const;

/** Opens the LMDB environment of a folder. Throws what openShared throws. */
export function openEnvironment(
  folder: string,
  {
    readOnly = false,
    mapSize = environmentOptions.mapSize,
  }: { readonly readOnly?: boolean; readonly mapSize?: number } = {},
): RootDatabase {
  silenceDiskFullErrors();
  return openShared({ path: folder, ...environmentOptions, readOnly, mapSize });
}

/** Opens all databases and creates missing ones. The caller runs it in a transaction. */
export function openDatabases(environment: RootDatabase): Databases {
  const named = (name: string, dupSort = false): Database<string, Uint8Array> =>
    environment.openDB<string, Uint8Array>(name, {
      encoding: 'string',
      keyEncoding: 'binary',
      dupSort,
    });
  return {
    environment,
    meta: environment.openDB<string, string>('meta', { encoding: 'string' }),
    log: environment.openDB<string, number>('log', { encoding: 'string', keyEncoding: 'uint32' }),
    history: named('history'),
    mark: environment.openDB<string, number>('mark', {
      encoding: 'string',
      keyEncoding: 'uint32',
    }),
    txn: named('txn'),
    rule: named('rule'),
    exact: named('exact', true),
    wildcard: named('wildcard', true),
    everexact: named('everexact', true),
    everwildcard: named('everwildcard', true),
    ruletime: named('ruletime'),
    ruleasset: named('ruleasset'),
    ruleaccess: named('ruleaccess'),
    vk: named('vk'),
    key: named('key'),
    keyhash: named('keyhash'),
    hook: named('hook'),
    hooktype: named('hooktype', true),
    hooksecret: named('hooksecret'),
    table: named('table'),
    tablename: named('tablename'),
    evertablename: named('evertablename', true),
    row: named('row'),
    tablerow: named('tablerow'),
    evertablerow: named('evertablerow'),
    rowkey: named('rowkey'),
    everrowkey: named('everrowkey', true),
    rowindex: named('rowindex'),
    rowword: named('rowword'),
    tablecount: named('tablecount'),
    indexbuild: named('indexbuild'),
    draft: named('draft'),
    draftstate: named('draftstate'),
    draftname: named('draftname'),
    draftentry: named('draftentry'),
    draftrecord: named('draftrecord'),
    drafttouch: named('drafttouch'),
    delivery: environment.openDB<string, string>('delivery', { encoding: 'string' }),
    lane: environment.openDB<string, number>('lane', {
      encoding: 'string',
      keyEncoding: 'uint32',
    }),
    pending: named('pending'),
    attempt: named('attempt'),
    due: named('due'),
    exhausted: named('exhausted'),
    job: environment.openDB<string, number>('job', { encoding: 'string', keyEncoding: 'uint32' }),
    node: named('node'),
    outbox: environment.openDB<string, number>('outbox', {
      encoding: 'string',
      keyEncoding: 'uint32',
    }),
    outboxvk: named('outboxvk'),
  };
}
