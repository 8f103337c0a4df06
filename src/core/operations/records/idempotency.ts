import { hash } from 'node:crypto';
import { type ToolUse, authorVia } from '../../log/change.ts';
import type {
  Decision,
  LoggedDraft,
  Reads,
  Store,
  StoredVkClaim,
  VkClaim,
} from '../../log/store.ts';
import { Failure } from '../../values/failure.ts';
import { type Json, type JsonObject, canonicalJson, isNested } from '../../values/json/json.ts';
import { type Call, type OperationResult, authorOf } from '../operation.ts';

const namedMax = 10;

/** The hashes of a request in canonical form: equal requests have equal hashes. */
export interface RequestHashes {
  /** Lower-case hex SHA-256 of the operation (`<family>.<operation>`) and its input. */
  readonly requestHash: string;
  /** The hashes that earlier versions stored for the same request, where they were others. */
  readonly formerHashes: readonly string[];
}

/** Waymark 0.1 hashed requests for page rules with the operation alone: `insert`. */
const formerPrefix = 'userinterface.';

/** Hashes the name of an operation (`<family>.<operation>`) and its input. */
export function hashRequest(name: string, ...input: readonly Json[]): RequestHashes {
  const rest = canonicalOf(input).slice(1);
  const hashOf = (one: string): string => hash('sha256', `[${JSON.stringify(one)},${rest}`);
  const isRule = name.startsWith(formerPrefix);
  const formerHashes = isRule ? [hashOf(name.slice(formerPrefix.length))] : [];
  return { requestHash: hashOf(name), formerHashes };
}

/** Only Unicode text and numbers that JSON can write have a canonical form (RFC 8785 §3.2). */
function canonicalOf(input: readonly Json[]): string {
  try {
    return canonicalJson(input);
  } catch (error) {
    const field = pathWithoutForm(input).slice(0, 200).toWellFormed();
    throw new Failure(
      'invalid',
      `${field === '' ? 'The request' : field} has a text that is not Unicode (half a surrogate ` +
        'pair), or a number that is too large. Send well-formed text and finite numbers.',
      { cause: error, ...(field !== '' && { field }) },
    );
  }
}

/** The path of a member of a request that has no canonical form; empty if all have one. */
function pathWithoutForm(inputs: readonly Json[]): string {
  const waiting: { readonly path: string; readonly value: Json }[] = inputs.map((value) => ({
    path: '',
    value,
  }));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path, value } = next;
    if (typeof value === 'string' && !value.isWellFormed()) return path;
    if (typeof value === 'number' && !Number.isFinite(value)) return path;
    if (!isNested(value)) continue;
    for (const [name, one] of Object.entries(value)) {
      const inner = path === '' ? name : `${path}.${name}`;
      if (!name.isWellFormed()) return inner;
      waiting.push({ path: inner, value: one });
    }
  }
  return '';
}

/** A request with its vk and its author. */
export interface KeyedRequest extends RequestHashes {
  readonly vk: string;
  readonly by: string;
}

const derivedPrefix = 'fields:';

/** The vk that the server derives from the fields of a request. */
export function derivedVk({ requestHash }: Pick<RequestHashes, 'requestHash'>): string {
  return derivedPrefix + requestHash;
}

/** Whether the server derives the vk of a call, or has done so in an earlier answer. */
export function hasDerivedVk({ vk }: Pick<Call, 'vk'>): boolean {
  return vk === undefined || vk.startsWith(derivedPrefix);
}

/** The derived vks of a request, the current one first. */
function derivedVks({ requestHash, formerHashes }: RequestHashes): readonly string[] {
  return [requestHash, ...formerHashes].map((one) => derivedVk({ requestHash: one }));
}

/**
 * The name under which the store remembers a vk: each API key has vks of its own, and all API keys
 * share a derived one (docs/design/history.md#idempotency-and-concurrency).
 */
export function claimName(request: KeyedRequest): string {
  const { by, vk } = request;
  return derivedVks(request).includes(vk) ? vk : `${by}\n${vk}`;
}

/** The earlier request of an author with a vk; undefined if there was none. */
export function findClaim(
  reads: Pick<Reads, 'vkClaim'>,
  request: KeyedRequest,
): StoredVkClaim | undefined {
  const { by, vk } = request;
  const derived = derivedVks(request);
  const names = derived.includes(vk) ? derived : [claimName(request)];
  for (const name of names) {
    const claim = reads.vkClaim(name);
    if (claim !== undefined) return claim;
  }
  // Waymark 0.1 stored a vk without its author.
  const unnamed = reads.vkClaim(vk);
  return unnamed?.by === by ? unnamed : undefined;
}

/** Whether a claim was made by the same request, as this or an earlier version hashes it. */
export function isSameRequest(
  claim: Pick<VkClaim, 'requestHash'>,
  { requestHash, formerHashes }: RequestHashes,
): boolean {
  return claim.requestHash === requestHash || formerHashes.includes(claim.requestHash);
}

/**
 * The claim of the same request if the author has sent it before with the same vk; undefined if it
 * is new. Throws `conflict` if the author has used the vk for another request.
 */
