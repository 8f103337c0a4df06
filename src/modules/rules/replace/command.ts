import { createHash } from 'node:crypto';
import type { Operations } from '../../../cli/client/operations.ts';
import type { JsonObject } from '../../../core/values/json/json.ts';
import { ruleKinds } from '../rule.ts';
import { UsageError } from '../../../cli/command.ts';
import { callApi, type ApiTarget } from '../../../cli/remote/api-client.ts';
import type { Subcommand, SubcommandResult } from '../../../cli/remote/client-command.ts';
import { counted } from '../../../core/values/units.ts';

type Replaced = Operations['userinterface.replace']['output'];
type Report = Extract<Replaced, { readonly done: false }>;
type Page = Report['rows'][number];

/** `waymark rule replace`: prints what it finds and, with --confirm, replaces it in a draft. */
export const replace: Subcommand = {
  summary: 'replace a text in many pages of a draft; without --confirm, only show where',
  args: { '<find>': 'the text to look for', '<with>': 'what takes its place' },
  options: {
    regex: { description: 'find is a regular expression, and with may have $1, $<name> and $&' },
    ignore_case: { description: 'upper and lower case are the same' },
    whole_words: { description: 'find it as a whole word only' },
    parts: {
      value: 'parts',
      description: 'where to look: content, title, data, targets, headers; all by default',
    },
    origin: { value: 'origin', description: 'only pages of this origin' },
    path: { value: 'path', description: 'only pages whose path begins with this' },
    kind: { value: 'kind', description: 'only rules of this kind', values: ruleKinds },
    confirm: {
      value: 'digest',
      description: 'the digest that the command printed without --confirm',
    },
  },
  writes: true,
  inDrafts: true,
  async *run([find = '', by = ''], { api, vk, input: { confirm, parts, ...others } }) {
    const chosen = typeof parts === 'string' ? { parts: parts.split(',') } : {};
    const v = { ...others, ...chosen, find, with: by };
    const pages = new Map<string, number>();
    let problems = 0;
    for await (const { data, ...answer } of reports(api, v)) {
      for (const { id, seq, problem } of data.rows) {
        if (problem === undefined) pages.set(id, seq);
        else problems += 1;
      }
      const lines = confirm === undefined ? data.rows.flatMap(pageLines) : [];
      if (confirm === undefined) yield { answer: { ...answer, data }, lines };
    }
    const digest = createHash('sha256')
      .update(JSON.stringify([v, ...pages]))
      .digest('hex');
    if (confirm === undefined) {
      yield summary({ pages: pages.size, problems, digest });
      return;
    }
    if (confirm !== digest) {
      throw new UsageError(
        'Pages have changed since the report. Look at a new one, without --confirm.',
      );
    }
    const answer = await callApi(api, 'userinterface.replace', {
      v: { ...v, pages: Object.fromEntries(pages) },
      vk,
    });
    yield { answer, lines: doneLines(answer.data, api) };
  },
};

/** The pages of the report. */
async function* reports(
  api: ApiTarget,
  v: JsonObject,
): AsyncIterable<JsonObject & { readonly data: Report }> {
  let after: string | null = '';
  while (after !== null) {
    const place: JsonObject = after === '' ? {} : { after };
    const answer: JsonObject & { readonly data: Replaced } = await callApi(
      api,
      'userinterface.replace',
      { v: { ...v, ...place } },
    );
    const { data } = answer;
    if (data.done) throw new TypeError('a report has done nothing');
    yield { ...answer, data };
    after = data.next;
  }
}

function pageLines({ id, path, count, found, problem }: Page): readonly string[] {
  const unlisted = count - found.length;
  return [
    `${path}  ${id}  ${count}`,
    ...found.flatMap(({ field, before, found: text, replaced, after }) => [
      `  ${field}`,
      `    - ${before}${text}${after}`,
      `    + ${before}${replaced}${after}`,
    ]),
    ...(unlisted > 0 ? [`  … and ${unlisted} more`] : []),
    ...(problem === undefined ? [] : [`  stays as it is: ${problem}`]),
  ];
}

function summary({
  pages,
  problems,
  digest,
}: {
  readonly pages: number;
  readonly problems: number;
  readonly digest: string;
}): SubcommandResult {
  const stay = problems === 0 ? '' : ` ${problems} more stay as they are.`;
  const lines =
    pages === 0
      ? [`Nothing to replace.${stay}`]
      : [
          `Nothing has changed yet. This would change ${counted(pages, 'page')}.${stay}`,
          `To do it in a draft, repeat the command with --draft and --confirm ${digest}`,
        ];
  return { answer: { data: { pages, digest } }, lines };
}

function doneLines(data: Replaced, { draft = '' }: ApiTarget): readonly string[] {
  if (!data.done) return [];
  return [
    `Replaced in ${counted(data.pages, 'page')} of the draft.`,
    `To see how they answer: waymark draft compare ${JSON.stringify(draft)}`,
  ];
}
