import type { Store } from '../../core/log/store.ts';
import { vkCharactersMax } from '../../core/operations/limits.ts';
import { type Call, defineOperation } from '../../core/operations/operation.ts';
import { problemsMember } from '../../core/operations/problems.ts';
import { preferMember, vkMember } from '../../core/operations/records/schema.ts';
import { turnsOf } from '../../core/operations/turns.ts';
import { Failure, type Problem } from '../../core/values/failure.ts';
import type { Json } from '../../core/values/json/json.ts';
import { type ShadowParts, isSiteProblem, siteProblems } from '../rules/operations/shadows.ts';
import { batchOperationsMax } from './limits.ts';
import { type BatchReport, type BatchRequest, type BatchResult, batchNames } from './run-batch.ts';
import { deliveriesPart } from '../webhooks/log/delivery-log.ts';
import { storedRules } from '../rules/log/family.ts';

/** Characters of the vk of a batch: that of an operation has its place in the batch behind it. */
const batchVkCharactersMax = 240;

/** Page rules of a batch that are compared with the files of the site. */
const batchRulesComparedMax = 1_000;

/** The parts that the operation needs. */
interface BatchParts extends Pick<ShadowParts, 'site'> {
  readonly store: Store;
  /** Runs a batch in another thread. Rejects as runBatch does. */
  readonly batchInThread: (request: BatchRequest) => Promise<BatchReport>;
}

const text = { type: 'string' } as const;
const count = (description: string) => ({ type: 'integer', description }) as const;

/** One operation of a batch and what it did, or would do. */
const resultSchema = {
  title: 'BatchResult',
  type: 'object',
  required: ['a'],
  properties: {
    a: { ...text, description: 'The operation.' },
    id: { ...text, description: 'The id of the record, or of the event.' },
    seq: { type: 'integer', description: 'The version of the record: for if_seq.' },
    changed: {
      type: 'array',
      items: text,
      description: 'The fields that it writes; none for a write that changes nothing.',
    },
    vk: { ...text, description: 'The idempotency key of the operation.' },
    replayed: { const: true, description: 'An earlier request with the same vk did it.' },
    secret: { ...text, description: 'The secret of a new hook, which only this answer shows.' },
    hooks: { type: 'integer', description: 'The number of hooks that get the event.' },
    unknowns: {
      type: 'array',
      items: text,
      description: 'The fields, or members of data, that are not valid.',
    },
    problems: problemsMember,
    error: {
      title: 'BatchError',
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: text,
        message: text,
        field: { ...text, description: 'The field, from operations.0 on.' },
      },
      description: 'Why the operation fails; only in a dry run.',
    },
  },
} as const;

/**
 * svc1.batch: runs inserts and edits of any family in one transaction, or none of them. Each
 * operation sees those before it, and needs the scopes that it needs alone. Refuses with the
 * failure of the first operation that fails, whose field begins with `operations.<index>`; with
 * `dry` it reports these failures instead, and writes nothing.
 */
