import { createHash } from 'node:crypto';
import { eventLoop } from '../../../core/fair/turns.ts';
import type { Change } from '../../../core/log/change.ts';
import { type Databases, schemaVersion } from '../../../core/log/databases.ts';
import { keyOf, storedJson } from '../../../core/log/encoding.ts';
import { replaceFormerHeaders, withheldValue } from '../../../core/log/former-headers.ts';
import { type LogIdentity, identityFields, identityOf } from '../../../core/log/identity.ts';
import type { LogPart, OpenPart, Reads } from '../../../core/log/store.ts';
import { sharedFailure, sharedPlace } from '../../../core/log/shared/shared-place.ts';
import { copiedRows, putCopiedRows } from '../../../core/log/write/copied-rows.ts';
import { foldRows } from '../../../core/log/write/fold.ts';
import { putHooksStamp } from '../../../core/log/write/planned-entries.ts';
import { Failure } from '../../../core/values/failure.ts';
import { changeInDraft } from '../../drafts/draft.ts';
import {
  type HookSecret,
  hookOfSecret,
  secretRecordId,
  foldHook,
  foldSecret,
} from '../../webhooks/hook.ts';
import type { RowLog } from './outbox.ts';

/** The rows of the log for other nodes, and from them. */
export const rowLogPart: LogPart<RowLog> = { open: createRowLog };

function createRowLog({ databases, reads, queue, wake }: OpenPart): RowLog {
  const { meta, log, delivery } = databases;
  const identity = (): LogIdentity => identityOf(databases);
  const txnAt = (seq: number): string => reads.change(seq)?.txn ?? '';
  const put = (write: () => void): Promise<void> =>
    queue.write(() => () => {
      write();
      return { result: undefined, bytes: 0 };
    });

  return {
    identity,
    end() {
      const seq = reads.seq();
      return { log: identity().id, seq, txn: txnAt(seq) };
    },
    has: ({ log: id, seq, txn }) =>
      id === identity().id && seq <= reads.seq() && txnAt(seq) === txn,
    rows: (after, max) => rowsAfter(databases, reads.seq(), after, max),
    withheldRows: (hookId) => withheldRows(databases, reads, hookId),
    follow: ({ id, generation }, central) =>
      queue.write(() => {
        const { id: own, follows } = identity();
        if (sharedPlace(databases) !== undefined) throw sharedFailure();
        const isEmpty = reads.seq() === 0;
        if (!isEmpty && (follows === undefined || own !== id)) throw ownLog();
        const schema = isEmpty
          ? schemaVersion
          : Number.parseInt(meta.get(identityFields.follows) ?? '');
        return () => {
          meta.putSync(identityFields.id, id);
          meta.putSync(identityFields.generation, String(generation));
          meta.putSync(identityFields.follows, `${schema} ${central}`);
          if (isEmpty) meta.putSync(identityFields.partial, '1');
          return { result: undefined, bytes: 0 };
        };
      }),
    complete: () =>
      put(() => {
        meta.removeSync(identityFields.partial);
        // The hooks of a new node do not get earlier events.
        if (delivery.get('cursor') === undefined)
          delivery.putSync('cursor', meta.get('seq') ?? '0');
      }),
    renew: (id) =>
      put(() => {
        meta.putSync(identityFields.id, id);
        meta.removeSync(identityFields.follows);
      }),
    promote: (id) => queue.write(() => promotion(databases, identity(), id)),
    async append(texts) {
      await queue.write(() => {
        const rows = copiedRows(texts, reads.seq());
        return () => ({ result: undefined, bytes: putCopiedRows(databases, reads, rows) });
      });
      wake();
    },
    reveal: (texts) =>
      put(() => {
        const revealed = texts.flatMap((text) => revealedRow(databases, text) ?? []);
        for (const { seq, text } of revealed) log.putSync(seq, text);
        for (const { change } of revealed) putRevealed(databases, reads, change);
      }),
    digest: (upTo) => digestOf(databases, upTo),
  };
}

/** Decides whether a copy can be promoted, and returns the function that does it. */
function promotion(
  { meta }: Databases,
  { follows, generation }: LogIdentity,
  id: string,
): () => { readonly result: undefined; readonly bytes: number } {
  if (follows === undefined || follows.isPartial) {
    throw new Failure(
      'conflict',
      follows === undefined
        ? 'The data is not a copy of that of a centre: there is nothing to promote.'
        : 'The first copy of the data is not complete: promote another node.',
    );
  }
  return () => {
    meta.putSync(identityFields.id, id);
    meta.putSync(identityFields.generation, String(generation + 1));
    meta.removeSync(identityFields.follows);
    return { result: undefined, bytes: 0 };
  };
}

