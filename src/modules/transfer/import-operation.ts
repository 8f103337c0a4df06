import type { ToolUse } from '../../core/log/change.ts';
import { type Call, authorOf, defineOperation } from '../../core/operations/operation.ts';
import { problemsMember } from '../../core/operations/problems.ts';
import { turnsOf } from '../../core/operations/turns.ts';
import type { Bounds } from '../../core/values/bounds.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { type Scope, hasScope } from '../../core/values/key.ts';
import type { LineProblems, Refusal } from './import-line.ts';
import { type ImportParts, type ImportedRecord, importAll } from './import.ts';
import { importRowsMax, refusalsKeptMax, writtenCheckedMax } from './limits.ts';
import { type ProblemParts, newProblems, writtenProblems } from './written-problems.ts';

/** Bytes of an import over HTTP that are read and written in the thread that serves pages. */
export const importInlineBytesMax = 16_384;

/** Refused lines that the failure of an import names one by one. */
const refusalsNamedMax = 20;

/** An import as data, which another thread can run. */
export interface ImportRequest {
  readonly bytes: Uint8Array;
  /** Names of all engines. */
  readonly engines: ReadonlySet<string>;
  /** Names of the access sections. */
  readonly accessNames?: ReadonlySet<string> | undefined;
  /** Whether a line with a mistake is refused. */
  readonly isStrict?: boolean;
  readonly by: string;
  readonly via?: ToolUse | undefined;
  /** Why a line with a hook is refused; undefined if the caller may write hooks. */
  readonly hooksRefused: string | undefined;
  /** The scopes of the caller. */
  readonly scopes?: readonly Scope[];
  /** The part of the site that the lines have to be in. */
  readonly bounds?: Bounds | undefined;
  readonly dryRun: boolean;
  /** The id of the draft that it changes instead of the live state. */
  readonly draft?: string;
}

/** The result of an import or its dry run. */
export interface ImportReport {
  readonly done: boolean;
  readonly imported: number;
  /** Lines whose record exists already. */
  readonly unchanged: number;
  readonly refused: number;
  /** The first refused lines. */
  readonly refusals: readonly Refusal[];
  /** Lines with a problem. */
  readonly kept: number;
  /** The first of these lines. */
  readonly unknowns: readonly LineProblems[];
  /** The transaction, with which `invalidate` reverts the import; null if nothing is new. */
  readonly txn: string | null;
}

/** The report, and the first page rules and hooks that were imported. */
export interface ImportResult {
  readonly report: ImportReport;
  readonly records: readonly ImportedRecord[];
}

/** The parts that the operation needs. */
interface ImportOperationParts extends Omit<ImportParts, keyof ProblemParts>, ProblemParts {
  /** Runs a large import in another thread. Rejects as runImport does. */
  readonly importInThread: (request: ImportRequest) => Promise<ImportResult>;
}

const count = (description: string): JsonObject => ({ type: 'integer', description });

const lines = (description: string, member: JsonObject): JsonObject => ({
  type: 'array',
  maxItems: refusalsKeptMax,
  description,
  items: { type: 'object', required: ['line'], properties: { line: count('From 1.'), ...member } },
});

/**
 * userinterface.import: adds the page rules and hooks of NDJSON lines in one transaction. Existing
 * records stay as they are. Refuses with `invalid` if any line cannot be imported, and then imports
 * none; with `dry_run` it reports these lines instead.
 */
