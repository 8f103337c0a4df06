import type { Change } from '../../core/log/change.ts';
import type { LoggedDraft, Reads, Store } from '../../core/log/store.ts';
import { authorise } from '../../core/operations/execute.ts';
import { keyHash } from '../../core/operations/keys/authenticate.ts';
import { authorOf, type Call, defineOperation } from '../../core/operations/operation.ts';
import { parseOrigin, requireBreadcrumbKey } from '../../core/operations/place.ts';
import {
  commitOnce,
  keyedRequest,
  reportResult,
} from '../../core/operations/records/idempotency.ts';
import { vkMember } from '../../core/operations/records/schema.ts';
import { isInside } from '../../core/values/bounds.ts';
import { Failure } from '../../core/values/failure.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import type { StaticInput, StaticOutput } from '../../core/values/json/static.ts';
import {
  type Caller,
  type TokenSubject,
  boundsOf,
  breadcrumbTokenPrefix,
  keyEndMs,
} from '../../core/values/key.ts';
import { breadcrumbKeyCharactersMax, keyNameCharactersMax } from '../../core/values/limits.ts';
import { boundsMembers } from '../keys/key-bounds.ts';
import type { KeyUseRecorder } from '../keys/key-use-recorder.ts';
import {
  endCharactersMax,
  keyState,
  keyStates,
  parseEnd,
  requireComing,
  requireEndWithin,
} from '../keys/keys.ts';
import { requireInside, rulesInside } from '../rules/bounds/rules.ts';
import type { ViewConfig } from '../rules/operations/rule-view.ts';
import { userNameCharactersMax, userRolesMax } from '../visitors/limits.ts';
import { breadcrumbCandidates } from './resolve.ts';
import { type BreadcrumbToken, isBreadcrumbToken } from './token.ts';
import { storedRules } from '../rules/log/family.ts';

/** Tokens that a site has, those that have ended or are revoked included. */
export const breadcrumbTokensMax = 5_000;

/** The parts that the operations on tokens need; `now` is in milliseconds since 1970. */
interface TokensParts {
  readonly store: Store;
  readonly newId: () => string;
  readonly randomBytes: (count: number) => Buffer;
  readonly now: () => number;
  readonly view: Pick<ViewConfig, 'base'>;
  readonly keyUses: Pick<KeyUseRecorder, 'last' | 'counted'>;
}

const text = { type: 'string' } as const;
const time = { type: 'string', format: 'date-time' } as const;
const userName = { type: 'string', minLength: 1, maxLength: userNameCharactersMax } as const;

const key = {
  type: 'string',
  minLength: 1,
  maxLength: breadcrumbKeyCharactersMax,
  description: 'The key of the breadcrumb.',
} as const;

const subject = {
  id: text,
  k: text,
  origin: { ...text, description: 'The origin at which the token counts.' },
  user: { ...text, description: 'The person for whom the breadcrumb resolves.' },
  roles: { type: 'array', items: text },
  created: time,
  until: { ...time, description: 'When the token ends.' },
  ...boundsMembers,
} as const;

const subjectNames = ['id', 'k', 'origin', 'user', 'created', 'until'] as const;

const madeToken = {
  title: 'NewBreadcrumbToken',
  type: 'object',
  required: subjectNames,
  properties: {
    ...subject,
    token: {
      ...text,
      description: 'The token itself. Only this answer shows it, and no repeat with its vk.',
    },
    url: { ...text, description: 'The link with the token, which only this answer shows, too.' },
  },
} as const;

const tokenInput = {
  type: 'object',
  required: ['k', 'user', 'until'],
  properties: {
    k: key,
    user: { ...userName, description: 'The person for whom the breadcrumb resolves.' },
    roles: {
      type: 'array',
      nullable: true,
      maxItems: userRolesMax,
      uniqueItems: true,
      items: userName,
      description: 'The roles of the person.',
    },
    until: {
      type: 'string',
      minLength: 1,
      maxLength: endCharactersMax,
      description:
        'When the token ends: a date-time with an offset such as 2026-12-01T07:00Z, or the local ' +
        'time of a time zone such as 2026-12-01T08:00[Europe/Berlin].',
    },
    origin: {
      ...text,
      nullable: true,
      description: 'The origin at which the token counts; that of the request by default.',
    },
  },
} as const;

const tokenName = 'svc1.breadcrumb.token';

/**
 * breadcrumb.token: makes a token, with which anyone resolves one breadcrumb as one person until it
 * ends (docs/design/rendering.md#tokens). Refuses with `not_found` without the breadcrumb,
 * `forbidden` outside of the bounds and after the end of the caller, and `conflict` for the vk of
 * another request, or if there are too many tokens.
 */
