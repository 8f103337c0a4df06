import { authorVia, type ToolUse } from '../../log/change.ts';
import type { Json, JsonObject } from '../../values/json/json.ts';
import type { Decision, LoggedDraft, Reads, Store } from '../../log/store.ts';
import { authorOf, type Call, type OperationResult } from '../operation.ts';
import { claimName, earlierClaim, hashRequest, type KeyedRequest } from './idempotency.ts';

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

const namedMax = 10;
