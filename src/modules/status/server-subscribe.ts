import { hash } from 'node:crypto';
import type { Store } from '../../core/log/store.ts';
import { type Packet, defineOperation } from '../../core/operations/operation.ts';
import { Failure } from '../../core/values/failure.ts';
import type { StaticInput } from '../../core/values/json/static.ts';
import { type Caller, hasScope } from '../../core/values/key.ts';
import { queueOf, requireHookScope } from '../webhooks/operations/deliveries.ts';
import { type StateTopic, type StateWatcher, stateTopics } from './state-watcher.ts';
import { deliveriesPart } from '../webhooks/log/delivery-log.ts';

/** Attempts of a webhook that server.subscribe compares. */
const watchedAttemptsMax = 100;

interface WatchParts {
  readonly stateWatcher: StateWatcher;
  readonly store: Store;
}

const packetName = 'svc1.server.change';
const topicsSchema = { type: 'array', items: { type: 'string', enum: stateTopics } } as const;

const watchInput = {
  type: 'object',
  required: ['topics'],
  properties: {
    topics: {
      ...topicsSchema,
      minItems: 1,
      uniqueItems: true,
      description:
        '`changes` of the log, `times` at which page rules begin or end by `from` and `until`, ' +
        '`series` of metrics, `sources`, `nodes`, `deliveries` of webhooks, `keys`, ' +
        '`certificates`, `configuration`, content of the `cache`.',
    },
    hook: {
      type: 'string',
      nullable: true,
      description: 'The id of a webhook: only its deliveries.',
    },
  },
} as const;

type WatchInput = StaticInput<typeof watchInput>;

/**
 * server.subscribe: which parts of the server's state have changed, at most once a second. It sends
 * no data: the client reads what it shows with the operation for it. A client that was disconnected
 * reads again, so nothing is missed. Refuses with `forbidden`, `not_found`,
 * `rate_limited` and `unavailable`.
 */
export const subscribeToState = defineOperation({
  name: 'svc1.server.subscribe',
  scope: 'read',
  forHookKeys: true,
  effect: 'streams',
  ndjson: ({ data }) => [data],
  summary: 'Says which parts of the state have changed, at most once a second, without the data.',
  failures: ['not_found', 'unavailable'],
  replies: { 200: 'A line of JSON for each packet, without an end.', default: 'A failure.' },
  input: watchInput,
  output: {
    title: 'SubscribedToState',
    type: 'object',
    required: ['seq'],
    properties: { seq: { type: 'integer', description: 'The newest change of the log now.' } },
  },
  packets: {
    r: packetName,
    data: {
      title: 'StateChange',
      type: 'object',
      required: ['topics'],
      properties: { topics: { ...topicsSchema, description: 'What has changed.' } },
    },
  },
  run:
    ({ stateWatcher, store }: WatchParts) =>
    async ({ topics, hook }, { caller }) => {
      requireAccess({ topics, ...(hook !== undefined && { hook }) }, caller);
      const newest = hook === undefined ? undefined : newestDeliveries(store, hook);
      const seq = store.seq();
      const changes = await stateWatcher.watch(topics, caller);
      return {
        kind: 'stream',
        data: { seq },
        stream: (signal) => packets(changes(signal), newest),
      };
    },
});

/** A key for one webhook learns nothing but that this webhook has made deliveries. */
function requireAccess({ topics, hook }: WatchInput, caller: Caller): void {
  if (hook !== undefined && !hasScope(caller, 'read')) requireHookScope(caller, hook);
  if (hasScope(caller, 'read')) return;
  if (hook !== undefined && topics.every((topic) => topic === 'deliveries')) return;
  const message = 'This key may watch only the topic deliveries, of the hook that it is for.';
  throw new Failure('forbidden', message, { field: 'topics' });
}

/** A function that says whether the newest attempts of a hook are others than at its last call. */
function newestDeliveries(store: Store, hook: string): () => boolean {
  const queue = queueOf(store, hook);
  const digest = (): string => {
    const newest: unknown[] = [store.part(deliveriesPart).depth(queue)];
    for (const attempt of store.part(deliveriesPart).attempts(queue, undefined)) {
      newest.push(attempt);
      if (newest.length > watchedAttemptsMax) break;
    }
    return hash('sha1', JSON.stringify(newest));
  };
  let before = digest();
  return () => {
    const now = digest();
    const isChanged = now !== before;
    before = now;
    return isChanged;
  };
}

async function* packets(
  changes: AsyncIterable<readonly StateTopic[]>,
  isHookChanged: (() => boolean) | undefined,
): AsyncGenerator<Packet, void, undefined> {
  for await (const changed of changes) {
    const topics = changed.filter(
      (topic) => topic !== 'deliveries' || isHookChanged === undefined || isHookChanged(),
    );
    if (topics.length > 0) yield { r: packetName, data: { topics } };
  }
}
