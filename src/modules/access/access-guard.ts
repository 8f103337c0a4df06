import { whenReady } from '../../core/values/when-ready.ts';
import type { AccessConfig, DiskMount } from '../../core/config/config.ts';
import { prefersHtml } from '../../core/http/representation/negotiation.ts';
import { noBody, type FieldList, type Reply } from '../../core/http/reply.ts';
import { isRead, type Fields } from '../../core/http/request.ts';
import type { AccessExplanation } from '../../core/pipeline/explanation.ts';
import { Failure, failureFrom } from '../../core/values/failure.ts';
import { encodePath, sentUrlOf } from '../../core/values/path.ts';
import { unknownSection } from '../../core/pipeline/place-access.ts';
import type { Visitor } from '../../core/http/visitor.ts';
import type { AccessRequest, GuardedRequest } from './access-request.ts';
import {
  conditionsOf,
  networksOf,
  type AccessCondition,
  type ConditionParts,
  type Outcome,
  type Unmet,
} from './conditions.ts';
import { withoutSpellings } from '../../core/http/reading/fields.ts';
import { withoutSpoofed } from './forward.ts';
import { createProtectedPaths } from '../../core/pipeline/protected-paths.ts';
import { unknownAddress } from '../../core/values/network/peer.ts';

/** An admitted request, as its source gets it. */
interface Admitted {
  readonly fields: Fields;
  /** The query, if it is not that of the client. */
  readonly query?: string;
  /** Whether another server has added fields about the client. */
  readonly isPersonal?: true;
  /** As in ContentRequest. */
  readonly password?: string;
  /** The rules that it has passed. */
  readonly passed?: readonly string[];
}

/** An admitted request; or the reply instead. */
export type Admission = Admitted | { readonly reply: Reply };

/**
 * Decides who may have an answer, before a source gets the request: the only place that does
 * (docs/design/access.md). A visitor must satisfy each rule whose paths match.
 */
export interface AccessGuard {
  /**
   * Admits a request, or makes the reply that leads to signing in. Throws or rejects with
   * `unauthenticated`, `forbidden`, `rate_limited` or `unavailable`.
   */
  admit(request: GuardedRequest): Admission | Promise<Admission>;
  /**
   * As admit, for the answer of a page rule that names a section: of this section alone, on top of
   * those of its path. A section that the ini file does not have admits nobody.
   */
  admitTo(name: string, request: GuardedRequest): Admission | Promise<Admission>;
  /** The trailer fields of a client without those that only another server may add. */
  trailersOf(trailers: FieldList): FieldList;
  /**
   * Whether clients may get a reusable answer that depends on some rules, given by their names;
   * undefined if that takes more than their address and password.
   */
  reuseFor(names: readonly string[]): Reply['admits'];
  /** The rules of a place, and whether they let a described visitor in. */
  explain(place: {
    readonly origin: string;
    readonly path: string;
    readonly visitor: Visitor;
  }): readonly AccessExplanation[];
  /** The same for the section that a page rule names. */
  explainNamed(name: string, visitor: Visitor): AccessExplanation;
}

interface Rule extends AccessConfig {
  readonly isDenied: (address: string) => boolean;
  /** Reads the file of `deny_file` for the first time; undefined if that was done. */
  readonly ready: () => Promise<void> | undefined;
  readonly conditions: readonly AccessCondition[];
  /** Its name in Server-Timing and the access log. */
  readonly source: string;
}

