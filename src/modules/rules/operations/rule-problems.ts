import { unknownSection } from '../../../core/pipeline/place-access.ts';
import { problemsMax } from '../../../core/operations/limits.ts';
import { unknownField } from '../../../core/operations/problems.ts';
import { urlAddressProblem } from '../../../core/outbound/address.ts';
import { Failure, type Problem, type ProblemReason } from '../../../core/values/failure.ts';
import { type Json, type JsonObject, isJsonObject } from '../../../core/values/json/json.ts';
import { nearestName } from '../../../core/values/nearest.ts';
import type { PrivatePlace } from '../../../core/values/network/unix-socket.ts';
import { servicePath } from '../../../core/values/path.ts';
import { storedMomentMs } from '../../../core/values/time.ts';
import { withoutUsers } from '../../../core/values/url-user.ts';
import { type Rule, accessOf, ruleKinds } from '../rule.ts';
import { ruleHeaderRefusal } from '../pages/rule-headers.ts';
import { enginedataProblems } from './enginedata.ts';
import { fieldDefinitions, limitOf } from './fields.ts';
import { mergeEnginedata } from './placement.ts';

/** The parts that the checks of a page rule need. */
export interface RuleChecks {
  /** Names of the engines that exist. */
  readonly engines: ReadonlySet<string>;
  /** Names of the access sections; undefined if they are not known. */
  readonly accessNames?: ReadonlySet<string> | undefined;
  /** Prefix before `/svc1`; undefined in an import, which knows no site. */
  readonly base: string | undefined;
  /** Private networks and sockets that content.fetch may connect to; undefined in an import. */
  readonly allowPrivate: readonly PrivatePlace[] | undefined;
}

/**
 * The problems of the named fields of a page rule: values in its `_unknowns_`, missing values, and
 * values without an effect (docs/design/page-rules.md#invalid-values).
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
  const wrongHeaders = waiting.includes('headers') ? headerProblems(unknowns.headers) : [];
  const single = waiting.filter(
    (name) => name !== 'access' && !(name === 'headers' && wrongHeaders.length > 0),
  );
  const sent = new Set(names);
  const hasShape = ['enginedata', 'kind', 'engine'].some((name) => sent.has(name));
  const problems = [
    ...single.map((name) => fieldProblem(name, unknowns[name] ?? null, rule, checks)),
    ...wrongHeaders,
    ...(hasShape ? shapeProblems(rule) : []),
    ...(sent.has('enginedata') ? privateSourceProblems(rule, checks) : []),
    ...(sent.has('path') ? ownPathProblems(rule, checks) : []),
    ...(limits.some((name) => sent.has(name)) ? limitProblems(rule) : []),
    ...(sent.has('access') ? sectionProblems(rule, checks) : []),
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
  const shown = withoutUsers(JSON.stringify(value)).slice(0, shownCharactersMax);
  const why = limits.includes(name) ? limitOf(value) : undefined;
  const says = why instanceof Failure ? ` ${why.message}` : '';
  return {
    field: name,
    reason: isOfType ? reasonOf(name) : 'wrong_type',
    message: `${name} has to be ${words}, not ${shown}; it waits in _unknowns_.${hint}${says}`,
    ...(suggestion !== undefined && { suggestion }),
  };
}

/** The problems of response fields that wait; none if they wait for another reason. */
function headerProblems(headers: Json | undefined): readonly Problem[] {
  if (!isJsonObject(headers)) return [];
  return Object.entries(headers).flatMap(([name, value]): readonly Problem[] => {
    const { reason, words = '' } = ruleHeaderRefusal(name, value) ?? {};
    if (reason === undefined) return [];
    const field = `headers.${name.slice(0, shownCharactersMax)}`;
    return [{ field, reason, message: `${field} ${words}; it waits in _unknowns_.` }];
  });
}

/** The problem of a rule that names a missing access section: nobody gets its page. */
function sectionProblems(rule: Rule, checks: RuleChecks): readonly Problem[] {
  const { accessNames } = checks;
  const access = accessOf(rule);
  if (access === unknownSection) {
    return [fieldProblem('access', rule._unknowns_?.access ?? null, rule, checks)];
  }
  if (access === undefined || accessNames?.has(access) !== false) return [];
  const suggestion = nearestName(access, [...accessNames]);
  const message = `${missingSection(access, accessNames)} The page is closed until then.`;
  const hint = suggestion !== undefined && { suggestion };
  return [{ field: 'access', reason: 'missing', message, ...hint }];
}

