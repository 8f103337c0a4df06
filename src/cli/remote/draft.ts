import type { Operations } from '../../client/operations.ts';
import { shownMoment } from '../../model/time.ts';
import { callApi } from './api-client.ts';
import {
  clientCommand,
  parseObject,
  readText,
  type InputOption,
  type Subcommand,
} from './client-command.ts';
import { listSubcommand } from './list-command.ts';
import { operationSubcommands } from './operation-command.ts';

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
    confirm: {
      value: 'digest',
      description: 'the digest that the command printed without --confirm',
    },
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
      ...data.families.map((family) => {
        return `To undo this: waymark ${commands[family] ?? family} invalidate --txn ${data.txn}`;
      }),
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
    `Publishing would insert ${inserted}, change ${changed} and remove ${removed} records.`,
    ...changes.flatMap(changeLines),
    ...(data.unlisted > 0 ? [`  … and ${data.unlisted} more`] : []),
    ...(conflicting > 0 ? [`${conflicting} have changed live since the draft did:`] : []),
    ...conflicts.flatMap(changeLines),
    unresolved > 0
      ? 'Say which version wins: --others draft, or --resolve for single records.'
      : `To do it, repeat the command with --confirm ${data.digest}`,
  ];
}

/** The commands of the families of the log. */
const commands: Readonly<Record<string, string>> = {
  userinterface: 'rule',
  webhook: 'hook',
  table: 'table',
  record: 'record',
};

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
    origin: { value: 'origin', description: 'the origin of the paths' },
    ...Object.fromEntries(
      ['lang', 'country', 'device', 'user'].map((name) => {
        return [name, { value: 'value', description: `the ${name} of the visitor` }] as const;
      }),
    ),
  },
  async *run([draft = ''], { api, input, stdin }) {
    const v: Record<string, unknown> = { ...input, draft };
    for (const name of ['urls', 'keys']) {
      const given = input[name];
      if (typeof given === 'string') v[name] = await readText(given, stdin);
    }
    const answer = await callApi(api, 'draft.compare', { v });
    const { compared, differing, rows } = answer.data;
    const shown = rows.flatMap(({ url, key, differs, live, draft: drafted }) => [
      `${url ?? `key ${key ?? ''}`}  ${differs.join(', ')}`,
      `  live   ${answerText(live)}`,
      `  draft  ${answerText(drafted)}`,
    ]);
    yield { answer, lines: shown, notes: [`${differing} of ${compared} differ.`] };
  },
};

type Answered = Operations['draft.compare']['output']['rows'][number]['live'];

function answerText({ status, source, target, failure, line }: Answered): string {
  const more = target ?? failure ?? line;
  return `${status} ${source}${more === undefined ? '' : `  ${more}`}`;
}

/** `waymark draft insert | list | changes | compare | publish | …`. */
export const defineDraft = clientCommand({
  description:
    'Make, compare and publish drafts through the HTTP API. The option --draft of other commands ' +
    'reads and changes them.',
  subcommands: operationSubcommands('draft', { list, publish, compare }),
});
