import { readRetryAfter } from '../../core/http/date.ts';
import { outboundUrl } from '../../core/outbound/address.ts';
import type { Dialler } from '../../core/outbound/dialler.ts';
import { type OutboundProblem, outboundProblem } from '../../core/outbound/failure.ts';
import type { OneShotOptions, OneShotResponse } from '../../core/outbound/one-shot-request.ts';
import { type Tracer, runInSpan, serverAttributes } from '../../core/report/trace.ts';
import { Failure } from '../../core/values/failure.ts';
import { KIB } from '../../core/values/units.ts';
import { isHookHeader } from './hook.ts';
import { retryAfterMsMax } from './limits.ts';
import { type SignedMessage, signatureFields } from './sign.ts';

/** Bytes of an answer that the record of an attempt holds, as text … */
const reportedAnswerBytesMax = 4 * KIB;

/** … and characters of the names and values of its header fields. */
const reportedFieldCharactersMax = 2 * KIB;

/** The destination of a message, from the fields of its hook. */
interface Destination {
  readonly url: string;
  readonly method: string;
  /** The hook's own header fields. Fields that isHookHeader refuses are not sent. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A message at one attempt. The attempt signs exactly the bytes that it sends. */
type Message = Omit<SignedMessage, 'nowMs' | 'body'> & {
  /** JSON (RFC 8259). */
  readonly body: Buffer;
};

/** The result of one attempt. */
export interface AttemptResult {
  /** Undefined if the receiver sent no answer. */
  readonly status: number | undefined;
  /** The answer's Retry-After, as readRetryAfter parses it. */
  readonly retryAfterMs: number | undefined;
  /** The first KiBs of the answer's content, as text. */
  readonly answer: string;
  /** The answer's first header fields, without secrets: name, value, name, value. */
  readonly answerFields: readonly string[];
  /** The duration of the attempt. */
  readonly ms: number;
  /** Why the attempt failed. With a status, the problem concerns the content of the answer only. */
  readonly problem: OutboundProblem | undefined;
}

/** Cancels an attempt: its `problem` is then `cancelled`, and the sender does not count it. */
type AttemptCancellation = Pick<OneShotOptions, 'mayBegin' | 'signal'>;

/** Makes one attempt. Never rejects. */
export type DeliveryAttempt = (
  destination: Destination,
  message: Message,
  cancellation?: AttemptCancellation,
) => Promise<AttemptResult>;

/**
 * Makes attempts through a dialler that checks addresses and applies its timeouts. `now` gives
 * milliseconds since 1970, `monotonicMs` measures durations. A hook may replace `userAgent`. It
 * sends none of the fields `withheld`, by their lower-case names, and none by which a proxy speaks
 * of its client: a server that trusts this machine would believe them.
 */
export function createAttempt({
  dialler,
  userAgent,
  withheld = [],
  now,
  monotonicMs,
}: {
  readonly dialler: Pick<Dialler, 'exchange'>;
  readonly userAgent: string;
  readonly withheld?: readonly string[];
  readonly now: () => number;
  readonly monotonicMs: () => number;
}): DeliveryAttempt {
  const known = new WeakMap<Destination, RequestTemplate>();

  function templateOf(destination: Destination): RequestTemplate | undefined {
    let template = known.get(destination);
    if (template === undefined) {
      template = createTemplate(destination, { userAgent, withheld });
      if (template !== undefined) known.set(destination, template);
    }
    return template;
  }

  return async (destination, { id, body, keys }, cancellation = {}) => {
    const startedMs = monotonicMs();
    const template = templateOf(destination);
    let answer = unsendable;
    if (template !== undefined) {
      const { origin, target, method } = template;
      const signed = await signatureFields({ id, nowMs: now(), body, keys });
      const sent = [...template.fields, ...signed];
      answer = await dialler.exchange({
        ...{ origin, target, method, fields: sent, body, ...cancellation },
      });
    }
    const { status, retryAfter, fields, content, problem } = answer;
    return {
      status,
      retryAfterMs: readRetryAfter(retryAfter, { nowMs: now(), msMax: retryAfterMsMax }),
      answer: reported(content),
      answerFields: reportedFields(fields),
      ms: monotonicMs() - startedMs,
      problem,
    };
  };
}

/** The part of a request that is the same at every attempt of a hook. */
type RequestTemplate = Omit<OneShotOptions, 'body'>;

const unsendable: OneShotResponse = {
  status: undefined,
  retryAfter: undefined,
  fields: [],
  content: Buffer.alloc(0),
  problem: outboundProblem('request'),
};

/** Undefined for a URL that outboundUrl refuses. */
function createTemplate(
  { url, method, headers }: Destination,
  { userAgent, withheld }: { readonly userAgent: string; readonly withheld: readonly string[] },
): RequestTemplate | undefined {
  const parsed = urlOf(url);
  if (parsed === undefined) return undefined;
  const own = Object.entries(headers)
    .filter(([name, value]) => isHookHeader(name, value))
    .filter(([name]) => !ofProxies.test(name) && !withheld.includes(name.toLowerCase()));
  const hasUserAgent = own.some(([name]) => name.toLowerCase() === 'user-agent');
  return {
    origin: parsed.origin,
    target: parsed.pathname + parsed.search,
    method,
    fields: [
      'Content-Type',
      'application/json',
      ...(hasUserAgent ? [] : ['User-Agent', userAgent]),
      ...own.flat(),
    ],
  };
}

/** Fields by which a proxy speaks of its client (RFC 7239). */
const ofProxies = /^(?:forwarded|x-forwarded-.*)$/i;

function urlOf(text: string): URL | undefined {
  try {
    return outboundUrl(text);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** Decodes the beginning of the content as text, without an incomplete last character. */
function reported(content: Buffer): string {
  if (content.length <= reportedAnswerBytesMax) return content.toString();
  const beginning = content.subarray(0, reportedAnswerBytesMax);
  return new TextDecoder().decode(beginning, { stream: true });
}

/** The value that stands for a secret. */
export const maskedValue = '***';

/** Words in the names of header fields whose values are often secrets. */
const secretWords = ['auth', 'cookie', 'key', 'password', 'secret', 'session', 'sign', 'token'];

/** Whether the value of a header field may be a secret, by its name. */
export function isSecretField(name: string): boolean {
  const lower = name.toLowerCase();
  return lower === 'x-service-hmac' || secretWords.some((word) => lower.includes(word));
}

/**
 * The first header fields of an answer, for the record of an attempt: name, value, name, value.
 * Values that may be secrets are masked, and the rest beyond the limit is left out.
 */
function reportedFields(fields: readonly string[]): readonly string[] {
  const reported: string[] = [];
  let left = reportedFieldCharactersMax;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? '';
    const value = isSecretField(name) ? maskedValue : (fields[at + 1] ?? '');
    left -= name.length + value.length;
    if (left < 0) break;
    reported.push(name, value);
  }
  return reported;
}

/**
 * Makes each attempt at a delivery a trace of its own, which the receiver gets in `traceparent`.
 * The path of a hook is left out: it is often a secret.
 */
export function tracedAttempt(
  attempt: DeliveryAttempt,
  tracer: Pick<Tracer, 'start'>,
): DeliveryAttempt {
  return async (destination, message, cancellation) => {
    const { method } = destination;
    const url = URL.parse(destination.url);
    const span = tracer.start('client', `${method} webhook`, {
      'http.request.method': method,
      ...(url !== null && serverAttributes(url.origin)),
      'waymark.message': message.id,
    });
    const result = await runInSpan(span, () => attempt(destination, message, cancellation));
    const { status, problem } = result;
    const isRefused = status !== undefined && status >= 400;
    span.end({
      attributes: { 'http.response.status_code': status },
      error: isRefused ? String(status) : problem?.code,
    });
    return result;
  };
}