export const mintToken = defineOperation({
  name: tokenName,
  scope: 'design',
  effect: 'writes',
  summary:
    'Makes a token that resolves a breadcrumb for one person until it ends. Only this answer ' +
    'shows it.',
  envelope: { vk: vkMember },
  failures: ['not_found', 'conflict'],
  output: madeToken,
  input: tokenInput,
  run: (parts: TokensParts) => async (v, call) => {
    // The link shows its maker what the person sees.
    authorise({ name: tokenName, scope: 'read' }, call.caller);
    const wanted = requireToken(v, call);
    const { subject: breadcrumb, until } = wanted;
    const { caller } = call;
    const { store, newId, randomBytes, now } = parts;
    const [id, token] = [newId(), newTokenText(randomBytes)];
    const made: Omit<BreadcrumbToken, 'id'> = {
      name: breadcrumb.k.slice(0, keyNameCharactersMax),
      scopes: [],
      created: new Date(now()).toISOString(),
      until,
      breadcrumb,
      ...caller.bounds,
      hash: keyHash(token),
    };
    const insert: LoggedDraft = { family: 'key', id, action: 'insert', data: jsonOf(made) };
    const url = linkOf(breadcrumb, token, parts.view);
    const request = keyedRequest('breadcrumb.token', { ...breadcrumb, until }, call);
    const by = { by: authorOf(call), via: call.via, request };
    const written = await commitOnce(store, by, {
      again: (reads, seq) => subjectIn(reads.change(seq)),
      decide: (reads, claim) => {
        requireAllowed(reads, wanted, { caller, nowMs: now() });
        return {
          drafts: [...freed(parts, reads), { ...insert, ...claim }],
          answer: () => jsonOf({ ...shownSubject({ id, ...made }), token, url }),
        };
      },
    });
    const { data: shown, ...result } = reportResult(written, request);
    return { ...result, data: shown as unknown as StaticOutput<typeof madeToken> };
  },
});

const listedToken = {
  title: 'BreadcrumbToken',
  type: 'object',
  required: [...subjectNames, 'state', 'uses', 'last_used'],
  properties: {
    ...subject,
    state: {
      type: 'string',
      enum: [...keyStates, 'revoked'],
      description: 'ending as for keys; ended and revoked tokens are removed to make room.',
    },
    revoked: { ...time, description: 'When it was revoked.' },
    uses: {
      type: 'integer',
      minimum: 0,
      description:
        'How often this node has resolved the breadcrumb for it. The uses that other workers of ' +
        'the node got may be 5 seconds late.',
    },
    last_used: { ...time, type: ['string', 'null'], description: 'When it was last used.' },
  },
} as const;

type ListedToken = StaticOutput<typeof listedToken>;

/** breadcrumb.tokens: the tokens of breadcrumbs, without their texts. */
export const listTokens = defineOperation({
  name: 'svc1.breadcrumb.tokens',
  scope: 'design',
  effect: 'reads',
  summary: 'The tokens of breadcrumbs: for whom they are, when they end, and how they were used.',
  output: {
    title: 'BreadcrumbTokenList',
    type: 'object',
    required: ['rows'],
    properties: { rows: { type: 'array', items: listedToken } },
  },
  input: {
    type: 'object',
    properties: {
      k: { ...key, nullable: true, description: 'The key of one breadcrumb; all by default.' },
      user: { ...userName, nullable: true, description: 'One person; all by default.' },
      origin: { ...text, nullable: true, description: 'One origin; all by default.' },
    },
  },
  run:
    ({ store, keyUses, now }: Pick<TokensParts, 'store' | 'keyUses' | 'now'>) =>
    ({ k, user, origin: given }, { caller }) => {
      const origin = given === undefined ? undefined : parseOrigin(given);
      const isWanted = ({ breadcrumb }: BreadcrumbToken): boolean =>
        (k === undefined || breadcrumb.k === k) &&
        (user === undefined || breadcrumb.user === user) &&
        (origin === undefined || breadcrumb.origin === origin);
      const tokens = store.keys().filter(isBreadcrumbToken).filter(isWanted);
      const [last, nowMs] = [keyUses.last(), now()];
      const rows = tokens
        .filter((one) => isSeen(one, caller))
        .map((one): ListedToken => {
          const { id, revoked } = one;
          return {
            ...shownSubject(one),
            state: revoked === undefined ? keyState(one, nowMs) : 'revoked',
            ...(revoked !== undefined && { revoked }),
            uses: keyUses.counted(id),
            last_used: last.get(id) ?? null,
          };
        });
      return { kind: 'data', data: { rows } };
    },
});

/**
 * breadcrumb.revoke_token: revokes a token at once and for good. Refuses with `not_found`, also
 * outside of the bounds of the caller, and `conflict` for the vk of another request.
 */
