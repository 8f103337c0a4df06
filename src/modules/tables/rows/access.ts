import type { Call } from '../../../core/operations/operation.ts';
import type { RecordOperation } from '../../../core/operations/records/family.ts';
import { Failure } from '../../../core/values/failure.ts';
import { type Caller, type Scope, hasScope, isScope } from '../../../core/values/key.ts';
import type { Row } from '../row.ts';
import type { TableDefinition } from '../table.ts';

/** An action on the rows of a table. */
type TableAction = 'read' | 'insert' | 'edit';

/**
 * The rows that a caller may act on: all rows, by a scope of its key or because anonymous callers
 * may; its own rows, as a signed-in user; or none.
 */
type Extent = 'scope' | 'anonymous' | 'own' | 'none';

/** The access of a caller to a table. */
export interface TableAccess {
  readonly read: Extent;
  readonly insert: Extent;
  readonly edit: Extent;
  /** The name of the signed-in user; undefined if there is none. */
  readonly user: string | undefined;
}

type AccessRules = Pick<TableDefinition, 'name' | 'owner' | TableAction>;

/**
 * The access of a caller to a table (docs/design/records.md#access). The scopes that a table names
 * replace its default scope; `anonymous` and `user` are added to it.
 */
export function accessTo(
  table: AccessRules,
  caller: Pick<Caller, 'scopes'>,
  user: string | undefined,
): TableAccess {
  const extent = (action: TableAction): Extent => {
    const entries = table[action] ?? [];
    if (scopesFor(table, action).some((scope) => hasScope(caller, scope))) return 'scope';
    const isOwn = entries.includes('user') && user !== undefined;
    // A user that inserts a row becomes its owner, also if anonymous callers may insert rows.
    if (isOwn && action === 'insert') return 'own';
    if (entries.includes('anonymous')) return 'anonymous';
    return isOwn ? 'own' : 'none';
  };
  return { read: extent('read'), insert: extent('insert'), edit: extent('edit'), user };
}

/** The scopes that permit an action on all rows of a table. */
export function scopesFor(table: AccessRules, action: TableAction): readonly Scope[] {
  const named = (table[action] ?? []).filter(isScope);
  const usual: readonly Scope[] = [action === 'read' ? 'record.read' : 'record.write'];
  return (named.length > 0 ? named : usual).map((scope): Scope => {
    // A caller with the scope for this table alone may do it, too.
    return scope === 'record.read' || scope === 'record.write' ? `${scope}:${table.name}` : scope;
  });
}

/** Whether a caller may do something with a row. */
export function mayAccess(
  { user, ...extents }: TableAccess,
  action: TableAction,
  { owner }: AccessRules,
  row: Row,
): boolean {
  const extent = extents[action];
  if (extent !== 'own') return extent !== 'none';
  return owner !== undefined && user !== undefined && row[owner] === user;
}

/** The action that an operation on rows needs. */
export function actionOf(operation: RecordOperation): TableAction {
  if (operation === 'insert') return 'insert';
  return operation === 'edit' || operation === 'invalidate' ? 'edit' : 'read';
}

/**
 * The failure for a caller without access. It is the same for a table that does not exist, so that
 * it reveals no names of tables.
 */
export function noAccess(
  operation: RecordOperation,
  table: string,
  { keyId }: Pick<Caller, 'keyId'>,
): Failure {
  const scope = `record.${actionOf(operation) === 'read' ? 'read' : 'write'}:${table}`;
  const what = `record.${operation} on ${JSON.stringify(table)}`;
  if (keyId !== undefined) {
    const message = `This key may not call ${what}: it lacks the scope ${scope}, or another one.`;
    return new Failure('forbidden', message);
  }
  const message = `${what} needs an API key with the scope ${scope}, or a user who may do it.`;
  return new Failure('unauthenticated', message);
}

/** Whether a page of this site, or a program that is no browser, has caused a call. */
export function isSameOrigin(
  { fields, origin: own }: Pick<Call, 'fields' | 'origin'>,
  isOwnOrigin: (origin: string) => boolean,
): boolean {
  // A browser adds a cookie by itself, but no bearer token.
  if (/^bearer /i.test(fields.authorization ?? '')) return true;
  const { origin, 'sec-fetch-site': site } = fields;
  // Browsers send Origin with every POST and every upgrade; other programs need not.
  const isOwn = origin === undefined || origin === own || isOwnOrigin(origin);
  return isOwn && (site === undefined || site === 'same-origin' || site === 'none');
}

/**
 * Throws `forbidden` for a call that a page of another site has caused: the browser would send the
 * cookie of the user with it.
 */
export function requireSameOrigin(
  call: Pick<Call, 'fields' | 'origin'>,
  isOwnOrigin: (origin: string) => boolean,
): void {
  if (isSameOrigin(call, isOwnOrigin)) return;
  throw new Failure(
    'forbidden',
    'A user may do this from a page of this site only. Send the request from the same origin.',
  );
}
