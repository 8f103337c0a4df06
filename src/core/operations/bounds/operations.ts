import { boundsText } from '../../values/bounds.ts';
import { Failure } from '../../values/failure.ts';
import type { Caller } from '../../values/key.ts';

/**
 * What an operation does for a key that is bound to a part of the site
 * (docs/design/failures.md#bound-keys): `inside` limits itself to that part, `open` tells and
 * changes nothing of the site, `each` does what other operations do, within their limits, and
 * `refused` is about more than one place.
 */
type BoundBehaviour = 'inside' | 'open' | 'each' | 'refused';

/**
 * The behaviour of each operation. The guard refuses one without an entry, and a test finds it:
 * test/core/operations/bounds/operations.test.ts.
 */
export const boundBehaviours: Readonly<Record<string, BoundBehaviour>> = {
  'svc1.batch': 'each',
  'svc1.change.invalidate': 'each',
  ...ofFamily('userinterface', 'inside', [
    ...['insert', 'edit', 'read', 'list', 'invalidate', 'import', 'subscribe', 'follow', 'tree'],
    ...[
      'replace',
      'times',
      'explain',
      'get',
      'get_render',
      'get_content',
      'get_resolve',
      'link.htm',
    ],
  ]),
  ...ofFamily('draft', 'inside', [
    ...['insert', 'edit', 'read', 'list', 'invalidate', 'comment', 'submit', 'approve'],
    ...['preview', 'revoke', 'changes', 'compare', 'publish', 'undo', 'unschedule'],
  ]),
  ...ofFamily('change', 'inside', ['list']),
  ...ofFamily('breadcrumb', 'inside', ['visits', 'token', 'tokens', 'revoke_token']),
  ...ofFamily('visit', 'inside', ['summary']),
  ...ofFamily('session', 'open', ['authenticate', 'unsubscribe', 'insert', 'read', 'end']),
  ...ofFamily('session', 'refused', ['list']),
  ...ofFamily('login', 'refused', ['list', 'end', 'console']),
  ...ofFamily('webhook', 'refused', [
    ...['insert', 'edit', 'read', 'list', 'invalidate', 'rotate', 'pause', 'resume', 'test'],
    ...['replay', 'deliveries', 'delivery', 'health'],
  ]),
  ...ofFamily('event', 'refused', ['insert', 'read', 'list', 'types']),
  ...ofFamily('table', 'refused', ['insert', 'edit', 'read', 'list', 'invalidate', 'counts']),
  ...ofFamily('record', 'refused', [
    ...['insert', 'edit', 'read', 'list', 'invalidate', 'check', 'get', 'schema', 'subscribe'],
  ]),
  ...ofFamily('asset', 'refused', ['list', 'read', 'invalidate']),
  ...ofFamily('key', 'refused', ['insert', 'edit', 'read', 'list', 'revoke']),
  ...ofFamily('server', 'refused', ['status', 'configuration', 'subscribe']),
  ...ofFamily('cache', 'refused', ['purge', 'list', 'status']),
  ...ofFamily('source', 'refused', ['list']),
  ...ofFamily('metrics', 'refused', ['series']),
  ...ofFamily('log', 'refused', ['end', 'rows', 'follow', 'access']),
  ...ofFamily('node', 'refused', ['report', 'list', 'secrets', 'insert']),
  ...ofFamily('outbox', 'refused', ['list', 'retry', 'discard']),
};

function ofFamily(
  family: string,
  behaviour: BoundBehaviour,
  names: readonly string[],
): Readonly<Record<string, BoundBehaviour>> {
  return Object.fromEntries(names.map((name) => [`svc1.${family}.${name}`, behaviour]));
}

/** Throws `forbidden` for an operation that a bound key may not call, and for one without entry. */
export function requireBoundOperation(name: string, { bounds }: Pick<Caller, 'bounds'>): void {
  if (bounds === undefined) return;
  const behaviour = Object.hasOwn(boundBehaviours, name) ? boundBehaviours[name] : undefined;
  if (behaviour !== undefined && behaviour !== 'refused') return;
  throw new Failure(
    'forbidden',
    `This key is bound to ${boundsText(bounds)}, and ${name} is about more than that. Use a key ` +
      'without bounds.',
  );
}
