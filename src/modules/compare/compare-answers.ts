import { createHash } from 'node:crypto';
import type { WorkTurns } from '../../core/fair/turns.ts';
import { contentChunks } from '../../core/http/content/content.ts';
import { type Reply, discard, replyField, statusOf } from '../../core/http/reply.ts';
import type { RequestTarget } from '../../core/http/request.ts';
import type { Reads } from '../../core/log/store.ts';
import type { Call } from '../../core/operations/operation.ts';
import { Failure, failureFrom } from '../../core/values/failure.ts';
import { type Json, sameJson } from '../../core/values/json/json.ts';
import type { Caller } from '../../core/values/key.ts';
import type { BranchOutcome } from '../breadcrumbs/branches.ts';
import { keyReply } from '../breadcrumbs/reply.ts';
import type { RowReader, SiteAccess } from '../rules/site-access.ts';
import { isSourceInside, rulesInside } from '../rules/bounds/rules.ts';
import { clientOf } from '../rules/operations/page-lookup.ts';
import type { Previewed } from '../rules/operations/preview.ts';
import { textDifference } from './text-diff.ts';
import { storedRules } from '../rules/log/family.ts';

/**
 * Bytes of an answer that draft.compare shows the differences of; of a longer one, it compares a
 * digest …
 */
const comparedBytesMax = 4 * 2 ** 20;

/** … and how long it waits for an answer. */
const comparedAnswerMs = 30_000;

/** Branches of a breadcrumb that it lists; it counts the others. */
const comparedBranchesMax = 50;

/** A URL, or the key of a breadcrumb at an origin. */
export type Question =
  | { readonly url: string; readonly target: RequestTarget }
  | { readonly key: string; readonly origin: string };

/** The call, the visitor that it describes, and its end. */
export interface Asker {
  readonly visitor: Previewed;
  readonly call: Call;
  readonly signal: AbortSignal;
  readonly turns: WorkTurns;
}

/** The site that answers one side of a comparison. */
interface ComparedSite {
  readonly site: SiteAccess;
  /** The same site, in which a bound key resolves breadcrumbs. */
  readonly breadcrumbs: SiteAccess;
  /** Whether the caller may see a reply or failure, by its source. */
  readonly isSeen: (source: string | undefined) => boolean;
}

/** A site as a caller may see it; its rules are those of a time in milliseconds since 1970. */
export function comparedSite(
  site: SiteAccess,
  {
    reads,
    rows,
    caller: { bounds },
    timeMs,
  }: {
    readonly reads: Reads;
    readonly rows: RowReader;
    readonly caller: Caller;
    readonly timeMs: number;
  },
): ComparedSite {
  if (bounds === undefined) return { site, breadcrumbs: site, isSeen: () => true };
  const inside = rulesInside(reads.of(storedRules), bounds);
  return {
    site,
    breadcrumbs: site.at(inside, rows, timeMs),
    isSeen: isSourceInside(inside),
  };
}

/** The live site, and that of the draft. */
export interface ComparedSites {
  readonly live: ComparedSite;
  readonly draft: ComparedSite;
}

/** What can differ between two answers. */
export const differences = ['status', 'target', 'headers', 'content', 'branches'] as const;

/** What can differ between the answers of two branches. */
export const branchDifferences = [
  'conditions',
  'status',
  'target',
  'headers',
  'content',
  'type',
] as const;

/** An answer, as a comparison shows it. */
interface ShownAnswer {
  readonly status: number;
  readonly source: string;
  readonly target?: string;
  readonly failure?: string;
  readonly line?: string;
}

/** A branch that differs; a side without it has no member. */
interface ComparedBranch {
  readonly branch: string;
  readonly differs: readonly (typeof branchDifferences)[number][];
  readonly live?: ShownBranch;
  readonly draft?: ShownBranch;
}

interface ShownBranch {
  readonly conditions: Json[];
  readonly status?: number;
  readonly target?: string;
  readonly failure?: string;
}

/** A question whose answers differ, and how. */
interface ComparedRow {
  readonly url?: string;
  readonly key?: string;
  readonly differs: readonly (typeof differences)[number][];
  readonly headers?: readonly string[];
  readonly diff?: string;
  readonly branches?: readonly ComparedBranch[];
  readonly unlisted?: number;
  readonly live: ShownAnswer;
  readonly draft: ShownAnswer;
}

/**
 * Aborts if nobody waits for a call, or an answer takes too long: a stream of events has no end.
 */
