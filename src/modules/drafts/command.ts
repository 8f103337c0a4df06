import type { Operations } from '../../cli/client/operations.ts';
import { picturesMax } from '../../cli/limits.ts';
import { callApi } from '../../cli/remote/api-client.ts';
import {
  type InputOption,
  type Subcommand,
  type SubcommandInput,
  clientCommand,
  parseObject,
  readText,
} from '../../cli/remote/client-command.ts';
import { listSubcommand } from '../../cli/remote/list-command.ts';
import { operationSubcommands } from '../../cli/remote/operation-command.ts';
import { confirmOption } from '../../cli/remote/record-commands.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { shownMoment } from '../../core/values/time.ts';
import { counted } from '../../core/values/units.ts';
import { type ComparedRow, requireChromium, takePictures } from '../compare/compare-pictures.ts';
import { comparedChunks, comparedLists } from '../compare/comparison.ts';

const draftArg = { '<draft>': 'the name or the id of a draft' } as const;
const choices = ['draft', 'live'] as const;
const list = listSubcommand('draft.list', {
  summary: 'list the drafts',
  options: {
    state: {
      value: 'state',
      description: 'those of this state',
      values: ['open', 'published', 'discarded'],
    },
  },
  columns: {
    ID: ({ id }) => id,
    STATE: ({ state }) => state,
    MADE: ({ created }) => created,
    NAME: ({ name }) => name,
    COMMENT: ({ comment = '' }) => comment.split('\n')[0] ?? '',
  },
});

const publish: Subcommand = {
  summary: 'make a draft live; without --confirm, only show what would change',
  args: draftArg,
  options: {
    confirm: confirmOption,
    at: {
      value: 'time',
      description: 'publish it at this time, such as 2026-12-01T08:00, or with an offset',
    },
    time_zone: { value: 'zone', description: 'the time zone of --at, such as Europe/Berlin' },
    resolve: {
      value: 'json',
      description: 'conflicts by the ids of their records: {"<id>": "draft" or "live"}',
    },
    others: {
      value: 'version',
      description: 'the version that wins all other conflicts',
      values: choices,
    },
  },
  writes: true,
  async *run([draft = ''], { api, vk, input }) {
    const { resolve } = input;
    const chosen = typeof resolve === 'string' ? parseObject(resolve, '--resolve') : undefined;
    const v = { ...input, draft, ...(chosen !== undefined && { resolve: chosen }) };
    const answer = await callApi(api, 'draft.publish', { v, vk });
    yield { answer, lines: publishLines(answer.data, draft) };
  },
};

type Published = Operations['draft.publish']['output'];
type Report = Extract<Published, { readonly done: false }>;
type Change = Report['changes'][number];

function publishLines(data: Published, draft: string): readonly string[] {
  if (data.done) {
    return [
      `Published ${data.records} changes.`,
      `To undo this: waymark draft undo ${JSON.stringify(draft)}`,
    ];
  }
  if (data.scheduled !== undefined) {
    return [
      `Scheduled for ${shownMoment(data.scheduled)}. The draft takes no changes until then.`,
      `To cancel this: waymark draft unschedule ${JSON.stringify(draft)}`,
    ];
  }
  const { inserted, changed, removed, changes, conflicts, conflicting, unresolved } = data;
  return [
    'Nothing has changed yet.',
    `Publishing would insert ${inserted}, change ${changed} and remove ` +
      `${counted(removed, 'record')}.`,
    ...changes.flatMap(changeLines),
    ...(data.unlisted > 0 ? [`  … and ${data.unlisted} more`] : []),
    ...(conflicting > 0 ? [`${conflicting} have changed live since the draft did:`] : []),
    ...conflicts.flatMap(changeLines),
    unresolved > 0
      ? 'Say which version wins: --others draft, or --resolve for single records.'
      : `To do it, repeat the command with --confirm ${data.digest}`,
  ];
}

const undo: Subcommand = {
  summary: 'undo the publication of a draft; without --confirm, only show what would change',
  args: draftArg,
  options: {
    confirm: confirmOption,
    resolve: {
      value: 'json',
      description: 'conflicts by the ids of their records: {"<id>": "undo" or "live"}',
    },
    others: {
      value: 'version',
      description: 'undo all other conflicts, or leave them live',
      values: ['undo', 'live'],
    },
  },
  writes: true,
  async *run([draft = ''], { api, vk, input }) {
    const { resolve } = input;
    const chosen = typeof resolve === 'string' ? parseObject(resolve, '--resolve') : undefined;
    const v = { ...input, draft, ...(chosen !== undefined && { resolve: chosen }) };
    const answer = await callApi(api, 'draft.undo', { v, vk });
    yield { answer, lines: undoLines(answer.data) };
  },
};

type Undone = Operations['draft.undo']['output'];
type UndoneChange = Extract<Undone, { readonly done: false }>['changes'][number];

function undoLines(data: Undone): readonly string[] {
  if (data.done) return [`Undone: ${counted(data.records, 'record')} as before.`];
  const { gone, restored, changed, changes, conflicts, conflicting, unresolved } = data;
  return [
    'Nothing has changed yet.',
    `The undo would delete ${gone}, restore ${restored} and change ${counted(changed, 'record')}.`,
    ...changes.flatMap(undoneLines),
    ...(data.unlisted > 0 ? [`  … and ${data.unlisted} more`] : []),
    ...(conflicting > 0 ? [`${conflicting} have changed since the publication:`] : []),
    ...conflicts.flatMap(undoneLines),
    unresolved > 0
      ? 'Say what happens to these: --others undo, --others live, or --resolve for single records.'
      : `To do it, repeat the command with --confirm ${data.digest}`,
  ];
}

