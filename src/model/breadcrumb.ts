import { millionths, parseConditions, type Condition } from './condition.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import { breadcrumbBranchesMax, breadcrumbKeyCharactersMax } from './limits.ts';

/** What a breadcrumb comes to when the conditions of a branch hold (contract §6). */
export interface Branch {
  /** `when[0]`, `when[1]` …, or `default`. */
  readonly name: string;
  /** In the order in which they are written. */
  readonly conditions: readonly Condition[];
  readonly target: string | undefined;
  readonly html: string | undefined;
  readonly status: number | undefined;
  /** What in it says nothing, as paths such as `when[0].if.colour`: it never wins then. */
  readonly problems: readonly string[];
}

/** The enginedata of a resolve rule. */
export interface Breadcrumb {
  readonly when: readonly Branch[];
  /** What holds where no other branch does; it may come to nothing. */
  readonly otherwise: Branch;
  readonly forwardQuery: boolean;
}

/**
 * Reads the enginedata of a resolve rule (contract §6). A branch with anything in it that cannot be
 * understood is kept, with its problems named.
 */
export function parseBreadcrumb(enginedata: JsonObject): Breadcrumb {
  const { when, forward_query: forwardQuery } = enginedata;
  const branches = Array.isArray(when) ? (when as readonly Json[]) : [];
  return {
    when: withShares(branches.slice(0, breadcrumbBranchesMax).map(parseBranch)),
    otherwise: { name: 'default', conditions: [], problems: [], ...parseAnswer(enginedata) },
    forwardQuery: forwardQuery === true,
  };
}

/** The paths of what cannot be understood in the branches of a breadcrumb. */
export function breadcrumbProblems(enginedata: JsonObject): readonly string[] {
  return parseBreadcrumb(enginedata).when.flatMap(({ problems }) => problems);
}

/**
 * Whether a text can be a target (contract §6): an http(s) URL without a user, a path on this site,
 * or `key:` with another breadcrumb's key; never a script. A `*` may stand at its end, behind the
 * host.
 */
export function isTarget(text: string): boolean {
  if (text.length > targetCharactersMax) return false;
  if (text.startsWith('key:')) return isBreadcrumbKey(text.slice('key:'.length));
  if (/[\0-\x20\x7f\\]/.test(text)) return false;
  if (text.startsWith('/')) return !text.startsWith('//');
  if (!/^https?:\/\/[^/?#*]+(?:[/?#]|$)/i.test(text) || !URL.canParse(text)) return false;
  const { username, password } = new URL(text);
  return username === '' && password === '';
}

/**
 * Whether a text can be a breadcrumb's key: 1 to 512 characters, none of them a control character.
 */
export function isBreadcrumbKey(text: string): boolean {
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  return text !== '' && text.length <= breadcrumbKeyCharactersMax && !/[\0-\x1f\x7f]/.test(text);
}

const targetCharactersMax = 4_096;

function parseBranch(written: Json, at: number): Branch {
  const name = `when[${at}]`;
  if (!isJsonObject(written)) {
    const nothing = { target: undefined, html: undefined, status: undefined };
    return { name, conditions: [], problems: [name], ...nothing };
  }
  const answer = parseAnswer(written);
  const { conditions, unreadable } = parseConditions(isJsonObject(written.if) ? written.if : {});
  return {
    name,
    conditions,
    ...answer,
    problems: [
      // A branch whose conditions were forgotten, or misspelt, would be everybody's.
      ...(isJsonObject(written.if) ? [] : [`${name}.if`]),
      ...unreadable.map((condition) => `${name}.if.${condition}`),
      ...answerNames
        .filter((member) => written[member] !== undefined && answer[member] === undefined)
        .map((member) => `${name}.${member}`),
      ...(answerNames.every((member) => written[member] === undefined) ? [name] : []),
    ],
  };
}

const answerNames = ['target', 'html', 'status'] as const;

/**
 * Gives each percentage the visitors behind those of the one before it: 30, 30 and 40 make all,
 * and each is that share of whoever meets its other conditions.
 */
function withShares(branches: readonly Branch[]): readonly Branch[] {
  let taken = 0;
  return branches.map((branch) => {
    if (branch.problems.length > 0) return branch;
    const conditions = branch.conditions.map((condition) => {
      if (condition.name !== 'percent') return condition;
      const from = taken;
      taken = (taken + condition.share) % millionths;
      return { ...condition, from };
    });
    return { ...branch, conditions };
  });
}

function parseAnswer({
  target,
  html,
  status,
}: JsonObject): Pick<Branch, (typeof answerNames)[number]> {
  return {
    target: typeof target === 'string' && isTarget(target) ? target : undefined,
    html: typeof html === 'string' ? html : undefined,
    status: isStatus(status) ? status : undefined,
  };
}

function isStatus(value: Json | undefined): value is number {
  return Number.isInteger(value) && Number(value) >= 200 && Number(value) <= 599;
}
