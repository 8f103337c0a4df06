import { whenReady } from '../../core/values/when-ready.ts';
import type { AccessConfig } from '../../core/config/config.ts';
import type { FieldList, Reply } from '../../core/http/reply.ts';
import { type Fields, isRead } from '../../core/http/request.ts';
import { type User, type Visitor, type VisitorNeeds, needsUser } from '../../core/http/visitor.ts';
import type { ServerPlaces } from '../../core/outbound/server-places.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import type { ReuseClient } from '../../core/values/lazy-packages.ts';
import { Networks, comparableAddress } from '../../core/values/network/networks.ts';
import { unknownAddress } from '../../core/values/network/peer.ts';
import { parseUnixUrl, unixScheme } from '../../core/values/network/unix-socket.ts';
import type { AccessRequest } from './access-request.ts';
import { type ForwardTo, askForward, withoutSpoofed } from './forward.ts';
import type { NetworkFile } from './network-file.ts';
import type { PasswordFile } from './password-hash.ts';
import { type Passwords, basicCredentials } from './passwords.ts';
import { type LinkKeyFile, verifyLink } from './signed-links.ts';

/** Why a condition does not hold. */
export interface Unmet {
  readonly isMet: false;
  /** The key of the condition in the ini file. */
  readonly key?: string;
  /** The challenge for a client that can still sign in (RFC 9110 §11.6.1). */
  readonly challenge?: string;
  /** The answer of another server. */
  readonly reply?: Reply;
  /** A sentence for the client. */
  readonly says?: string;
  /** The HTTP status of the refusal, if it is not 403. */
  readonly status?: number;
  /** The name of the visitor, who has signed in by `[login]` and is not among the users. */
  readonly signedInAs?: string;
}

/** A condition that holds, and the fields of the request for its source. */
interface Met {
  readonly isMet: true;
  readonly fields?: Fields;
  /** The query for the source, if it is not that of the request. */
  readonly query?: string;
  /** The field Authorization, if it is no longer among the fields. */
  readonly password?: string;
  /** Whether the fields say who the client is. */
  readonly isPersonal?: true;
}

/** Whether a condition holds. */
export type Outcome = Met | Unmet;

/** One condition of an access rule. */
export interface AccessCondition {
  /** Its key of the ini file. */
  readonly key: string;
  check(request: AccessRequest): Outcome | Promise<Outcome>;
  /**
   * Whether it is known at once that it holds, for an answer that is reused; undefined for a
   * condition that needs the whole request.
   */
  readonly holdsFor?: (client: ReuseClient) => boolean;
  /** The fields without a credential for this condition alone, where another one lets in. */
  readonly without?: (fields: Fields) => Fields | Promise<Fields>;
  /** Whether it holds for a described visitor; undefined if a description cannot tell. */
  expect(visitor: Visitor): boolean | undefined;
}

/** What the conditions of all rules share. */
export interface ConditionParts {
  readonly passwords: Passwords;
  readonly openFile: (file: string) => PasswordFile;
  readonly openKeys: (file: string) => LinkKeyFile;
  readonly openNetworks: (file: string) => NetworkFile;
  readonly dialler: () => Dialler;
  readonly places: ServerPlaces;
  /**
   * The signed-in user of a client, if its cookies alone decide; undefined if fields of the request
   * may name another one.
   */
  readonly userOf?: ((client: ReuseClient) => User | undefined) | undefined;
}

const met: Met = { isMet: true };
const refused: Unmet = { isMet: false };
const needsLocation: VisitorNeeds = { user: false, location: true };

/** Makes the conditions of a rule, those first that take no time. */
export function conditionsOf(
  rule: AccessConfig,
  parts: ConditionParts,
): readonly AccessCondition[] {
  const { allow, countries, denyCountries, users, roles, providers } = rule;
  const { linkKeyFile, passwordFile, forward, clientCertificate } = rule;
  const conditions: AccessCondition[] = [];
  if (clientCertificate !== undefined) conditions.push(ofCertificate(rule.certificateNames));
  if (allow.length > 0) {
    const isInside = networksOf(allow);
    const allowed = ofVisitor('allow', undefined, ({ address }) => isInside(address));
    conditions.push({ ...allowed, holdsFor: ({ address }) => isInside(address) });
  }
  if (countries.length > 0) {
    conditions.push(
      ofVisitor('countries', needsLocation, (visitor) => {
        const { country } = visitor.location();
        if (country !== undefined) return countries.includes(country);
        return countries.includes(unknownCountry) && hasNoCountry(visitor);
      }),
    );
  }
  if (denyCountries.length > 0) {
    conditions.push(
      ofVisitor('deny_countries', needsLocation, (visitor) => {
        const { country } = visitor.location();
        if (country !== undefined) return !denyCountries.includes(country);
        return !denyCountries.includes(unknownCountry) && hasNoCountry(visitor);
      }),
    );
  }
  if (users.length > 0) {
    const isAny = users.includes('yes');
    const isNamed = ({ name }: User): boolean => isAny || users.includes(name);
    conditions.push(ofUser('users', { ...parts, providers }, isNamed));
  }
  if (roles.length > 0) {
    const hasRole = (user: User) => user.roles.some((role) => roles.includes(role));
    conditions.push(ofUser('roles', { ...parts, providers }, hasRole));
  }
  if (linkKeyFile !== undefined) conditions.push(ofLink(parts.openKeys(linkKeyFile)));
  if (passwordFile !== undefined) conditions.push(ofPassword(rule.name, passwordFile, parts));
  if (forward !== undefined) conditions.push(ofForward(rule, forward, parts));
  return conditions;
}

