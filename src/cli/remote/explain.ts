import { previewFields } from '../../core/pipeline/conditions/table.ts';
import type { Operations } from '../client/operations.ts';
import { writeLine, type DefineCommand } from '../command.ts';
import { choiceOption, jsonOption } from '../options.ts';
import {
  callApi,
  apiTargetOf,
  apiOptions,
  draftOption,
  type ApiTargetOptions,
} from './api-client.ts';

type Explanation = Operations['userinterface.explain']['output'];

interface ExplainOptions extends ApiTargetOptions {
  readonly json: boolean;
  readonly asOf?: string;
}

/** `waymark explain`: says which source answers a URL, and why, through the HTTP API. */
export const defineExplain: DefineCommand = (command, terminal) => {
  command
    .description('Say which source answers a URL, with which status, and why the others do not.')
    .argument('<url>', 'a URL of the site, or a path')
    .option('--method <method>', 'the method of the request (GET)')
    .option('--as-of <time>', 'with the rules of this time: a date-time or a seq');
  for (const [name, { schema, choices }] of Object.entries(previewFields)) {
    const [flags, description] = [`--${name} <value>`, schema.description];
    if (choices === undefined) command.option(flags, description);
    else command.addOption(choiceOption(flags, description, choices));
  }
  for (const option of [...apiOptions(), draftOption(), jsonOption()]) command.addOption(option);
  command.action(async (requested: string, options: ExplainOptions) => {
    const { url: _url, apikey: _key, config: _config, ...others } = options;
    const { draft: _draft, json, asOf, ...question } = others;
    const api = await apiTargetOf(options, terminal);
    const v = { ...question, url: requested, as_of: asOf };
    const answer = await callApi(api, 'userinterface.explain', { v });
    if (json) writeLine(terminal.out, JSON.stringify(answer));
    else for (const line of linesOf(answer.data)) writeLine(terminal.out, line);
  });
};

type Tried = Explanation['tried'][number];
type Candidate = Tried['candidates'][number];
type Branch = NonNullable<Candidate['branches']>[number];

function linesOf({ says, tried, notes, headers = [] }: Explanation): readonly string[] {
  const changed = headers.length === 0 ? [] : [`Its header fields: ${headers.join(', ')}.`];
  return [says, ...notes, ...changed, ...tried.flatMap((one) => ['', ...sourceLines(one)])];
}

function sourceLines({ source, key, candidates, omitted = 0 }: Tried): readonly string[] {
  return [
    key === undefined ? source : `${source}, key ${key}`,
    ...(candidates.length === 0 ? ['  no candidate'] : candidates.flatMap(candidateLines)),
    ...(omitted === 0 ? [] : [`  and ${omitted} more`]),
  ];
}

function candidateLines({
  mount,
  proxy,
  redirect,
  rewrite,
  id = '',
  origin,
  path,
  kind,
  lost,
  branches = [],
}: Candidate): readonly string[] {
  const ofRewrite = rewrite === undefined ? undefined : `rewrite ${rewrite}`;
  const ofIni = redirect === undefined ? ofRewrite : `redirect ${redirect}`;
  const ofProxy = proxy === undefined ? `${id} (${kind ?? 'rule'})` : `proxy ${proxy}`;
  const name = mount ?? ofIni ?? ofProxy;
  const where = origin === '*' ? path : `${origin}${path.startsWith('/') ? '' : ' '}${path}`;
  const lines =
    lost === undefined
      ? [`  * ${name} at ${where}`]
      : [`    ${name} at ${where}`, `      ${lost.says} [${lost.code}]`];
  // A breadcrumb without conditions has one branch, which needs no explanation.
  return branches.length < 2 ? lines : [...lines, ...branches.flatMap(branchLines)];
}

function branchLines({ branch, lost }: Branch): readonly string[] {
  if (lost === undefined) return [`      * ${branch}`];
  return [`        ${branch}`, `          ${lost.says} [${lost.code}]`];
}
