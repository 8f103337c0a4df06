import { readRetryAfter } from '../http/retry-after.ts';
import { Failure } from '../model/failure.ts';
import { isHookHeader } from '../model/hook-header.ts';
import { reportedAnswerBytesMax, retryAfterMsMax } from '../model/limits.ts';
import type { BriefAnswer, BriefRequest } from '../outbound/one-shot-request.ts';
import type { Dialler } from '../outbound/dialler.ts';
import { outboundProblem, type OutboundProblem } from '../outbound/problem.ts';
import { outboundUrl } from '../outbound/url.ts';
import { signatureFields, type SignedMessage } from './sign.ts';

/** Where a message goes, as its hook says it. */
interface Destination {
  readonly url: string;
  readonly method: string;
  /** Fields of the hook's own. Those that isHookHeader refuses are left out. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A message at one attempt: what is signed is what is sent. */
type Message = Omit<SignedMessage, 'nowMs' | 'body'> & {
  /** JSON (RFC 8259). */
  readonly body: Buffer;
};

/** What one attempt came to. */
export interface Attempted {
  /** Undefined where no answer came. */
  readonly status: number | undefined;
  /** What the receiver asked for, as readRetryAfter has it. */
  readonly retryAfterMs: number | undefined;
  /** The first KiB of the answer's content, as text, as it was sent. */
  readonly answer: string;
  /** From the beginning of the attempt to its end. */
  readonly ms: number;
  /** What went wrong; beside a status, only about the content of the answer. */
  readonly problem: OutboundProblem | undefined;
}

/** What may withdraw an attempt: its `problem` is `withdrawn` then, and it is as if never made. */
type Withdrawal = Pick<BriefRequest, 'mayBegin' | 'signal'>;

/** Makes one attempt. Never rejects. */
export type DeliveryAttempt = (
  destination: Destination,
  message: Message,
  withdrawal?: Withdrawal,
) => Promise<Attempted>;

/**
 * Makes attempts, through a guarded dialler and within its time-outs. `now` gives milliseconds
 * since 1970, `monotonicMs` measures durations; `userAgent` is what a hook may say otherwise.
 */
export function createAttempt({
  dialler,
  userAgent,
  now,
  monotonicMs,
}: {
  readonly dialler: Pick<Dialler, 'exchange'>;
  readonly userAgent: string;
  readonly now: () => number;
  readonly monotonicMs: () => number;
}): DeliveryAttempt {
  const known = new WeakMap<Destination, Receiver>();

  function receiverOf(destination: Destination): Receiver | undefined {
    let receiver = known.get(destination);
    if (receiver === undefined) {
      receiver = createReceiver(destination, userAgent);
      if (receiver !== undefined) known.set(destination, receiver);
    }
    return receiver;
  }

  return async (destination, { id, body, keys }, withdrawal = {}) => {
    const startedMs = monotonicMs();
    const receiver = receiverOf(destination);
    let answer = unsendable;
    if (receiver !== undefined) {
      const { origin, target, method } = receiver;
      const signed = await signatureFields({ id, nowMs: now(), body, keys });
      const fields = [...receiver.fields, ...signed];
      answer = await dialler.exchange({ origin, target, method, fields, body, ...withdrawal });
    }
    const { status, retryAfter, content, problem } = answer;
    return {
      status,
      retryAfterMs: readRetryAfter(retryAfter, { nowMs: now(), msMax: retryAfterMsMax }),
      answer: reported(content),
      ms: monotonicMs() - startedMs,
      problem,
    };
  };
}

/** What is the same at every attempt of a hook. */
type Receiver = Omit<BriefRequest, 'body'>;

const unsendable: BriefAnswer = {
  status: undefined,
  retryAfter: undefined,
  content: Buffer.alloc(0),
  problem: outboundProblem('request'),
};

/** Undefined for a URL that none of ours may be. */
function createReceiver(
  { url, method, headers }: Destination,
  userAgent: string,
): Receiver | undefined {
  const parsed = urlOf(url);
  if (parsed === undefined) return undefined;
  const own = Object.entries(headers).filter(([name, value]) => isHookHeader(name, value));
  const saysAgent = own.some(([name]) => name.toLowerCase() === 'user-agent');
  return {
    origin: parsed.origin,
    target: parsed.pathname + parsed.search,
    method,
    fields: [
      'Content-Type',
      'application/json',
      ...(saysAgent ? [] : ['User-Agent', userAgent]),
      ...own.flat(),
    ],
  };
}

function urlOf(text: string): URL | undefined {
  try {
    return outboundUrl(text);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** Bytes of whatever kind, as a person may look at them; no character of them is cut. */
function reported(content: Buffer): string {
  if (content.length <= reportedAnswerBytesMax) return content.toString();
  const beginning = content.subarray(0, reportedAnswerBytesMax);
  return new TextDecoder().decode(beginning, { stream: true });
}