/** Stands for clients without a country, as proxies send it. */
const unknownCountry = 'XX';

/**
 * Whether a client is known to have no country: its address is of a private network, or neither the
 * database nor the proxy knows it. If there was neither, the client may be of any country.
 */
function hasNoCountry(visitor: Visitor): boolean {
  return visitor.location().isLookedUp === true || isPrivate(visitor.address);
}

const isPrivate = networksOf(
  [
    ...['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', '169.254.0.0/16'],
    ...['127.0.0.0/8', '::1/128', 'fc00::/7', 'fe80::/10'],
  ].map((text) => ({ text })),
);

/** A test of addresses for some networks; an unknown address is in none of them. */
export function networksOf(
  cidrs: readonly { readonly text: string }[],
): (address: string) => boolean {
  const networks = Networks.parse(cidrs.map(({ text }) => text));
  if (networks === undefined) throw new TypeError('a network of the configuration is invalid');
  if (cidrs.length === 0) return () => false;
  return (address) => {
    const comparable = comparableAddress(address);
    return comparable !== undefined && networks.contains(comparable);
  };
}

/** A certificate that is valid at the moment, with one of some names; no names stand for any. */
function ofCertificate(names: readonly string[]): AccessCondition {
  const unmet = (says: string, status?: number): Unmet => ({
    isMet: false,
    says,
    ...(status !== undefined && { status }),
  });
  return {
    key: 'client_certificate',
    check({ visitor, origin }) {
      const client = visitor.certificate() ?? { state: 'not_asked' };
      if (client.state === 'refused') return unmet(client.says);
      if (client.state === 'none') return unmet('This page needs a client certificate.');
      if (client.state === 'not_asked') {
        if (!origin.startsWith('https:')) return unmet('This page needs a client certificate.');
        // The client may ask again on a connection of this host alone (RFC 9110 §15.5.20).
        const why = 'whose TLS server name (SNI) is this host';
        return unmet(`This page needs a client certificate on a connection ${why}.`, 421);
      }
      const { certificate } = client;
      if (certificate.endMs <= visitor.nowMs) return unmet('The client certificate has ended.');
      const isNamed = names.length === 0 || certificate.names.some((one) => names.includes(one));
      return isNamed ? met : unmet('The client certificate has no name that may see this page.');
    },
    expect: () => undefined,
  };
}

function ofVisitor(
  key: string,
  needs: VisitorNeeds | undefined,
  holds: (visitor: Visitor) => boolean,
): AccessCondition {
  const outcome = (visitor: Visitor): Outcome => (holds(visitor) ? met : refused);
  return {
    key,
    check({ visitor }) {
      const wait = needs === undefined ? undefined : visitor.prepare(needs);
      return wait === undefined ? outcome(visitor) : wait.then(() => outcome(visitor));
    },
    expect: (visitor) => (isVague(visitor) ? undefined : holds(visitor)),
  };
}

/** Whether a description of a visitor does not say where it is. */
function isVague(visitor: Visitor): boolean {
  return visitor.address === unknownAddress && visitor.location().country === undefined;
}