function ownLog(): Failure {
  return new Failure(
    'conflict',
    'The data folder has a log of its own, which a node that follows a centre would lose: ' +
      'use an empty folder.',
  );
}

function withheldRows({ log }: Databases, reads: Reads, hookId: string): readonly string[] {
  const rows = [...reads.rows('webhook', hookId), ...reads.rows('secret', secretRecordId(hookId))];
  const texts = rows.flatMap(({ seq }) => log.get(seq) ?? []);
  return texts.filter((text) => followerText(text) !== text);
}

interface RevealedRow {
  readonly seq: number;
  readonly text: string;
  readonly change: Change;
}

/** The whole text of a row that the log has as followers get it; undefined for another row. */
function revealedRow({ log }: Databases, text: string): RevealedRow | undefined {
  const change = storedJson(text) as Change;
  const { seq } = change;
  const present = log.get(seq);
  const isKnown = present === text || present !== followerText(text);
  return isKnown ? undefined : { seq, text, change };
}

/** Puts the state of a hook, or of its secret, that a revealed row changes. */
function putRevealed({ hook, hooksecret, meta }: Databases, reads: Reads, change: Change): void {
  const { family, id, seq, txn } = change;
  if (family === 'secret') {
    let secret: HookSecret | undefined;
    for (const row of reads.rows('secret', id)) secret = foldSecret(secret, row);
    putState(hooksecret, hookOfSecret(id), secret);
  } else {
    putState(hook, id, foldRows(reads.rows('webhook', id), foldHook).stored);
  }
  // Another text than that of the row itself, so that caches of hooks are read again.
  putHooksStamp(meta, { seq, txn: `${txn} revealed` });
}

function putState(database: Databases['hook'], id: string, state: object | undefined): void {
  if (state === undefined) database.removeSync(keyOf(id));
  else database.putSync(keyOf(id), JSON.stringify(state));
}

function rowsAfter(
  { log }: Databases,
  newest: number,
  after: number,
  { rows, characters }: { readonly rows: number; readonly characters: number },
): string[] {
  const found: string[] = [];
  const end = Math.min(newest, after + rows);
  for (let [seq, read] = [after + 1, 0]; seq <= end && read < characters; seq += 1) {
    const text = followerText(rowText(log, seq));
    found.push(text);
    read += text.length;
  }
  return found;
}

function rowText(log: Databases['log'], seq: number): string {
  const text = log.get(seq);
  if (text === undefined) throw new Error(`the log has no change ${seq}`);
  return text;
}

async function digestOf({ log }: Databases, upTo: number): Promise<string> {
  const hash = createHash('sha256');
  const turns = eventLoop.turns('nodes');
  for (let seq = 1; seq <= upTo; seq += 1) {
    const text = followerText(rowText(log, seq));
    hash.update(text).update('\n');
    if (turns.isOver()) await turns.next();
  }
  return hash.digest('hex');
}

const dataMember = '"data":';

/**
 * The text of a row of the log as other nodes get it (docs/design/nodes.md#what-a-follower-gets):
 * without the secret of a hook, and without the values of its header fields. The same for a text
 * that a node got so.
 */
function followerText(text: string): string {
  // The members before the data have escaped texts only, so only a member can match.
  const head = text.slice(0, text.indexOf(dataMember));
  if (head.includes('"family":"secret"')) return `${head}${dataMember}{}}`;
  if (head.includes('"family":"draftchange"')) return draftedText(text);
  if (!head.includes('"family":"webhook"')) return text;
  const change = storedJson(text) as Change;
  const data = replaceFormerHeaders(change.data, [], withheldValue);
  return data === change.data ? text : JSON.stringify({ ...change, data });
}

/** As followerText, for a change in a draft: it has the change of the record as its data. */
function draftedText(text: string): string {
  const change = storedJson(text) as Change;
  const inside = changeInDraft(change)?.change;
  if (inside?.family !== 'secret' && inside?.family !== 'webhook') return text;
  const data =
    inside.family === 'secret' ? {} : replaceFormerHeaders(inside.data, [], withheldValue);
  return JSON.stringify({ ...change, data: { ...change.data, data } });
}