export const batch = defineOperation({
  name: 'svc1.batch',
  scope: undefined,
  effect: 'writes',
  inDrafts: true,
  summary:
    `Runs up to ${batchOperationsMax} inserts and edits of any family in one transaction: all ` +
    'of them, or none. Each needs the scopes that it needs alone.',
  input: {
    type: 'object',
    required: ['operations'],
    properties: {
      operations: {
        type: 'array',
        minItems: 1,
        maxItems: batchOperationsMax,
        description: 'The operations, in their order: each sees those before it.',
        items: {
          title: 'BatchedOperation',
          type: 'object',
          required: ['a', 'v'],
          additionalProperties: false,
          properties: {
            a: { ...text, enum: batchNames },
            v: { type: 'object', additionalProperties: true, description: 'Its input.' },
            vk: { ...vkMember, type: 'string', maxLength: vkCharactersMax },
          },
        },
      },
      dry: {
        type: 'boolean',
        nullable: true,
        description: 'Only reports what would change, and which operations would fail.',
      },
    },
  },
  envelope: {
    vk: {
      ...vkMember,
      maxLength: batchVkCharactersMax,
      description:
        'Idempotency key: a repeated batch with it gets the first answers again. An operation ' +
        'without a vk of its own has it with its place behind it: order-7#0.',
    },
    prefer: preferMember,
  },
  output: {
    title: 'BatchReport',
    type: 'object',
    required: ['done', 'txn', 'inserted', 'edited', 'unchanged', 'failed', 'results'],
    properties: {
      done: { type: 'boolean', description: 'False for a dry run.' },
      txn: {
        type: ['string', 'null'],
        description: 'The transaction, for invalidate; null if nothing was written.',
      },
      inserted: count('Number of new records and events.'),
      edited: count('Number of changed records.'),
      unchanged: count('Number of operations that change nothing, or were done before.'),
      failed: count('Number of operations that would fail; 0 unless in a dry run.'),
      results: { type: 'array', items: resultSchema, description: 'One for each operation.' },
    },
  },
  failures: [
    ...(['unauthenticated', 'forbidden', 'not_found', 'conflict', 'precondition_failed'] as const),
    ...(['storage_full', 'unavailable'] as const),
  ],
  run:
    ({ store, site, batchInThread }: BatchParts) =>
    async ({ operations, dry = false }, call) => {
      const request = requestOf(dry, call);
      const texts = await textsOf(operations, call);
      const { report, seq } = await batchInThread({ ...request, operations: texts });
      store.refresh();
      const wroteHook = operations.some(({ a }) => a.startsWith('svc1.webhook.'));
      // After the answer, no delivery is sent as a hook was before.
      if (report.done && wroteHook) await store.part(deliveriesPart).waitUntilApplied(seq);
      const results = report.done
        ? await withShadows({ store, site }, report.results, call)
        : report.results;
      return {
        kind: 'data',
        data: { ...report, results },
        ...(call.vk !== undefined && { vk: call.vk }),
        ...(report.done && results.every(({ replayed }) => replayed) && { replayed: true }),
      };
    },
});

/**
 * The JSON of operations, of many megabytes, for the thread: numbers that JavaScript would round
 * stay as they were sent.
 */
async function textsOf(operations: readonly Json[], call: Call): Promise<string> {
  const turns = turnsOf(call);
  const texts: string[] = [];
  for (const operation of operations) {
    if (turns.isOver()) await turns.next();
    texts.push(JSON.stringify(operation));
  }
  return `[${texts.join(',')}]`;
}

/**
 * A batch as a thread gets it, without its operations. Throws `unauthenticated` without a key,
 * `invalid` for its vk.
 */
function requestOf(dry: boolean, call: Call): Omit<BatchRequest, 'operations'> {
  const { caller, vk, origin, isStrict, via } = call;
  if (caller.keyId === undefined) {
    throw new Failure(
      'unauthenticated',
      'svc1.batch needs an API key: send it as apikey or as bearer token.',
    );
  }
  if (vk !== undefined && vk.length > batchVkCharactersMax) {
    const message = `The vk of a batch has at most ${batchVkCharactersMax} characters.`;
    throw new Failure('invalid', message, { field: 'vk' });
  }
  const { apikey: _apikey, ...sender } = caller;
  return {
    by: caller.keyId,
    caller: sender,
    isStrict: isStrict === true,
    ...{ vk, dry, origin, via },
  };
}

/** The results with the problems of page rules that follow from what else answers. */
async function withShadows(
  parts: ShadowParts & Pick<BatchParts, 'store'>,
  results: readonly BatchResult[],
  call: Call,
): Promise<readonly BatchResult[]> {
  const shown: BatchResult[] = [];
  const turns = turnsOf(call);
  let compared = 0;
  for (const result of results) {
    const { a, id } = result;
    const isRule = a.startsWith('svc1.userinterface.') && result.replayed !== true;
    const rule =
      isRule && compared < batchRulesComparedMax
        ? parts.store.of(storedRules).rule(id ?? '')?.rule
        : undefined;
    if (rule === undefined) {
      shown.push(result);
      continue;
    }
    compared += 1;
    if (turns.isOver()) await turns.next();
    const problems = [...otherProblems(result), ...siteProblems(parts, rule, call)];
    const { problems: _problems, ...rest } = result;
    shown.push(problems.length === 0 ? rest : { ...rest, problems });
  }
  return shown;
}

/** In the thread, rules were compared with each other in the middle of the batch. */
function otherProblems({ problems = [] }: BatchResult): readonly Problem[] {
  return problems.filter((problem) => !isSiteProblem(problem));
}