export const importLines = defineOperation({
  name: 'svc1.userinterface.import',
  scope: 'design',
  effect: 'writes',
  inDrafts: true,
  summary:
    'Imports page rules, hooks, tables and rows from NDJSON, all lines in one transaction or none.',
  output: {
    title: 'ImportReport',
    type: 'object',
    required: ['done', 'imported', 'unchanged', 'refused', 'refusals', 'kept', 'unknowns', 'txn'],
    properties: {
      done: { type: 'boolean', description: 'False for a dry run.' },
      imported: count('Number of lines that became a record, or would.'),
      unchanged: count('Number of lines whose record exists already.'),
      refused: count('Number of lines that cannot be imported; only a dry run has any.'),
      refusals: lines('The first of them, with the reasons.', { why: { type: 'string' } }),
      kept: count(
        'Number of lines with a problem: an invalid value waits in _unknowns_, or, of the first ' +
          `${writtenCheckedMax} page rules and hooks, one has no effect or is hidden.`,
      ),
      unknowns: lines('The first of them, with their problems.', {
        names: { type: 'array', items: { type: 'string' } },
        problems: problemsMember,
      }),
      txn: { type: ['string', 'null'], description: 'The transaction, for invalidate.' },
    },
  },
  linesField: 'ndjson',
  failures: ['invalid', 'storage_full', 'unavailable'],
  input: {
    type: 'object',
    required: ['ndjson'],
    properties: {
      ndjson: {
        type: 'string',
        description:
          `Up to ${importRowsMax} lines: a rule with its vk beside its fields, or {a, v, vk}. ` +
          'Over HTTP they may be the body, as application/x-ndjson.',
      },
      dry_run: { type: 'boolean', nullable: true, description: 'Only reports.' },
    },
  },
  run:
    ({ importInThread, ...parts }: ImportOperationParts) =>
    async ({ ndjson, dry_run: dryRun = false }, call) => {
      const bytes = Buffer.from(ndjson);
      const request: ImportRequest = {
        bytes,
        engines: parts.engines,
        accessNames: parts.accessNames,
        isStrict: call.isStrict === true,
        by: authorOf(call),
        via: call.via,
        hooksRefused: hasScope(call.caller, 'webhook')
          ? undefined
          : 'a hook needs the scope webhook.',
        scopes: [...call.caller.scopes],
        bounds: call.caller.bounds,
        dryRun,
      };
      const isSmall = bytes.length <= importInlineBytesMax;
      const { report, records } = await (isSmall
        ? runImport(parts, request)
        : importInThread(request));
      const problems = await problemsOf(parts, records, call);
      return { kind: 'data', data: withProblems(report, problems) };
    },
});

/** The problems of imported records, once all lines are written. */
async function problemsOf(
  parts: ProblemParts,
  records: readonly ImportedRecord[],
  call: Call,
): Promise<readonly Pick<LineProblems, 'line' | 'problems'>[]> {
  const found: Pick<LineProblems, 'line' | 'problems'>[] = [];
  const turns = turnsOf(call);
  for (const { line, ...record } of records) {
    if (turns.isOver()) await turns.next();
    const problems = writtenProblems(parts, record, call);
    if (problems.length > 0) found.push({ line, problems });
  }
  return found;
}

/** A report with more problems, those of each line together. */
function withProblems(
  report: ImportReport,
  more: readonly Pick<LineProblems, 'line' | 'problems'>[],
): ImportReport {
  const { kept, unknowns } = report;
  const byLine = new Map(unknowns.map((one) => [one.line, one]));
  // Behind the last line of a report that is full, nobody knows which lines it has counted.
  const last = kept > unknowns.length ? (unknowns.at(-1)?.line ?? 0) : Infinity;
  for (const { line, problems } of more) {
    if (line > last) break;
    const known = byLine.get(line) ?? { line, names: [], problems: [] };
    const all = [...known.problems, ...newProblems(known, problems)];
    byLine.set(line, { ...known, problems: all });
  }
  const inOrder = [...byLine.values()].toSorted((one, other) => one.line - other.line);
  return {
    ...report,
    kept: kept + byLine.size - unknowns.length,
    unknowns: inOrder.slice(0, refusalsKeptMax),
  };
}

/**
 * Runs one import or its dry run. An import rejects with `invalid`, naming the first refused lines,
 * if a line cannot be imported.
 */
export async function runImport(
  parts: Omit<ImportParts, 'engines' | 'accessNames'>,
  {
    bytes,
    engines,
    accessNames,
    isStrict,
    by,
    via,
    hooksRefused,
    scopes,
    bounds,
    dryRun,
  }: ImportRequest,
): Promise<ImportResult> {
  const result = await importAll({ ...parts, engines, accessNames, isStrict }, bytes, {
    ...{ by, via },
    hooksRefused,
    scopes,
    bounds,
    dryRun,
  });
  const { refused, kept, imported, unchanged, records, txn } = result;
  if (!dryRun && refused.length > 0) throw refusal(refused);
  const report: ImportReport = {
    done: !dryRun,
    imported,
    unchanged,
    refused: refused.length,
    refusals: refused.slice(0, refusalsKeptMax),
    kept: kept.length,
    unknowns: kept.slice(0, refusalsKeptMax),
    txn: txn ?? null,
  };
  return { report, records };
}

function refusal(refused: readonly Refusal[]): Failure {
  const named = refused.slice(0, refusalsNamedMax).map(({ line, why }) => `line ${line}: ${why}`);
  const more = refused.length - named.length;
  const lines = more > 0 ? [...named, `and ${more} more`] : named;
  return new Failure('invalid', `Nothing was imported.\n${lines.join('\n')}`, { field: 'ndjson' });
}
