import { previewFields } from '../breadcrumbs/conditions/table.ts';
import type { Tried, TriedBranch, TriedCandidate } from '../model/explanation.ts';
import { isJsonObject } from '../model/json.ts';
import { say, type DefineCommand } from './command.ts';
import { choiceOption, jsonOption } from './options.ts';
import { callService, serviceOf, serviceOptions, type ServiceOptions } from './service.ts';

interface ExplainOptions extends ServiceOptions {
  readonly json: boolean;
  readonly asOf?: string;
}

/** `waymark explain`: which source answers a URL, and why no other: a client of the HTTP API. */
export const defineExplain: DefineCommand = (command, terminal) => {
  command
    .description('Say which source answers a URL, with which status, and why no other one does.')
    .argument('<url>', 'a URL of the site, or a path')
    .option('--method <method>', 'the method of the request (GET)')
    .option('--as-of <time>', 'by the rules as they were then: a date-time or a seq');
  for (const [name, { schema, choices }] of Object.entries(previewFields)) {
    const [flags, description] = [`--${name} <value>`, schema.description];
    if (choices === undefined) command.option(flags, description);
    else command.addOption(choiceOption(flags, description, choices));
  }
  for (const option of [...serviceOptions(), jsonOption()]) command.addOption(option);
  command.action(async (explained: string, options: ExplainOptions) => {
    const { url: _url, apikey: _key, config: _config, json, asOf, ...question } = options;
    const service = await serviceOf(options, terminal);
    const v = { ...question, url: explained, as_of: asOf };
    const answer = await callService(service, 'svc1.userinterface.explain', { v });
    if (json) say(terminal.out, JSON.stringify(answer));
    else for (const line of linesOf(answer.data)) say(terminal.out, line);
  });
};

function linesOf(data: unknown): readonly string[] {
  if (!isJsonObject(data)) return [];
  const { says, tried, notes } = data as unknown as Said;
  return [says, ...notes, ...tried.flatMap((one) => ['', ...sourceLines(one)])];
}

interface Said {
  readonly says: string;
  readonly notes: readonly string[];
  readonly tried: readonly Tried[];
}

function sourceLines({ source, key, candidates, omitted = 0 }: Tried): readonly string[] {
  return [
    key === undefined ? source : `${source}, key ${key}`,
    ...(candidates.length === 0 ? ['  nothing for this'] : candidates.flatMap(candidateLines)),
    ...(omitted === 0 ? [] : [`  and ${omitted} more`]),
  ];
}

function candidateLines({
  mount,
  id = '',
  origin,
  path,
  kind,
  lost,
  branches = [],
}: TriedCandidate): readonly string[] {
  const name = mount ?? `${id} (${kind ?? 'rule'})`;
  const where = origin === '*' ? path : `${origin}${path.startsWith('/') ? '' : ' '}${path}`;
  const lines =
    lost === undefined
      ? [`  * ${name} at ${where}`]
      : [`    ${name} at ${where}`, `      ${lost.says} [${lost.code}]`];
  // A breadcrumb without conditions has nothing to tell of.
  return branches.length < 2 ? lines : [...lines, ...branches.flatMap(branchLines)];
}

function branchLines({ branch, lost }: TriedBranch): readonly string[] {
  if (lost === undefined) return [`      * ${branch}`];
  return [`        ${branch}`, `          ${lost.says} [${lost.code}]`];
}
