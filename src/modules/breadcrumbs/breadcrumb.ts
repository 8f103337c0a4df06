import {
  type TargetValues,
  fillTarget,
  targetVariables,
  withQuery,
} from '../../core/http/target-template.ts';
import type { EvaluationContext } from '../../core/pipeline/conditions/condition.ts';
import {
  type Branch,
  type Dependencies,
  chooseBranch,
  dependenciesOf,
  parseWhen,
} from '../../core/pipeline/conditions/when.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import { encodePath, hasWildcard } from '../../core/values/path.ts';
import { type Rule, type StoredRule, isTarget } from '../rules/rule.ts';
import { type BranchFields, parseBranchFields } from './branch-fields.ts';

/** The statuses of a redirect to a target (RFC 9110 §15.4). */
export const redirectStatuses: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Targets may be paths: the URL parser needs an origin before them, which no target has. */
const someOrigin = 'http://origin.invalid';

/** The parsed enginedata of a resolve rule, before its targets are combined with its rule. */
interface WrittenBreadcrumb {
  readonly when: readonly Branch<BranchTarget>[];
  /** The default branch, for visitors that match no other branch; it may have no target. */
  readonly otherwise: Branch<BranchTarget>;
  readonly forwardQuery: boolean;
}

/** A resolve rule with parsed conditions and destinations. */
export interface ParsedBreadcrumb {
  readonly id: string;
  readonly contenttype: string | undefined;
  readonly when: readonly Branch<Destination>[];
  readonly otherwise: Branch<Destination>;
  readonly forwardQuery: boolean;
  readonly dependencies: Dependencies;
}

/**
 * Parses the enginedata of a resolve rule (docs/design/rendering.md#breadcrumbs). Keeps a branch
 * with mistakes and names its problems.
 */
export function parseBreadcrumb(enginedata: JsonObject): WrittenBreadcrumb {
  return {
    when: parseWhen(enginedata.when, (branch, name) => {
      const answer = parseAnswer(branch);
      const problems = answerNames
        .filter((member) => branch[member] !== undefined && answer[member] === undefined)
        .map((member) => `${name}.${member}`);
      const isEmpty = answerNames.every((member) => branch[member] === undefined);
      const { fields } = parseBranchFields(branch);
      const whole = fields === undefined ? answer : { ...answer, fields };
      return { answer: whole, problems: isEmpty ? [name] : problems };
    }),
    otherwise: {
      name: 'default',
      conditions: [],
      problems: [],
      answer: parseAnswer(enginedata),
    },
    forwardQuery: enginedata.forward_query === true,
  };
}

/** The paths of the mistakes in the branches of a breadcrumb. */
export function breadcrumbProblems(enginedata: JsonObject): readonly string[] {
  return parseBreadcrumb(enginedata).when.flatMap(({ problems }) => problems);
}

const ready = new WeakMap<StoredRule, ParsedBreadcrumb>();

/** The breadcrumb of a resolve rule, parsed once for each rule object: an edit makes a new one. */
export function breadcrumbOf(stored: StoredRule): ParsedBreadcrumb {
  let breadcrumb = ready.get(stored);
  if (breadcrumb === undefined) {
    breadcrumb = parseRule(stored);
    ready.set(stored, breadcrumb);
  }
  return breadcrumb;
}

/**
 * The first branch whose conditions all hold, else the default
 * (docs/design/rendering.md#breadcrumbs).
 */
export function chooseDestination(
  { when, otherwise }: Pick<ParsedBreadcrumb, 'when' | 'otherwise'>,
  context: EvaluationContext,
): Branch<Destination> {
  return chooseBranch(when, context) ?? otherwise;
}

function parseRule({ rule }: StoredRule): ParsedBreadcrumb {
  const parsed = parseBreadcrumb(rule.enginedata ?? {});
  const branch = (one: Branch<BranchTarget>): Branch<Destination> => ({
    ...one,
    answer: { ...destinationOf(one.answer, rule), fields: one.answer.fields },
  });
  return {
    id: rule.id,
    contenttype: rule.contenttype,
    when: parsed.when.map(branch),
    otherwise: branch(parsed.otherwise),
    forwardQuery: parsed.forwardQuery,
    dependencies: dependenciesOf(parsed.when),
  };
}

const answerNames = ['target', 'html', 'status'] as const;

/** The members that a branch of a breadcrumb can have. */
export const branchMembers: readonly string[] = ['if', ...answerNames, 'headers', 'cookies'];

function parseAnswer({ target, html, status }: JsonObject): BranchTarget {
  return {
    target: typeof target === 'string' && isTarget(target) ? target : undefined,
    html: typeof html === 'string' ? html : undefined,
    status: isStatus(status) ? status : undefined,
  };
}

function isStatus(value: Json | undefined): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599;
}

