import { viewOfDraft } from '../drafts/log/draft-reads.ts';
import type { WorkTurns } from '../../core/fair/turns.ts';
import type { Location } from '../../core/http/visitor.ts';
import type { Store } from '../../core/log/store.ts';
import { visitDaysMax } from '../../core/operations/limits.ts';
import { type Call, defineOperation } from '../../core/operations/operation.ts';
import { parseOrigin } from '../../core/operations/place.ts';
import { turnsOf } from '../../core/operations/turns.ts';
import type { StaticInput, StaticOutput } from '../../core/values/json/static.ts';
import { openDraftSeen } from '../drafts/bounds.ts';
import type { SiteDraft } from '../drafts/draft.ts';
import { digestProperty, draftProperty } from '../drafts/operations/drafts.ts';
import { comparedDaysDefault } from '../drafts/operations/limits.ts';
import { digestInTurns } from '../drafts/operations/publish-plan.ts';
import type { RowReader, SiteAccess } from '../rules/site-access.ts';
import { previewFor, previewProperties, previewTimeMs } from '../rules/operations/preview.ts';
import {
  type Asker,
  type ComparedSites,
  answersTo,
  branchDifferences,
  comparedRow,
  comparedSite,
  differences,
} from './compare-answers.ts';
import {
  type QuestionPage,
  type VisitReads,
  givenQuestions,
  ruleQuestions,
  sitemapQuestions,
  visitedQuestions,
} from './compare-questions.ts';
import { comparedLists, comparedUrlsMax } from './comparison.ts';

/** Live requests and requests of the draft that it waits for at the same time. */
const comparedAtOnce = 8;

