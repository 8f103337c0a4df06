import type { ToolUse } from '../../core/log/change.ts';
import type { Store } from '../../core/log/store.ts';
import { Failure } from '../../core/values/failure.ts';
import { type JsonObject, isJsonObject } from '../../core/values/json/json.ts';
import type { ClientRequest, WaymarkClient } from '../peers/waymark-client.ts';
import { passedToolFields } from './passed-tool.ts';

/** How long a write that was passed on waits until this node has its change. */
const appliedWaitMs = 5_000;

/**
 * Passes an operation that writes on to the centre, with the key of its caller; resolves to the
 * envelope of the answer once this node has the change (docs/design/nodes.md#writes-at-a-follower).
 */
export type PassOn = (name: string, request: PassedRequest) => Promise<JsonObject>;

/** A request of a caller with a key, and the tool that made it. */
export interface PassedRequest extends ClientRequest {
  readonly keyId: string | undefined;
  readonly via: ToolUse | undefined;
}

/** Makes a PassOn, which rejects with the failure of the centre, or with `unavailable`. */
export function createPassOn({
  store,
  client,
  nodeKey,
}: {
  readonly store: Pick<Store, 'waitForRows' | 'seq' | 'keyByHash'>;
  readonly client: WaymarkClient;
  /** Resolves to the API key of this node. */
  readonly nodeKey: () => Promise<string>;
}): PassOn {
  return async (name, { via, keyId, ...request }) => {
    const signed =
      via === undefined
        ? {}
        : passedToolFields(store, via, { name, keyId, apikey: await nodeKey() });
    const fields = { ...request.fields, ...signed };
    const envelope = await client.call(name, { ...request, fields }).catch((error: unknown) => {
      throw error instanceof Failure && error.code !== 'unavailable' ? error : notReached(error);
    });
    const { data } = envelope;
    const seq = isJsonObject(data) ? data.seq : undefined;
    // An answer that comes a little before the change is better than none.
    if (typeof seq === 'number') await untilApplied(store, seq).catch(() => undefined);
    return envelope;
  };
}

async function untilApplied(store: Pick<Store, 'waitForRows' | 'seq'>, seq: number): Promise<void> {
  const signal = AbortSignal.timeout(appliedWaitMs);
  while (store.seq() < seq && !signal.aborted) await store.waitForRows(seq - 1, signal);
}

function notReached(cause: unknown): Failure {
  const { retryAfterSeconds = 5 } = cause instanceof Failure ? cause : {};
  return new Failure(
    'unavailable',
    'The centre did not answer, so this change is not confirmed. Repeat it later with the same vk.',
    { retryAfterSeconds, cause },
  );
}