/** The target of a branch as it is written; undefined for missing members. */
interface BranchTarget {
  readonly target: string | undefined;
  readonly html: string | undefined;
  readonly status: number | undefined;
  /** Those of a branch of `when`. */
  readonly fields?: BranchFields;
}

/** Where a branch of a breadcrumb leads, and the fields of the answer there. */
export type Destination = Place & { readonly fields?: BranchFields | undefined };

type Place =
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'redirect'; readonly status: number; readonly target: RedirectTarget }
  | { readonly kind: 'content'; readonly status: number; readonly html: string }
  | { readonly kind: 'bare'; readonly status: number }
  | { readonly kind: 'nothing' };

/** The target of a redirect. */
interface RedirectTarget {
  /** The target as it is written, without its `*` if that stands for the capture. */
  readonly text: string;
  /** Whether the capture of the rule's path is appended. */
  readonly takesCapture: boolean;
  /** Whether it has variables, such as `{splat}`. */
  readonly hasVariables: boolean;
  /** The Location without a query; undefined if it depends on the visit. */
  readonly location: string | undefined;
}

/** The destination of a branch; its own status overrides that of the rule. */
export function destinationOf(
  { target, html, status: own }: BranchTarget,
  { path, httpresponse }: Pick<Rule, 'path' | 'httpresponse'>,
): Place {
  const status = own ?? httpresponse;
  if (target?.startsWith('key:') === true) {
    return { kind: 'key', key: target.slice('key:'.length) };
  }
  if (target !== undefined) {
    const isRedirect = status !== undefined && redirectStatuses.has(status);
    return {
      kind: 'redirect',
      status: isRedirect ? status : 302,
      target: parseTarget(target, hasWildcard(path)),
    };
  }
  if (html !== undefined) return { kind: 'content', status: status ?? 200, html };
  if (status === undefined || redirectStatuses.has(status)) return { kind: 'nothing' };
  return { kind: 'bare', status };
}

/** The parts of a visit that a target may take. */
export interface TargetVisit {
  /** The canonical path that is visited, or the key as a path. */
  readonly path: string;
  readonly query: string;
  /** The authority of the visited origin. */
  readonly host: string;
  /** The part of the path that the `*` of the rule's path stands for. */
  readonly capture: string | undefined;
}

/**
 * The value of Location: ASCII only. No value of the visit changes the target's host, except
 * `{host}`, which is the one that the visitor has asked. Undefined if a value would lead out of the
 * target's path.
 */
export function locationOf(
  { text, takesCapture, hasVariables, location }: RedirectTarget,
  { path, query, host, capture = '' }: TargetVisit,
  forwardsQuery: boolean,
): string | undefined {
  // A target that names the query has it already.
  const added = forwardsQuery && !text.includes('{query}') ? query : '';
  if (!takesCapture && !hasVariables) {
    return added === '' && location !== undefined ? location : normalize(withQuery(text, added));
  }
  const splat = encodePath(capture);
  const template = takesCapture ? `${text}{splat}` : text;
  const values: TargetValues = { splat, path: encodePath(path), query, host };
  const whole = fillTarget(template, values);
  if (!URL.canParse(whole, someOrigin)) return undefined;
  if (!staysBelow(beginningOf(template, host), whole)) return undefined;
  return normalize(withQuery(whole, added));
}

/** The part of a target before the first value, or before its query; at least up to its path. */
function beginningOf(template: string, host: string): string {
  const hosted = template.replace(
    /^(https?:\/\/[^/?#{}]*)\{host\}/i,
    (_, before) => `${before}${host}`,
  );
  const [path = ''] = hosted.split(/[?#]/, 1);
  const [beginning = ''] = path.split(/\{(?:splat|path|query|host|query\.[^{}]*)\}/, 1);
  return /^https?:\/\/[^/]*$/i.test(beginning) ? `${beginning}/` : beginning;
}

function parseTarget(text: string, isWildcard: boolean): RedirectTarget {
  const takesCapture = isWildcard && text.endsWith('*');
  const hasVariables = targetVariables(text).length > 0;
  return {
    text: takesCapture ? text.slice(0, -1) : text,
    takesCapture,
    hasVariables,
    location: takesCapture || hasVariables ? undefined : normalize(text),
  };
}

/** Whether a path still begins the same after a browser has resolved its dot segments. */
function staysBelow(beginning: string, whole: string): boolean {
  // The `x` keeps a beginning that ends with a dot from being parsed as a dot segment.
  const { href } = new URL(`${beginning}x`, someOrigin);
  return new URL(whole, someOrigin).href.startsWith(href.slice(0, -1));
}

function normalize(target: string): string {
  if (!target.startsWith('/')) return new URL(target).href;
  const { pathname, search, hash } = new URL(target, someOrigin);
  return `${pathname.startsWith('//') ? '/' : pathname}${search}${hash}`;
}