export function earlierClaim(
  reads: Pick<Reads, 'vkClaim'>,
  request: KeyedRequest,
): StoredVkClaim | undefined {
  const claim = findClaim(reads, request);
  if (claim === undefined || isSameRequest(claim, request)) return claim;
  throw new Failure(
    'conflict',
    'This vk was used before for another request. Send each request with a vk of its own.',
    { field: 'vk' },
  );
}

/**
 * How long an insert without a vk is a repeat of an equal one if nothing but its content says so:
 * as long as a caller that lost an answer sends a request again. Two visitors may send the same
 * form, and the same event may occur twice.
 */
export const repeatWindowMs = 60_000;

/** Whether a transaction (`dtu_txn`) was within the last milliseconds. */
export function isRecentTxn(dtuTxn: string | undefined, nowMs: number, forMs: number): boolean {
  return forMs === Infinity || (dtuTxn !== undefined && nowMs - Date.parse(dtuTxn) <= forMs);
}

/** A request as the store recognises it (docs/design/history.md#idempotency-and-concurrency). */
export interface RequestIdentity {
  /** The vk that the server derives from the fields. */
  readonly derivedVk: string;
  /** The claim to store with the change. */
  readonly claim: (vk: string) => VkClaim;
  /** The claim if the same request came before. Throws `conflict` if another one used the vk. */
  readonly earlier: (reads: Pick<Reads, 'vkClaim'>, vk: string) => StoredVkClaim | undefined;
}

/** The sender of a request, if its key does not identify it. */
interface Identity {
  readonly by?: string;
  /** Distinguishes the requests of this caller from equal requests of others. */
  readonly identity?: JsonObject | undefined;
  /** The input as earlier versions hashed it, if that is another one. */
  readonly formerInput?: JsonObject | undefined;
}

/** The identity of a call of an operation (`<family>.<operation>`) with an input. */
export function identifyRequest(
  name: string,
  v: JsonObject,
  call: Call,
  { by = authorOf(call), identity, formerInput }: Identity = {},
): RequestIdentity {
  const ifMatch = call.fields['if-match'];
  const more = [ifMatch, identity].filter((one) => one !== undefined);
  const current = hashRequest(name, v, ...more);
  const former = formerInput && hashRequest(name, formerInput, ...more);
  const formerHashes = [
    ...current.formerHashes,
    ...(former === undefined ? [] : [former.requestHash, ...former.formerHashes]),
  ];
  const hashes = { requestHash: current.requestHash, formerHashes };
  return {
    derivedVk: derivedVk(hashes),
    claim: (vk) => ({ vk: claimName({ ...hashes, by, vk }), requestHash: hashes.requestHash }),
    earlier: (reads, vk) => earlierClaim(reads, { ...hashes, by, vk }),
  };
}

/** The report of a write of many records, or of what it would change. */
export interface WriteReport {
  readonly report: JsonObject;
  /** Whether an earlier request with the same vk wrote it. */
  readonly replayed: boolean;
}

/** The request of a call, named `<family>.<operation>`; undefined for a call without a vk. */
export function keyedRequest(
  name: string,
  v: Json,
  call: Call,
  by = authorOf(call),
): KeyedRequest | undefined {
  const { vk } = call;
  return vk === undefined ? undefined : { vk, by, ...hashRequest(name, v) };
}

/** The result of an operation with such a report, which may have another view of it. */
export function reportResult(
  { report, replayed }: WriteReport,
  request: KeyedRequest | undefined,
): OperationResult & { readonly kind: 'data'; readonly data: JsonObject } {
  return {
    ...{ kind: 'data', data: report },
    ...(request && { vk: request.vk }),
    ...(replayed && { replayed }),
  };
}

/**
 * Commits a write once for a request: a repeat gets the report that `again` makes of the row with
 * its claim. `decide` runs in the transaction; it puts the claim on one of its changes, and its
 * answer is the report. Rejects as Store.commit does, and with `conflict` for a vk of another
 * request.
 */
export function commitOnce(
  store: Store,
  {
    by,
    via,
    request,
  }: {
    readonly by: string;
    readonly via?: ToolUse | undefined;
    readonly request: KeyedRequest | undefined;
  },
  {
    again,
    decide,
  }: {
    readonly again: (reads: Reads, seq: number) => JsonObject;
    readonly decide: (reads: Reads, claim: Pick<LoggedDraft, 'vk'>) => Decision<JsonObject>;
  },
): Promise<WriteReport> {
  return store.commit(authorVia(by, via), (reads): Decision<WriteReport> => {
    const earlier = request && earlierClaim(reads, request);
    if (earlier !== undefined) {
      const report = again(reads, earlier.seq);
      return { drafts: [], answer: () => ({ report, replayed: true }) };
    }
    const vk = request && { vk: claimName(request), requestHash: request.requestHash };
    const { drafts, answer } = decide(reads, vk === undefined ? {} : { vk });
    return { drafts, answer: (rows) => ({ report: answer(rows), replayed: false }) };
  });
}

/** The first names of a list, and how many more there are. */
export function namedFirst(names: readonly string[]): string {
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
  return names.slice(0, namedMax).join(', ') + more;
}