function answerSignal(call: Call): AbortSignal {
  return AbortSignal.any([call.signal(), AbortSignal.timeout(comparedAnswerMs)]);
}

/** The answers to one question. */
interface AnsweredQuestion {
  readonly question: Question;
  readonly live: Answered;
  readonly draft: Answered;
}

/** Asks both sites one question, in the next turn: a stored page takes no time to wait for. */
export async function answersTo(
  sites: ComparedSites,
  question: Question,
  given: Asker,
): Promise<AnsweredQuestion> {
  await given.turns.next();
  const asker = { ...given, signal: answerSignal(given.call) };
  const [live, draft] = await Promise.all([
    answerOf(sites.live, question, asker),
    answerOf(sites.draft, question, asker),
  ]);
  return { question, live, draft };
}

/** The differences of the answers to one question; undefined if they are equal. */
export function comparedRow({ question, live, draft }: AnsweredQuestion): ComparedRow | undefined {
  const headers = differingNames(live.headers, draft.headers);
  const isSame = live.digest === draft.digest;
  const branches = comparedBranches(live.branches, draft.branches);
  const differs = [
    ...(live.status === draft.status ? [] : ['status' as const]),
    ...(live.target === draft.target ? [] : ['target' as const]),
    ...(headers.length === 0 ? [] : ['headers' as const]),
    ...(isSame ? [] : ['content' as const]),
    ...(branches.length === 0 ? [] : ['branches' as const]),
  ];
  if (differs.length === 0) return undefined;
  const { diff, lines } = (isSame ? undefined : contentDifference(live, draft)) ?? {};
  const unlisted = branches.length - comparedBranchesMax;
  return {
    ...('key' in question ? { key: question.key } : { url: question.url }),
    differs,
    ...(headers.length > 0 && { headers }),
    ...(diff !== undefined && { diff }),
    ...(branches.length > 0 && { branches: branches.slice(0, comparedBranchesMax) }),
    ...(unlisted > 0 && { unlisted }),
    live: shownAnswer(live, lines?.[0]),
    draft: shownAnswer(draft, lines?.[1]),
  };
}

interface Answered {
  readonly status: number;
  readonly source: string;
  readonly target?: string;
  readonly failure?: string;
  readonly headers: ReadonlyMap<string, string>;
  /** The content, of a long one only the start, and a digest of all of it. */
  readonly content: Buffer;
  readonly digest: string;
  readonly branches: readonly BranchOutcome[];
}

function contentDifference(live: Answered, draft: Answered): ReturnType<typeof textDifference> {
  // A failure's content is its message, which is shown anyway.
  const hasFailed = [live, draft].some(({ failure }) => failure !== undefined);
  const found = textDifference(live.content, draft.content);
  return found && hasFailed ? { ...found, diff: undefined } : found;
}

function shownAnswer(
  { status, source, target, failure }: Answered,
  line: string | undefined,
): ShownAnswer {
  return {
    status,
    source,
    ...(target !== undefined && { target }),
    ...(failure !== undefined && { failure }),
    ...(line !== undefined && { line }),
  };
}

async function answerOf(
  compared: ComparedSite,
  question: Question,
  asker: Asker,
): Promise<Answered> {
  const { breadcrumbs, isSeen } = compared;
  try {
    const reply = await replyTo(compared, question, asker);
    if ('url' in question && !isSeen(reply.source)) {
      await discard(reply);
      return failedAnswer(noRuleInside, []);
    }
    const branches = branchesOf(breadcrumbs, question, { asker, source: reply.source });
    return await readAnswer(reply, branches);
  } catch (error) {
    const failure = failureFrom(error);
    if ('url' in question && !isSeen(failure.source)) return failedAnswer(noRuleInside, []);
    const { source = '' } = failure;
    return failedAnswer(failure, branchesOf(breadcrumbs, question, { asker, source }));
  }
}

/** Reads the answer of a URL or a key, as visitors get it. Rejects with the site's failures. */
export async function replyTo(
  { site, breadcrumbs }: ComparedSite,
  question: Question,
  { visitor, call, signal }: Asker,
): Promise<Reply> {
  if ('key' in question) {
    const visit = { ...question, query: '', ...visitor, client: clientOf(call) };
    return keyReply(await breadcrumbs.resolve(visit), visit);
  }
  const { target } = question;
  return site.respond({
    method: 'GET',
    ...target,
    fields: visitor.fields,
    address: call.caller.address,
    visitor: visitor.visitor,
    client: clientOf(call),
    body: undefined,
    signal,
  });
}