/** The parts that compare needs. */
interface CompareParts extends VisitReads {
  readonly store: Store;
  readonly site: SiteAccess;
  /** The rows that pages show in previews: those that a caller may read. */
  readonly rowsFor: (call: Call) => RowReader;
  /** The site as a draft has it, with such rows. */
  readonly siteOf: (draft: SiteDraft) => Pick<CompareParts, 'site' | 'rowsFor'>;
  readonly locationOf: (address: string) => Promise<Location>;
  /** The counts of visits, of breadcrumbs and of pages. */
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

const text = { type: 'string' } as const;

/** A list, which a query or a form sends as the lines of one text. */
const lines = {
  oneOf: [
    { type: 'array', maxItems: comparedUrlsMax, items: text },
    { ...text, nullable: true, description: 'One a line.' },
  ],
} as const;
const count = (description: string) => ({ type: 'integer', description }) as const;

const answerSchema = {
  type: 'object',
  required: ['status', 'source'],
  properties: {
    status: { type: 'integer' },
    source: { ...text, description: 'The source that answers: disk:<name>, rule:<id> or none.' },
    target: { ...text, description: 'The Location of a redirect.' },
    line: { ...text, description: 'The first line of the content that differs.' },
    failure: { ...text, description: 'Why there is no answer.' },
  },
} as const;

const branchSchema = {
  type: 'object',
  required: ['conditions'],
  properties: {
    conditions: {
      type: 'array',
      items: {},
      description: 'The if of the branch, after those of the branches that lead to it.',
    },
    status: { type: 'integer' },
    target: text,
    failure: text,
  },
} as const;

const rowSchema = {
  type: 'object',
  required: ['differs', 'live', 'draft'],
  properties: {
    url: text,
    key: { ...text, description: 'The key of a breadcrumb.' },
    differs: { type: 'array', items: { ...text, enum: differences } },
    headers: { type: 'array', items: text, description: 'The fields that differ.' },
    diff: {
      ...text,
      description:
        'The lines that differ, with two around them, as in a unified diff: of text that has ' +
        'enough in common, the start.',
    },
    branches: {
      type: 'array',
      description:
        'The branches of a breadcrumb that differ, also those that the visitor does not take. A ' +
        'side without the branch is absent.',
      items: {
        type: 'object',
        required: ['branch', 'differs'],
        properties: {
          branch: { ...text, description: 'when[0] and so on, or default.' },
          differs: { type: 'array', items: { ...text, enum: branchDifferences } },
          live: branchSchema,
          draft: branchSchema,
        },
      },
    },
    unlisted: count('Further branches that differ.'),
    live: answerSchema,
    draft: answerSchema,
  },
} as const;

type ComparedRows = StaticOutput<typeof rowSchema>[];

const compareInput = {
  type: 'object',
  required: ['draft'],
  properties: {
    draft: draftProperty,
    urls: {
      ...lines,
      description: `URLs, or paths at the origin, at most ${comparedUrlsMax}.`,
    },
    keys: { ...lines, description: 'Keys of breadcrumbs.' },
    list: {
      ...text,
      nullable: true,
      enum: [...comparedLists, null] as unknown as readonly (typeof comparedLists)[number][],
      description:
        'Without urls and keys, which URLs: changes, those of the page rules that the draft ' +
        'changes (the default), sitemap, those of /sitemap.xml of the origin, or visited, the ' +
        'pages and breadcrumbs that were visited most.',
    },
    days: {
      type: 'integer',
      minimum: 1,
      maximum: visitDaysMax,
      nullable: true,
      description: `The days up to today whose visits count; ${comparedDaysDefault} by default.`,
    },
    origin: { ...text, nullable: true, description: 'That of the request by default.' },
    after: { ...text, nullable: true, description: 'The next of the page before.' },
    limit: {
      type: 'integer',
      minimum: 1,
      maximum: comparedUrlsMax,
      nullable: true,
      description: 'URLs and keys that one answer compares.',
    },
    ...previewProperties,
  },
} as const;

type CompareInput = StaticInput<typeof compareInput>;

/**
 * draft.compare: answers URLs and breadcrumbs live and in a draft, and returns those whose answers
 * differ: those that the input names, or a list of them in pages.
 */
export const compareDraft = defineOperation({
  name: 'svc1.draft.compare',
  scope: 'read',
  effect: 'reads',
  summary: 'The URLs and breadcrumbs whose answers differ between a draft and the live site.',
  input: compareInput,
  output: {
    title: 'DraftComparison',
    type: 'object',
    required: ['compared', 'differing', 'rows', 'total', 'next'],
    properties: {
      compared: count('How many were answered live and in the draft.'),
      differing: count('How many of them differ.'),
      rows: {
        type: 'array',
        description: 'Those that differ, in their order.',
        items: rowSchema,
      },
      total: count('How many all pages together compare; of changes, the rules that change.'),
      next: { type: ['string', 'null'], description: 'The after of the next page.' },
      digest: digestProperty,
    },
  },
  failures: ['not_found', 'conflict', 'too_large'],
  run: (parts: CompareParts) => async (v, call) => {
    const { store } = parts;
    const draft = openDraftSeen({ store, reads: store }, v.draft, call.caller);
    // Taken before the answers: a change meanwhile makes an approval of it fail.
    const isFirst = v.after === undefined;
    const turns = turnsOf(call);
    await turns.next();
    const digest = isFirst
      ? await store.inSnapshot(
          (inDraft) => digestInTurns(inDraft, draft, turns),
          viewOfDraft(draft),
        )
      : undefined;
    const { sites, asker } = await comparison(parts, draft, { v, call, turns });
    const { questions, next, total } = await questionsOf(parts, { v, draft, sites, asker });
    const rows: ComparedRows = [];
    for (let at = 0; at < questions.length; at += comparedAtOnce) {
      const group = questions.slice(at, at + comparedAtOnce);
      const answered = await Promise.all(group.map((one) => answersTo(sites, one, asker)));
      for (const one of answered) {
        if (turns.isOver()) await turns.next();
        const row = comparedRow(one);
        if (row !== undefined) rows.push(row);
      }
    }
    const compared = questions.length;
    const data = { compared, differing: rows.length, rows, total, next };
    return { kind: 'data', data: digest === undefined ? data : { ...data, digest } };
  },
});

/** The two sites of a comparison, and the visitor of both. */
async function comparison(
  parts: CompareParts,
  draft: SiteDraft,
  { v, call, turns }: { readonly v: CompareInput; readonly call: Call; readonly turns: WorkTurns },
): Promise<{ readonly sites: ComparedSites; readonly asker: Asker }> {
  const { store, locationOf } = parts;
  const { caller } = call;
  const previewed = await previewFor(v, call, { nowMs: undefined, locationOf });
  const visitor = previewed ?? { visitor: call.visitor, fields: {} };
  // What a described visitor may read decides nothing: see previewFor.
  const shown = ({ site, rowsFor }: Pick<CompareParts, 'site' | 'rowsFor'>): SiteAccess =>
    previewed === undefined ? site : site.withRows(rowsFor(call), previewTimeMs(v));
  const ofDraft = parts.siteOf(draft);
  const timeMs = previewTimeMs(v) ?? call.visitor.nowMs;
  const sites = {
    live: comparedSite(shown(parts), { reads: store, rows: parts.rowsFor(call), caller, timeMs }),
    draft: comparedSite(shown(ofDraft), {
      ...{ reads: store.view(viewOfDraft(draft)), rows: ofDraft.rowsFor(call), caller, timeMs },
    }),
  };
  return { sites, asker: { visitor, call, signal: call.signal(), turns } };
}

function questionsOf(
  parts: CompareParts,
  {
    v,
    draft,
    sites,
    asker,
  }: {
    readonly v: CompareInput;
    readonly draft: SiteDraft;
    readonly sites: ComparedSites;
    readonly asker: Asker;
  },
): QuestionPage | Promise<QuestionPage> {
  const { call, turns } = asker;
  const { caller } = call;
  const origin = v.origin === undefined ? call.origin : parseOrigin(v.origin);
  const asked = { origin, caller };
  if (v.urls !== undefined || v.keys !== undefined) return givenQuestions(v, asked);
  const place = { after: v.after ?? '', limit: v.limit ?? comparedUrlsMax };
  if (v.list === 'sitemap') return sitemapQuestions(sites, { ...asked, asker }, place);
  if (v.list === 'visited') {
    const when = { days: v.days, nowMs: parts.now() };
    return visitedQuestions(parts, when, { ...asked, ...place });
  }
  return parts.store.inSnapshot(
    (inDraft) => ruleQuestions(inDraft, { ...asked, draft, turns }, place),
    viewOfDraft(draft),
  );
}
