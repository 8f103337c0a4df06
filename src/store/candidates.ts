import type { Database } from 'lmdb';
import { Failure } from '../model/failure.ts';
import type { Candidate, RuleKind, StoredRule } from '../model/rule.ts';
import type { Databases } from './databases.ts';
import { keyBytesMax, keyOf } from './key-bytes.ts';

type CandidateDatabases = Pick<Databases, 'exact' | 'wildcard'>;

/** Where a rule stands among the candidates: a database, a key in it, and the value there. */
export interface CandidatePlace {
  readonly database: 'exact' | 'wildcard';
  readonly key: Buffer;
  readonly value: string;
}

/** id, seq, insertedSeq, kind, lang, rve, designedAtMs: what its key does not say of it. */
type Packed = readonly [
  string,
  number,
  number,
  RuleKind,
  string | null,
  number | null,
  number | null,
];

/**
 * Where a rule is found by matching (contract §4.2): as a wildcard when its path starts with `/`
 * and ends in `*`, whatever its kind; a breadcrumb's key is never one. Throws `too_large` for what
 * LMDB's keys have no room for, and `invalid` for a wildcard that is not Unicode text.
 */
export function candidatePlace({ rule, seq, insertedSeq }: StoredRule): CandidatePlace {
  const { id, origin, path, kind, lang, rve, designed_at: designedAt } = rule;
  const designedAtMs = designedAt === undefined ? NaN : Date.parse(designedAt);
  const packed: Packed = [
    id,
    seq,
    insertedSeq,
    kind,
    lang ?? null,
    rve ?? null,
    Number.isNaN(designedAtMs) ? null : designedAtMs,
  ];
  const value = JSON.stringify(packed);
  if (Buffer.byteLength(value) > keyBytesMax) throw tooLong('lang');
  if (!path.startsWith('/') || !path.endsWith('*')) {
    return { database: 'exact', key: exactKey(origin, path), value };
  }
  if (!path.isWellFormed()) {
    throw new Failure('invalid', 'path has to be Unicode text.', { field: 'path' });
  }
  const key = Buffer.from(`${origin}\0${path.slice(0, -1)}`);
  if (key.length > keyBytesMax) throw tooLong('path');
  return { database: 'wildcard', key, value };
}

/** Rules of exactly an origin and path, from the one that was inserted first. */
export function findExact(
  { exact }: CandidateDatabases,
  origin: string,
  path: string,
): readonly Candidate[] {
  const key = exactKey(origin, path);
  return exact.doesExist(key) ? candidatesAt(exact, key, origin, path) : [];
}

/**
 * Wildcard rules of an origin that cover a path, longest first: each step seeks the greatest key up
 * to a bound, which is either a prefix of the path or tells how far the next one can reach at most.
 * Never a scan.
 */
export function findWildcards(
  { wildcard }: CandidateDatabases,
  origin: string,
  path: string,
): readonly Candidate[] {
  const found: Candidate[] = [];
  const originBytes = Buffer.byteLength(origin) + 1;
  const sought = Buffer.from(`${origin}\0${path}`);
  let boundBytes = Math.min(sought.length, keyBytesMax);
  while (boundBytes > originBytes) {
    const key = greatestKey(wildcard, sought.subarray(0, boundBytes));
    if (key === undefined) break;
    const shared = sharedBytes(key, sought, boundBytes);
    const prefix = shared === key.length ? key.toString('utf8', originBytes) : undefined;
    // A path with lone surrogates shares bytes with texts that it does not start with.
    if (prefix !== undefined && shared > originBytes && path.startsWith(prefix)) {
      found.push(...candidatesAt(wildcard, key, origin, `${prefix}*`));
    }
    boundBytes = shared === boundBytes || shared === key.length ? shared - 1 : shared;
  }
  return found;
}

function greatestKey(wildcard: Database<string, Uint8Array>, upTo: Buffer): Buffer | undefined {
  for (const key of wildcard.getKeys({ start: upTo, reverse: true, limit: 1 })) {
    return Buffer.from(key.buffer, key.byteOffset, key.length);
  }
  return undefined;
}

function sharedBytes(key: Buffer, sought: Buffer, boundBytes: number): number {
  const end = Math.min(key.length, boundBytes);
  let at = 0;
  while (at < end && key[at] === sought[at]) at += 1;
  return at;
}

function candidatesAt(
  database: Database<string, Uint8Array>,
  key: Buffer,
  origin: string,
  path: string,
): readonly Candidate[] {
  const candidates: Candidate[] = [];
  for (const value of database.getValues(key)) {
    const [id, seq, insertedSeq, kind, lang, rve, designedAtMs] = JSON.parse(value) as Packed;
    candidates.push({
      id,
      seq,
      insertedSeq,
      origin,
      path,
      kind,
      lang: lang ?? undefined,
      rve: rve ?? undefined,
      designedAtMs: designedAtMs ?? undefined,
    });
  }
  return candidates;
}

function exactKey(origin: string, path: string): Buffer {
  return keyOf(`${origin}\0${path}`);
}

function tooLong(field: string): Failure {
  return new Failure('too_large', `${field} is too long.`, { field });
}