/** Says that the ini file does not have an access section, and what to do. */
function missingSection(name: string, names: ReadonlySet<string>): string {
  const nearest = nearestName(name, [...names]);
  const known = [...names].slice(0, sectionsShownMax).join(', ');
  const advice =
    nearest === undefined
      ? `Add the section first${known === '' ? '' : `, or write one of ${known}`}.`
      : `Did you mean ${nearest}?`;
  return `The ini file has no section [access.${name}]. ${advice}`;
}

/** The names in such a sentence. */
const sectionsShownMax = 10;

/** The fields that limit when a rule answers. */
const limits: readonly string[] = ['from', 'until'];

/** The problem of a rule that ends before it begins. */
function limitProblems({ from, until }: Rule): readonly Problem[] {
  if (from === undefined || until === undefined) return [];
  if (storedMomentMs(from) < storedMomentMs(until)) return [];
  const message = 'The rule never answers: until is not after from.';
  return [{ field: 'until', reason: 'no_effect', message }];
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

/** The problems of enginedata with its waiting members in their places. */
function shapeProblems(rule: Rule): readonly Problem[] {
  const { kind, engine, enginedata = {}, _unknowns_: unknowns = {} } = rule;
  const waiting = isJsonObject(unknowns.enginedata) ? unknowns.enginedata : {};
  const whole: JsonObject = mergeEnginedata(enginedata, waiting);
  if (
    rule.enginedata === undefined &&
    Object.keys(waiting).length === 0 &&
    kind !== 'content.fetch'
  ) {
    return kind === 'resolve' ? targetProblems(whole) : [];
  }
  const problems = enginedataProblems(whole, { kind, engine }).map(({ problem }) => problem);
  return kind === 'resolve' ? [...problems, ...targetProblems(enginedata)] : problems;
}

function targetProblems({ target, html, status, when }: JsonObject): readonly Problem[] {
  if ([target, html, status, when].some((member) => member !== undefined)) return [];
  const message = 'This breadcrumb leads nowhere: enginedata has no target, html, status or when.';
  return [{ field: 'enginedata.target', reason: 'no_effect', message }];
}

/** The problem of sources at private addresses, to which fetches are refused. */
function privateSourceProblems(
  { kind, enginedata }: Rule,
  { allowPrivate }: RuleChecks,
): readonly Problem[] {
  if (kind !== 'content.fetch' || allowPrivate === undefined) return [];
  return [enginedata?.source].flat().flatMap((source) => {
    const why = typeof source === 'string' ? urlAddressProblem(source, allowPrivate) : undefined;
    if (why === undefined) return [];
    const message = `Fetches from this source are refused: ${why} of [fetch] in the ini file.`;
    return [{ field: 'enginedata.source', reason: 'unreachable_private' as const, message }];
  });
}

function ownPathProblems({ path, kind }: Rule, { base }: RuleChecks): readonly Problem[] {
  if (kind === 'resolve') return keyProblems(path);
  if (base === undefined || servicePath(path, base) === undefined) return [];
  const message = `${base}/svc1 belongs to Waymark itself: no page rule answers there.`;
  return [{ field: 'path', reason: 'no_effect', message }];
}

/** The problem of a URL as the key of a breadcrumb: a list of moved pages may have whole URLs. */
function keyProblems(key: string): readonly Problem[] {
  if (!/^https?:\/\//i.test(key)) return [];
  const { origin, pathname } = URL.parse(key) ?? {};
  const fields =
    origin === undefined
      ? 'its origin and its path in these two fields'
      : `origin ${JSON.stringify(origin)} and path ${JSON.stringify(pathname)}`;
  const message =
    'This is the key of a breadcrumb, and no visitor of that URL gets it. To answer at the URL, ' +
    `write ${fields}.`;
  return [{ field: 'path', reason: 'no_effect', message }];
}
