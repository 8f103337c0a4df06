import { NoRespondersError, RequestError, type Msg } from '@nats-io/transport-node';
import { isJsonObject, type JsonObject } from '../../core/values/json/json.ts';
import type { ReconnectingNats } from './nats-connection.ts';

/** The settings of a stream that Waymark decides, by their names in the API of JetStream. */
export interface StreamConfig {
  readonly name: string;
  readonly subjects: readonly string[];
  readonly retention: 'limits';
  readonly storage: 'file';
  readonly discard: 'new';
  readonly compression: 'none';
  readonly num_replicas: number;
  readonly max_msgs: -1;
  readonly max_bytes: -1;
  /** Nanoseconds after which a message is removed; 0 for never. */
  readonly max_age: number;
  readonly max_msg_size: -1;
  readonly deny_delete: true;
  readonly deny_purge: true;
  readonly allow_direct: true;
  readonly allow_atomic: true;
  readonly metadata: Readonly<Record<string, string>>;
}

/** The state of a stream, as its leader reports it. */
export interface StreamInfo {
  readonly config: { readonly [K in keyof StreamConfig]?: unknown } & {
    readonly num_replicas: number;
    readonly metadata?: Readonly<Record<string, string>>;
  };
  readonly state: {
    readonly messages: number;
    readonly bytes: number;
    readonly first_seq: number;
    readonly last_seq: number;
    /** When the first one was stored: RFC 3339. */
    readonly first_ts?: string;
    readonly num_deleted?: number;
  };
  readonly cluster?: {
    readonly leader?: string;
    readonly replicas?: readonly {
      readonly name: string;
      readonly current: boolean;
      readonly offline?: boolean;
      /** Nanoseconds since the leader has heard of it. */
      readonly active: number;
      /** Operations that it has not applied. */
      readonly lag?: number;
    }[];
  };
}

/** An error that JetStream answers with: https://docs.nats.io/reference/reference-protocols. */
export class JetStreamError extends Error {
  readonly errCode: number;

  constructor(errCode: number, description: string) {
    super(description);
    this.name = 'JetStreamError';
    this.errCode = errCode;
  }
}

/** The codes of errors that Waymark distinguishes. */
export const jetStreamErrors = {
  noMessage: 10_037,
  notEnabledForAccount: 10_039,
  notEnabled: 10_076,
  tooLarge: 10_054,
  nameInUse: 10_058,
  noStream: 10_059,
  wrongLastSequence: 10_071,
  wrongLastSequenceUnknown: 10_164,
} as const;

/**
 * Calls the API of JetStream: `call('STREAM.INFO.x')`. Rejects with JetStreamError, or with the
 * error of ReconnectingNats.request.
 */
export async function callJetStream<T>(
  nats: ReconnectingNats,
  call: string,
  input: object = {},
  options: { readonly timeoutMs?: number } = {},
): Promise<T> {
  const request = { data: JSON.stringify(input), ...options };
  const answer = await nats.request(`$JS.API.${call}`, request);
  return answerOf(answer) as T;
}

/** The JSON of an answer. Throws JetStreamError for one with an error. */
export function answerOf({ data }: Msg): JsonObject {
  const answer: unknown = JSON.parse(Buffer.from(data).toString());
  if (!isJsonObject(answer)) throw new Error('JetStream has answered without a JSON object.');
  const { error } = answer;
  if (!isJsonObject(error)) return answer;
  const { err_code: code, description } = error;
  throw new JetStreamError(Number(code), typeof description === 'string' ? description : 'error');
}

/** Whether no server answers requests of this kind: JetStream is off, or has no leader now. */
export function hasNoResponder(error: unknown): boolean {
  return (
    error instanceof NoRespondersError || (error instanceof RequestError && error.isNoResponders())
  );
}