/** Creates the guard; undefined without rules. */
export function createAccessGuard(
  rules: readonly AccessConfig[],
  mounts: readonly DiskMount[],
  parts: ConditionParts,
): AccessGuard | undefined {
  if (rules.length === 0) return undefined;
  const prepared = rules.map((rule): Rule => {
    const denied = deniedBy(rule, parts);
    const conditions = conditionsOf(rule, parts);
    return { ...rule, ...denied, conditions, source: `access:${rule.name}` };
  });
  const rulesOf = createProtectedPaths(prepared, mounts);
  const copied = rules.flatMap(({ copy }) => copy);
  const admitThrough = (
    rulesThere: readonly Rule[],
    request: GuardedRequest,
  ): Admission | Promise<Admission> => {
    const fields = withoutSpoofed(request.fields, copied);
    const { passedAccess, inside } = request;
    const isPage = inside === 'page';
    // The same client asks for a rewritten path; its password is no longer among the fields.
    const isAsked = ({ name }: Rule): boolean => isPage || passedAccess?.has(name) !== true;
    const matching = rulesThere.filter(isAsked);
    const [first] = matching;
    if (first === undefined) return { fields };
    for (const { name } of matching) request.accessRules?.add(name);
    const { client } = request;
    if (client === undefined) {
      const passed = { passed: matching.map(({ name }) => name) };
      return admitBy(matching, { ...request, fields }, !isPage, passed);
    }
    if (client.isForeign) throw foreign().of(first.source);
    const asked = { ...request, visitor: client.visitor, fields: client.fields };
    const admission = admitBy(matching, asked, false);
    const described = (one: Admission): Admission => ('reply' in one ? one : { fields });
    return whenReady(admission, described);
  };
  const byName = new Map(prepared.map((rule) => [rule.name, rule]));
  return {
    admit: (request) => admitThrough(rulesOf(request), request),
    admitTo(name, request) {
      const rule = byName.get(name);
      if (rule === undefined) throw noSection(name);
      return admitThrough([rule], request);
    },
    trailersOf: (trailers) => withoutSpellings(trailers, copied),
    reuseFor: (names) => reuseOf(prepared.filter(({ name }) => names.includes(name))),
    explain: ({ origin, path, visitor }) =>
      rulesOf({ origin, path }).map((rule) => explainRule(rule, visitor)),
    explainNamed(name, visitor) {
      const rule = byName.get(name);
      return rule === undefined ? explainNoSection(name) : explainRule(rule, visitor);
    },
  };
}

/**
 * The refusal of a page whose rule names a section that the ini file does not have. It is for its
 * client only: no section is there that marks the answer.
 */
export function noSection(name: string): Failure {
  const says = 'This page is not for everybody.';
  return new Failure('forbidden', says, { source: `access:${name}`, isPrivate: true });
}

/** Explains noSection. */
export function explainNoSection(name: string): AccessExplanation {
  const says =
    name === unknownSection
      ? 'The access of the page rule is not valid and waits in _unknowns_: it is closed.'
      : `The page rule names [access.${name}], which the ini file does not have: it is closed.`;
  return { rule: name, passes: false, status: 403, says };
}

/** Makes the test of addresses for `deny` and `deny_file`; an unknown one may be any of them. */
function deniedBy(
  { deny, denyFile }: AccessConfig,
  { openNetworks }: Pick<ConditionParts, 'openNetworks'>,
): Pick<Rule, 'isDenied' | 'ready'> {
  const denies = networksOf(deny);
  const isInside = (address: string): boolean =>
    denies(address) || (deny.length > 0 && address === unknownAddress);
  if (denyFile === undefined) return { isDenied: isInside, ready: () => undefined };
  const file = openNetworks(denyFile);
  return {
    isDenied: (address) =>
      isInside(address) || address === unknownAddress || file.contains(address),
    ready: () => file.ready(),
  };
}

/** The check of clients for an answer that depends on some rules; as AccessGuard.reuseFor. */
function reuseOf(rules: readonly Rule[]): Reply['admits'] {
  if (!rules.every(({ conditions }) => conditions.every(({ holdsFor }) => holdsFor))) {
    return undefined;
  }
  // Where a password is certain to be read, no source gets it: the answer does not depend on it.
  const readsPassword = rules.some(
    ({ conditions, satisfy: mode }) =>
      mode === 'all' && conditions.some(({ key }) => key === 'password_file'),
  );
  return (client) => {
    if (client.authorization !== undefined && !readsPassword) return false;
    return rules.every(({ isDenied, conditions, satisfy: mode }) => {
      if (isDenied(client.address)) return false;
      const holds = ({ holdsFor }: AccessCondition): boolean => holdsFor?.(client) === true;
      return mode === 'all' || conditions.length === 0
        ? conditions.every(holds)
        : conditions.some(holds);
    });
  };
}