export const revokeToken = defineOperation({
  name: 'svc1.breadcrumb.revoke_token',
  scope: 'design',
  effect: 'writes',
  summary: 'Revokes a token of a breadcrumb at once and for good.',
  envelope: { vk: vkMember },
  failures: ['not_found', 'conflict'],
  output: {
    title: 'RevokedBreadcrumbToken',
    type: 'object',
    required: ['id', 'revoked'],
    properties: { id: text, revoked: { const: true } },
  },
  input: { type: 'object', required: ['id'], properties: { id: text } },
  run:
    ({ store, now }: Pick<TokensParts, 'store' | 'now'>) =>
    async ({ id }, call) => {
      const request = keyedRequest('breadcrumb.revoke_token', { id }, call);
      const by = { by: authorOf(call), via: call.via, request };
      const written = await commitOnce(store, by, {
        again: () => ({ id }),
        decide: (reads, claim) => {
          requireOpenToken(reads, id, call.caller);
          const data = { revoked: new Date(now()).toISOString() };
          return {
            drafts: [{ family: 'key', id, action: 'edit', data, ...claim }],
            answer: () => ({ id }),
          };
        },
      });
      return { ...reportResult(written, request), data: { id, revoked: true as const } };
    },
});

/** What a new token is for, and its end: ISO 8601, UTC. */
interface WantedToken {
  readonly subject: TokenSubject;
  readonly until: string;
}

/** Throws `invalid`, and `forbidden` for a breadcrumb outside of the bounds of the caller. */
function requireToken(
  { k, user, roles = [], until, origin: given }: StaticInput<typeof tokenInput>,
  { caller, origin: own }: Call,
): WantedToken {
  requireBreadcrumbKey(k);
  const origin = given === undefined ? own : parseOrigin(given);
  requireInside(caller, { origin, path: k }, 'k');
  const end = parseEnd(until);
  if (end === undefined) {
    throw new Failure('invalid', 'A token must end. Give until a date-time.', { field: 'until' });
  }
  return { subject: { k, origin, user, ...(roles.length > 0 && { roles }) }, until: end };
}

/** Throws as mintToken rejects, for what depends on the state of the site. */
function requireAllowed(
  reads: Reads,
  { subject: { k, origin }, until }: WantedToken,
  { caller, nowMs }: { readonly caller: Caller; readonly nowMs: number },
): void {
  requireComing(until, nowMs);
  requireEndWithin(reads, caller, { name: 'token', until });
  const { bounds } = caller;
  const all = reads.of(storedRules);
  const rules = bounds === undefined ? all : rulesInside(all, bounds);
  if (breadcrumbCandidates(rules, k, { origin, fields: {} }).length > 0) return;
  const message = `There is no breadcrumb with this key at ${origin}. Insert its rule first.`;
  throw new Failure('not_found', message, { field: 'k' });
}

/**
 * Removes the tokens that have ended or are revoked once there are too many. Throws `conflict` if
 * all of them are open.
 */
function freed({ store, now }: TokensParts, reads: Reads): readonly LoggedDraft[] {
  // Most sites have few: reading all for each new one would cost more with every token.
  if (store.counts().keys < breadcrumbTokensMax) return [];
  const tokens = reads.keys().filter(isBreadcrumbToken);
  if (tokens.length < breadcrumbTokensMax) return [];
  const isOver = (one: BreadcrumbToken): boolean =>
    one.revoked !== undefined || keyEndMs(one) <= now();
  const over = tokens.filter(isOver);
  if (over.length === 0) {
    const message = `A site has at most ${breadcrumbTokensMax} tokens. Revoke some first.`;
    throw new Failure('conflict', message);
  }
  return over.map(({ id }) => ({ family: 'key', id, action: 'invalidate', data: {} }));
}

function isSeen({ breadcrumb }: BreadcrumbToken, { bounds }: Caller): boolean {
  return isInside(bounds, { origin: breadcrumb.origin, path: breadcrumb.k });
}

/** Throws `not_found` for a token that is revoked, or that the caller does not see. */
function requireOpenToken(reads: Pick<Reads, 'key'>, id: string, caller: Caller): void {
  const token = reads.key(id);
  if (isBreadcrumbToken(token) && token.revoked === undefined && isSeen(token, caller)) return;
  throw new Failure('not_found', 'There is no token with this id, or it is revoked already.', {
    field: 'id',
  });
}

/** The token that a change has made, without its text and hash. */
function subjectIn(change: Change | undefined): JsonObject {
  if (change === undefined) throw new TypeError('the store logged no change');
  return jsonOf(shownSubject({ id: change.id, ...change.data } as unknown as BreadcrumbToken));
}

/** An object of JSON values, without members that are undefined. */
function jsonOf(value: object): JsonObject {
  return value as JsonObject;
}

function shownSubject(
  token: BreadcrumbToken,
): Omit<StaticOutput<typeof madeToken>, 'token' | 'url'> {
  const { id, created, until = '', breadcrumb } = token;
  return { id, ...breadcrumb, created, until, ...boundsOf(token) };
}

function newTokenText(randomBytes: TokensParts['randomBytes']): string {
  return `${breadcrumbTokenPrefix}${randomBytes(32).toString('base64url')}`;
}

function linkOf(
  { k, origin }: TokenSubject,
  token: string,
  { base }: Pick<ViewConfig, 'base'>,
): string {
  return `${origin}${base}/svc1/userinterface.link.htm?k=${encodeURIComponent(k)}&t=${token}`;
}