/** The branches of the breadcrumb that answers; a file answers before any. */
function branchesOf(
  site: SiteAccess,
  question: Question,
  { asker: { visitor }, source }: { readonly asker: Asker; readonly source: string },
): readonly BranchOutcome[] {
  if ('key' in question) return site.branches(question, { ...question, query: '', ...visitor });
  if (source.startsWith('disk:')) return [];
  const { target } = question;
  return site.branches(target, { ...visitor, ...target });
}

async function readAnswer(reply: Reply, branches: readonly BranchOutcome[]): Promise<Answered> {
  const { status, source } = reply;
  const target = replyField(reply, 'location');
  const hash = createHash('sha256');
  const start: Buffer[] = [];
  // The content of a redirect only repeats its target.
  if (target !== undefined && status >= 300 && status < 400) await discard(reply);
  else {
    let bytes = 0;
    for await (const chunk of contentChunks(reply)) {
      hash.update(chunk);
      if (bytes < comparedBytesMax) start.push(chunk.subarray(0, comparedBytesMax - bytes));
      bytes += chunk.length;
    }
  }
  return {
    ...{ status, source, headers: headersOf(reply), branches },
    ...(target !== undefined && { target }),
    // Most have one chunk, which needs no copy.
    content: start.length === 1 && start[0] !== undefined ? start[0] : Buffer.concat(start),
    digest: hash.digest('hex'),
  };
}

/** What a bound key sees of an answer that no page rule inside makes. */
const noRuleInside = {
  code: 'not_found',
  message: 'No page rule inside of the bounds of this key answers.',
} as const;

function failedAnswer(
  { code, message }: Pick<Failure, 'code' | 'message'>,
  branches: readonly BranchOutcome[],
): Answered {
  return {
    ...{ status: statusOf[code], source: 'none', failure: message, headers: new Map(), branches },
    ...{ content: Buffer.alloc(0), digest: message },
  };
}

/** Fields that two answers to the same request may differ in without any change of the site. */
const changing: ReadonlySet<string> = new Set([
  'age',
  'cache-status',
  'content-length',
  'date',
  'etag',
  'location',
  'server-timing',
  'set-cookie',
]);

function headersOf({ fields }: Pick<Reply, 'fields'>): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  for (let at = 0; at < fields.length; at += 2) {
    const name = (fields[at] ?? '').toLowerCase();
    if (changing.has(name)) continue;
    const before = headers.get(name);
    const value = fields[at + 1] ?? '';
    headers.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  return headers;
}

function differingNames(
  one: ReadonlyMap<string, string>,
  other: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...one.keys(), ...other.keys()]);
  return [...names].filter((name) => one.get(name) !== other.get(name)).toSorted();
}

/** The branches that differ, in the order of the draft; branches are the same by their names. */
function comparedBranches(
  live: readonly BranchOutcome[],
  draft: readonly BranchOutcome[],
): readonly ComparedBranch[] {
  if (live.length === 0 && draft.length === 0) return [];
  const before = new Map(live.map((one) => [one.name, one]));
  const after = new Map(draft.map((one) => [one.name, one]));
  return [...new Set([...after.keys(), ...before.keys()])].flatMap((name) => {
    const [one, other] = [before.get(name), after.get(name)];
    const differs = branchDifferences.filter((what) => !isSamePart(what, one, other));
    if (differs.length === 0) return [];
    return [
      {
        ...{ branch: name, differs },
        ...(one && { live: shownBranch(one) }),
        ...(other && { draft: shownBranch(other) }),
      },
    ];
  });
}

function isSamePart(
  what: (typeof branchDifferences)[number],
  one: BranchOutcome | undefined,
  other: BranchOutcome | undefined,
): boolean {
  switch (what) {
    case 'conditions':
      return sameJson([...(one?.conditions ?? [])], [...(other?.conditions ?? [])]);
    case 'status':
      return one?.status === other?.status;
    case 'target':
      return one?.target === other?.target;
    case 'headers':
      return sameJson([...(one?.headers ?? [])], [...(other?.headers ?? [])]);
    case 'content':
      return one?.content === other?.content && one?.failure === other?.failure;
    case 'type':
      return one?.contenttype === other?.contenttype;
  }
}

function shownBranch({ conditions, status, target, failure }: BranchOutcome): ShownBranch {
  return {
    conditions: [...conditions],
    ...(status !== undefined && { status }),
    ...(target !== undefined && { target }),
    ...(failure !== undefined && { failure }),
  };
}