/**
 * Applies rules one after the other; each gets the fields as the one before has left them, and the
 * query and password of the client. `canLead` is whether a browser may be sent to another page.
 */
function admitBy(
  [rule, ...others]: readonly Rule[],
  request: AccessRequest,
  canLead: boolean,
  changes: Omit<Admitted, 'fields'> = {},
): Admission | Promise<Admission> {
  if (rule === undefined) return { ...changes, fields: request.fields };
  const next = (outcome: Outcome): Admission | Promise<Admission> => {
    if (!outcome.isMet) return refusal(rule, outcome, request, canLead);
    const { isMet: _met, fields = request.fields, ...further } = outcome;
    const { password = request.password } = further;
    const asked = { ...request, fields, ...(password !== undefined && { password }) };
    return admitBy(others, asked, canLead, { ...changes, ...further });
  };
  // A failure of a later rule has its own source.
  const outcome = satisfy(rule, request);
  return whenReady(outcome, next);
}

/**
 * Whether a request satisfies a rule. Without a promise if none of its conditions takes time. A
 * failure has the rule as its source.
 */
function satisfy(rule: Rule, request: AccessRequest): Outcome | Promise<Outcome> {
  const fail = (thrown: unknown): never => {
    throw failureFrom(thrown).of(rule.source);
  };
  try {
    const wait = rule.ready();
    const outcome =
      wait === undefined ? decide(rule, request) : wait.then(() => decide(rule, request));
    return outcome instanceof Promise ? outcome.catch(fail) : outcome;
  } catch (thrown) {
    return fail(thrown);
  }
}

function decide(rule: Rule, request: AccessRequest): Outcome | Promise<Outcome> {
  if (rule.isDenied(request.visitor.address)) return { isMet: false, key: 'deny' };
  const { conditions, satisfy: mode } = rule;
  const from = (at: number, so: Outcome): Outcome | Promise<Outcome> => {
    const condition = conditions[at];
    if (condition === undefined) return so;
    const { key } = condition;
    const after = (checked: Outcome): Outcome | Promise<Outcome> => {
      const outcome = checked.isMet ? checked : { ...checked, key };
      if (mode === 'any') {
        if (!outcome.isMet) return from(at + 1, betterOf(so, outcome));
        return withoutUnused(outcome, conditions.slice(at + 1), request);
      }
      return outcome.isMet ? from(at + 1, { ...so, ...outcome }) : outcome;
    };
    const fields = so.isMet ? so.fields : undefined;
    const outcome = condition.check(fields === undefined ? request : { ...request, fields });
    return whenReady(outcome, after);
  };
  const hasNone = conditions.length === 0;
  return from(0, mode === 'all' || hasNone ? { isMet: true } : { isMet: false });
}

/** A condition that holds, without the credentials for those that were not checked. */
function withoutUnused(
  outcome: Outcome,
  [unused, ...others]: readonly AccessCondition[],
  request: AccessRequest,
): Outcome | Promise<Outcome> {
  if (!outcome.isMet || unused === undefined) return outcome;
  const { fields = request.fields } = outcome;
  const { authorization: password } = fields;
  const next = (kept: Fields): Outcome | Promise<Outcome> => {
    const taken = kept === fields || password === undefined ? {} : { fields: kept, password };
    return withoutUnused({ ...outcome, ...taken }, others, request);
  };
  const kept = unused.without?.(fields) ?? fields;
  return whenReady(kept, next);
}

/** Of two reasons, the one that helps the client further: an answer, then a challenge. */
function betterOf(before: Outcome, now: Unmet): Unmet {
  if (before.isMet || now.reply !== undefined) return now;
  if (before.reply !== undefined || before.challenge !== undefined) return before;
  return now.challenge === undefined && before.says !== undefined ? before : now;
}