function ofUser(
  key: string,
  { userOf, providers }: Pick<ConditionParts, 'userOf'> & { readonly providers: readonly string[] },
  fits: (user: User) => boolean,
): AccessCondition {
  const isOfProvider = ({ provider = '' }: User): boolean =>
    providers.length === 0 || providers.includes(provider);
  const holds = (user: User): boolean => isOfProvider(user) && fits(user);
  const outcome = (visitor: Visitor): Outcome => {
    const user = visitor.signedInUser();
    // Who has signed in elsewhere can still sign in at the right provider.
    if (user === undefined || !isOfProvider(user)) return { isMet: false, challenge: 'Bearer' };
    if (holds(user)) return met;
    return user.provider === undefined ? refused : { ...refused, signedInAs: user.name };
  };
  return {
    key,
    check({ visitor }) {
      const wait = visitor.prepare(needsUser);
      return wait === undefined ? outcome(visitor) : wait.then(() => outcome(visitor));
    },
    expect(visitor) {
      const user = visitor.user();
      if (user === undefined) return false;
      // A described user has no provider.
      return user.provider === undefined && providers.length > 0 && fits(user)
        ? undefined
        : holds(user);
    },
    ...(userOf !== undefined && {
      holdsFor(client) {
        const user = userOf(client);
        return user !== undefined && holds(user);
      },
    }),
  };
}

function ofLink(file: LinkKeyFile): AccessCondition {
  const decide = (request: AccessRequest): Outcome => {
    if (!isRead(request.method)) return refused;
    const link = verifyLink(file.keys(), request, request.visitor.nowMs);
    // The source, and a cache in front of it, need not know the link.
    if (link.state === 'valid') return { isMet: true, query: link.query };
    return link.state === 'ended' ? { isMet: false, says: 'This link has ended.' } : refused;
  };
  return {
    key: 'link_key_file',
    check(request) {
      const wait = file.prepare();
      return wait === undefined ? decide(request) : wait.then(() => decide(request));
    },
    expect: () => undefined,
  };
}

function ofPassword(
  rule: string,
  file: string,
  { passwords, openFile }: Pick<ConditionParts, 'passwords' | 'openFile'>,
): AccessCondition {
  const users = openFile(file);
  const wrong: Unmet = { isMet: false, challenge: `Basic realm="${rule}", charset="UTF-8"` };
  // The password is for this server, not for the sources of its pages.
  const right = ({ authorization: _taken, ...fields }: Fields, password = ''): Met => {
    const kept = Object.assign(Object.create(null) as Record<string, string>, fields);
    return { isMet: true, fields: kept, password };
  };
  const decide = ({ fields, visitor, password }: AccessRequest): Outcome | Promise<Outcome> => {
    const authorization = fields.authorization ?? password;
    const sent = basicCredentials(authorization);
    if (sent === undefined) return wrong;
    const isRight = passwords.isRight(sent, users.hashes(), visitor.address);
    return whenReady(isRight, (found) => (found ? right(fields, authorization) : wrong));
  };
  return {
    key: 'password_file',
    check(request) {
      const wait = users.prepare();
      return wait === undefined ? decide(request) : wait.then(() => decide(request));
    },
    without(fields) {
      const name = basicCredentials(fields.authorization)?.name;
      if (name === undefined) return fields;
      const kept = () => (users.hashes().has(name) ? (right(fields).fields ?? fields) : fields);
      const wait = users.prepare();
      return wait === undefined ? kept() : wait.then(kept);
    },
    holdsFor: ({ authorization }) =>
      users.prepare() === undefined && passwords.isRemembered(authorization, users.hashes()),
    expect: () => undefined,
  };
}

function ofForward(
  { name, copy }: Pick<AccessConfig, 'name' | 'copy'>,
  forward: string,
  { dialler, places }: Pick<ConditionParts, 'dialler' | 'places'>,
): AccessCondition {
  const to = { ...serverOf(forward), copy, source: `access:${name}` };
  return {
    key: 'forward',
    async check(request) {
      const decision = await askForward({ dialler: dialler(), places }, to, request);
      if (!decision.isAllowed) return { isMet: false, reply: decision.reply };
      if (copy.length === 0) return met;
      const fields = withCopied(request.fields, copy, decision.fields);
      return { isMet: true, fields, isPersonal: true };
    },
    expect: () => undefined,
  };
}

/** The server of a URL, or of a unix socket with a path. */
function serverOf(forward: string): Pick<ForwardTo, 'origin' | 'target'> {
  const socket = parseUnixUrl(forward);
  if (socket !== undefined) {
    const { socketPath, target } = socket;
    return { origin: unixScheme + socketPath, target: target === '' ? '/' : target };
  }
  const { origin, pathname, search } = new URL(forward);
  return { origin, target: pathname + search };
}

/** The fields of a request with those of another server in place of the client's. */
function withCopied(fields: Fields, copy: readonly string[], copied: FieldList): Fields {
  const others = Object.create(null) as Record<string, string | undefined>;
  Object.assign(others, withoutSpoofed(fields, copy));
  for (let at = 0; at < copied.length; at += 2) others[copied[at] ?? ''] = copied[at + 1];
  return others;
}