function undoneLines({ id, becomes, label, fields }: UndoneChange): readonly string[] {
  return [
    `  ${id}  ${becomes}${label === undefined ? '' : `  ${label}`}`,
    ...Object.entries(fields).map(([name, { published, live, undone }]) => {
      const then = published === undefined ? '' : `${JSON.stringify(published)}, live now `;
      return `    ${name}: ${then}${JSON.stringify(live)} would be ${JSON.stringify(undone)}`;
    }),
  ];
}

function changeLines({ id, becomes, label, fields, problem }: Change): readonly string[] {
  return [
    `  ${id}  ${becomes}${label === undefined ? '' : `  ${label}`}`,
    ...Object.entries(fields).map(([name, { base, live, draft }]) => {
      const then = base === undefined ? '' : `${JSON.stringify(base)}, live now `;
      return `    ${name}: ${then}${JSON.stringify(live)} would be ${JSON.stringify(draft)}`;
    }),
    ...(problem === undefined ? [] : [`    ${problem}`]),
  ];
}

const lines = (what: string): InputOption => ({
  value: 'lines',
  description: `${what}, one a line: the text itself, @FILE, or - for standard input`,
});

const compare: Subcommand = {
  summary: 'answer URLs live and in a draft, and show those that differ',
  args: draftArg,
  options: {
    urls: lines('URLs or paths'),
    keys: lines('keys of breadcrumbs'),
    list: {
      value: 'list',
      description: 'without these, the URLs of the changes, of the sitemap, or the most visited',
      values: comparedLists,
    },
    days: { value: 'days', description: 'the days whose visits count', isNumber: true },
    origin: { value: 'origin', description: 'the origin of the paths' },
    pictures: {
      value: 'folder',
      description: 'write pictures of both, made by the Chromium of this machine, into this folder',
    },
    ...Object.fromEntries(
      ['lang', 'country', 'device', 'user'].map((name) => {
        return [name, { value: 'value', description: `the ${name} of the visitor` }] as const;
      }),
    ),
  },
  async *run([draft = ''], { api, input: { urls, keys, pictures, ...others }, stdin }) {
    const browser = pictures === undefined ? undefined : requireChromium();
    const found: ComparedRow[] = [];
    const given = [
      ...comparedChunks(await textOf(urls, stdin)).map((chunk) => ({ urls: chunk })),
      ...comparedChunks(await textOf(keys, stdin)).map((chunk) => ({ keys: chunk })),
    ];
    const isGiven = urls !== undefined || keys !== undefined;
    let [compared, differing] = [0, 0];
    for (const chunk of isGiven ? given : [{}]) {
      let after: string | null = '';
      while (after !== null) {
        const place: JsonObject = after === '' ? {} : { after };
        const v = { ...others, ...chunk, ...place, draft };
        const answer: JsonObject & { readonly data: Comparison } = await callApi(
          api,
          'draft.compare',
          { v },
        );
        compared += answer.data.compared;
        differing += answer.data.differing;
        after = answer.data.next;
        found.push(...answer.data.rows.slice(0, Math.max(0, picturesMax - found.length)));
        const shown = answer.data.rows.flatMap(comparedLines);
        yield { answer, lines: shown, notes: [`${differing} of ${compared} differ.`] };
      }
    }
    if (browser === undefined || typeof pictures !== 'string') return;
    const origin = typeof others.origin === 'string' ? others.origin : new URL(api.url).origin;
    const place = { api, draft, origin, folder: pictures };
    const note = await takePictures(browser, { rows: found, differing }, place);
    const answer = { r: 'svc1.draft.compare', data: { pictures } };
    yield { answer, lines: [], notes: [note] };
  },
};

type Comparison = Operations['draft.compare']['output'];

/** The text that an option names; none for an option that is absent. */
async function textOf(given: unknown, stdin: SubcommandInput['stdin']): Promise<string> {
  return typeof given === 'string' ? readText(given, stdin) : '';
}

function comparedLines({
  url,
  key = '',
  differs,
  headers = [],
  diff,
  branches = [],
  live,
  draft,
}: Comparison['rows'][number]): readonly string[] {
  const names = headers.length === 0 ? '' : ` (${headers.join(', ')})`;
  return [
    `${url ?? `key ${key}`}  ${differs.join(', ')}${names}`,
    `  live   ${answerText(live)}`,
    `  draft  ${answerText(draft)}`,
    ...(diff === undefined ? [] : diff.trimEnd().split('\n')).map((line) => `    ${line}`),
    ...branches.flatMap((one) => [
      `    ${one.branch}  ${one.differs.join(', ')}`,
      `      live   ${branchText(one.live)}`,
      `      draft  ${branchText(one.draft)}`,
    ]),
  ];
}

type Answered = Comparison['rows'][number]['live'];

function answerText({ status, source, target, failure, line }: Answered): string {
  const more = target ?? failure ?? line;
  return `${status} ${source}${more === undefined ? '' : `  ${more}`}`;
}

type Branch = NonNullable<Comparison['rows'][number]['branches']>[number]['live'];

function branchText(branch: Branch): string {
  if (branch === undefined) return 'no such branch';
  const { conditions, status, target, failure } = branch;
  const of = JSON.stringify(conditions.filter((one) => one !== null));
  return [status, target ?? failure, `if ${of}`].filter((one) => one !== undefined).join(' ');
}

/** `waymark draft insert | list | changes | compare | publish | …`. */
export const defineDraft = clientCommand({
  description:
    'Make, compare and publish drafts through the HTTP API. The option --draft of other commands ' +
    'reads and changes them.',
  subcommands: operationSubcommands('draft', { list, publish, undo, compare }),
});