/** The reply to a client that a rule refuses. Throws `unauthenticated` or `forbidden`. */
function refusal(
  rule: Rule,
  { key, reply, challenge, status, signedInAs, says = 'This page is not for everybody.' }: Unmet,
  request: AccessRequest,
  canLead: boolean,
): Admission {
  const reason = key ?? 'satisfy';
  if (reply !== undefined) return { reply: { ...reply, reason } };
  if (challenge === undefined) {
    throw new Failure('forbidden', says, {
      source: rule.source,
      reason,
      ...(status !== undefined && { status }),
      ...(signedInAs !== undefined && { signedIn: { as: signedInAs, signOut: signOutOf(rule) } }),
    });
  }
  // A page rule may protect the page to sign in by mistake: it must not lead to itself.
  const isThere = rule.login === request.path;
  if (rule.login !== undefined && canLead && !isThere && isNavigation(request)) {
    return { reply: { ...signIn(rule, rule.login, request), reason } };
  }
  throw new Failure('unauthenticated', 'This page is only for those who have signed in.', {
    source: rule.source,
    reason,
    challenge,
  });
}

/** Where visitors of Waymark's own sign-in sign out; undefined if a rule names another page. */
function signOutOf({ login }: Rule): string | undefined {
  const folder = /^(.*\/svc1\/login\/)sign-in$/.exec(login ?? '')?.[1];
  return folder === undefined ? undefined : `${folder}sign-out`;
}

/** Whether a browser opens a page, so that it can be sent to another one. */
function isNavigation({ method, fields }: AccessRequest): boolean {
  const mode = fields['sec-fetch-mode'] ?? 'navigate';
  return isRead(method) && mode === 'navigate' && prefersHtml(fields.accept);
}

/** The redirect to the page where people sign in, with the way back. */
function signIn({ source, providers }: Rule, login: string, request: AccessRequest): Reply {
  // The way back is a path of this origin: two slashes or a backslash would begin another host.
  const back = sentUrlOf({ ...request, origin: '' }).replace(/^[/\\]+/, '/');
  const at = providers.length === 0 ? '' : `&provider=${providers.join(',')}`;
  const location = `${encodePath(login)}?return_to=${encodeURIComponent(back)}${at}`;
  return {
    status: 302,
    fields: ['Location', location, 'Content-Length', '0', 'Cache-Control', 'no-store'],
    body: noBody,
    source,
  };
}

function foreign(): Failure {
  return new Failure('forbidden', 'Pages of other origins cannot read what is protected.');
}

function explainRule(rule: Rule, visitor: Visitor): AccessExplanation {
  const { name, conditions, satisfy: mode, isDenied } = rule;
  if (visitor.address !== unknownAddress && isDenied(visitor.address)) {
    const says = `[access.${name}] refuses the address by \`deny\` or \`deny_file\`.`;
    return { rule: name, passes: false, status: 403, says };
  }
  const seen = conditions.map((one) => ({ key: one.key, holds: one.expect(visitor) }));
  const named = (holds: boolean | undefined): string =>
    seen
      .filter((one) => one.holds === holds)
      .map(({ key }) => `\`${key}\``)
      .join(', ');
  const [yes, no, open] = [named(true), named(false), named(undefined)];
  const start = `[access.${name}] (satisfy = ${mode})`;
  if (mode === 'all' ? no === '' && open === '' : yes !== '' || conditions.length === 0) {
    const by = yes === '' ? ': no network of `deny` has the address' : ` by ${yes}`;
    return { rule: name, passes: true, says: `${start} lets the visitor in${by}.` };
  }
  if (mode === 'all' ? no === '' : open !== '') {
    return { rule: name, passes: null, says: `${start} lets in those whom ${open} lets in.` };
  }
  const isSigned = visitor.user() !== undefined;
  const canSignIn = !isSigned && conditions.some(({ key }) => key === 'users' || key === 'roles');
  const says = `${start} refuses the visitor by ${no}.`;
  return { rule: name, passes: false, status: canSignIn ? 401 : 403, says };
}
