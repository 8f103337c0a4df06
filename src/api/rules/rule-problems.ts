import { nearestName } from '../../config/nearest.ts';
import type { Cidr } from '../../model/cidr.ts';
import { isJsonObject, type Json, type JsonObject } from '../../model/json.ts';
import { servicePath } from '../../model/path.ts';
import type { Problem, ProblemReason } from '../../model/failure.ts';
import { ruleKinds, type Rule } from '../../model/rule.ts';
import { addressProblem } from '../../outbound/address.ts';
import { outboundUrl } from '../../outbound/url.ts';
import { problemsMax } from '../limits.ts';
import { unknownField } from '../problems.ts';
import { enginedataProblems, mergeEnginedata } from './enginedata.ts';
import { fieldDefinitions } from './fields.ts';

/** What a page rule is held against. */
export interface RuleChecks {
  /** Names of the engines that exist. */
  readonly engines: ReadonlySet<string>;
  /** Prefix before `/svc1`; undefined where no site is at hand. */
  readonly base: string | undefined;
  /** Networks that content.fetch may reach though they are private; undefined as base. */
  readonly allowPrivate: readonly Cidr[] | undefined;
}

/**
 * What is wrong with the fields of a page rule that were sent now, as the rule has become by them:
 * what waits in its `_unknowns_`, what is missing, and what can have no effect
 * (docs/design/page-rules.md#invalid-values).
 */
export function ruleProblems(
  rule: Rule,
  names: readonly string[],
  checks: RuleChecks,
): readonly Problem[] {
  const unknowns = rule._unknowns_ ?? {};
  const waiting = names.filter(
    (name) =>
      Object.hasOwn(unknowns, name) && !(name === 'enginedata' && isJsonObject(unknowns[name])),
  );
  const sent = new Set(names);
  const isShaped = ['enginedata', 'kind', 'engine'].some((name) => sent.has(name));
  const problems = [
    ...waiting.map((name) => fieldProblem(name, unknowns[name] ?? null, rule, checks)),
    ...(isShaped ? shapeProblems(rule) : []),
    ...(sent.has('enginedata') ? privateSources(rule, checks) : []),
    ...(sent.has('path') ? ownPath(rule, checks) : []),
  ];
  return problems.slice(0, problemsMax);
}

function fieldProblem(name: string, value: Json, rule: Rule, { engines }: RuleChecks): Problem {
  const definition = fieldDefinitions.get(name);
  if (definition === undefined) {
    if (!serverFields.has(name)) return unknownField(name, name, [...fieldDefinitions.keys()]);
    const message = `${name} is set by the server; it waits in _unknowns_.`;
    return { field: name, reason: 'unknown_field', message };
  }
  const { kinds, types, expects } = definition;
  if (!kinds.includes(rule.kind)) {
    const message =
      `${name} is for the kinds ${kinds.join(', ')}, and this rule is of the kind ${rule.kind}; ` +
      'it waits in _unknowns_.';
    return { field: name, reason: 'not_for_kind', message };
  }
  const isOfType = types.some((type) => typeof value === type);
  const suggestion = typeof value === 'string' ? nearestOf(name, value, engines) : undefined;
  const hint = suggestion === undefined ? '' : ` Did you mean ${suggestion}?`;
  const words = name === 'engine' ? `one of ${[...engines].join(', ')}` : expects;
  const shown = JSON.stringify(value).slice(0, shownCharactersMax);
  return {
    field: name,
    reason: isOfType ? reasonOf(name) : 'wrong_type',
    message: `${name} has to be ${words}, not ${shown}; it waits in _unknowns_.${hint}`,
    ...(suggestion !== undefined && { suggestion }),
  };
}

const shownCharactersMax = 80;
const serverFields: ReadonlySet<string> = new Set(['id', 'enginereference', 'meta', 'seq']);

function reasonOf(name: string): ProblemReason {
  if (name === 'engine') return 'unknown_engine';
  return name === 'httpresponse' ? 'out_of_range' : 'bad_format';
}

function nearestOf(name: string, value: string, engines: ReadonlySet<string>): string | undefined {
  if (name === 'engine') return nearestName(value, [...engines]);
  return name === 'kind' ? nearestName(value, ruleKinds) : undefined;
}

/** What is wrong inside enginedata, with what waits of it in its place. */
function shapeProblems(rule: Rule): readonly Problem[] {
  const { kind, engine, enginedata = {}, _unknowns_: unknowns = {} } = rule;
  const waiting = isJsonObject(unknowns.enginedata) ? unknowns.enginedata : {};
  const whole: JsonObject = mergeEnginedata(enginedata, waiting);
  if (
    rule.enginedata === undefined &&
    Object.keys(waiting).length === 0 &&
    kind !== 'content.fetch'
  ) {
    return kind === 'resolve' ? leadsNowhere(whole) : [];
  }
  const problems = enginedataProblems(whole, { kind, engine }).map(({ problem }) => problem);
  return kind === 'resolve' ? [...problems, ...leadsNowhere(enginedata)] : problems;
}

function leadsNowhere({ target, html, status, when }: JsonObject): readonly Problem[] {
  if ([target, html, status, when].some((member) => member !== undefined)) return [];
  const message = 'This breadcrumb leads nowhere: enginedata has no target, html, status or when.';
  return [{ field: 'enginedata.target', reason: 'no_effect', message }];
}

/** Sources whose host is a private address: they are refused when they are fetched from. */
function privateSources(
  { kind, enginedata }: Rule,
  { allowPrivate }: RuleChecks,
): readonly Problem[] {
  if (kind !== 'content.fetch' || allowPrivate === undefined) return [];
  return [enginedata?.source].flat().flatMap((source) => {
    const address = typeof source === 'string' ? addressOf(source) : undefined;
    const why = address === undefined ? undefined : addressProblem(address, allowPrivate);
    if (why === undefined) return [];
    const message = `The source cannot be reached: ${why} of [fetch] in the ini file.`;
    return [{ field: 'enginedata.source', reason: 'unreachable_private' as const, message }];
  });
}

/** The address that a URL names without a look-up; undefined where its host is a name. */
function addressOf(source: string): string | undefined {
  try {
    const host = outboundUrl(source).hostname.replace(/^\[(.*)\]$/, '$1');
    if (host === 'localhost' || host.endsWith('.localhost')) return '127.0.0.1';
    return /^[\d.]+$|:/.test(host) ? host : undefined;
  } catch {
    return undefined;
  }
}

function ownPath({ path, kind }: Rule, { base }: RuleChecks): readonly Problem[] {
  if (kind === 'resolve' || base === undefined || servicePath(path, base) === undefined) return [];
  const message = `${base}/svc1 is Waymark's own: no page rule is served there.`;
  return [{ field: 'path', reason: 'no_effect', message }];
}
