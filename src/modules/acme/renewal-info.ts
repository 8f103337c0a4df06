import { getCACertificates } from 'node:tls';
import { readRetryAfter } from '../../core/http/date.ts';
import { outboundUrl } from '../../core/outbound/address.ts';
import { type Dialler, createDialler } from '../../core/outbound/dialler.ts';
import { parseCidr } from '../../core/values/network/cidr.ts';
import type { AcmeOrder } from './acme-order.ts';
import { answerText } from './acme-transport.ts';
import { acmeConnectMs, acmeErrorCharactersMax, acmeInfoMs, acmeRequestMs } from './limits.ts';

export const acmeInfoMsMin = 60_000;
export const acmeInfoMsMax = 86_400_000;

/** A question about a certificate. */
export interface RenewalQuestion extends Pick<AcmeOrder, 'directory' | 'ca' | 'allowPrivate'> {
  /** See certificateId. */
  readonly certificateId: string;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** When an ACME server suggests to renew a certificate, in milliseconds since 1970. */
export interface RenewalInfo {
  readonly startMs: number;
  readonly endMs: number;
  /** The URL of a page that says why, if there is one. */
  readonly why: string | undefined;
  /** How long the answer holds. */
  readonly holdsMs: number;
}

/**
 * Asks an ACME server when to renew a certificate (RFC 9773 §4.2); undefined for a server that does
 * not know this. Rejects with an Error if it fails.
 */
export async function readRenewalInfo(question: RenewalQuestion): Promise<RenewalInfo | undefined> {
  const dialler = createDialler({
    allowPrivate: question.allowPrivate.flatMap((text) => parseCidr(text) ?? []),
    connectTimeoutMs: acmeConnectMs,
    timeoutMs: acmeRequestMs,
    ca: [...getCACertificates('default'), ...(question.ca === undefined ? [] : [question.ca])],
  });
  const cut = (): void => {
    dialler.cut();
  };
  // The limits of the dialler are for each piece of an answer.
  const timer = setTimeout(cut, 2 * acmeRequestMs);
  question.signal.addEventListener('abort', cut);
  try {
    const directory = await getJson(dialler, question.directory);
    const base = directory.value.renewalInfo;
    if (typeof base !== 'string') return undefined;
    const url = `${base.replace(/\/$/, '')}/${question.certificateId}`;
    return renewalInfo(await getJson(dialler, url), question.nowMs);
  } finally {
    clearTimeout(timer);
    question.signal.removeEventListener('abort', cut);
    await dialler.close();
  }
}

interface Answer {
  readonly value: Readonly<Record<string, unknown>>;
  readonly retryAfter: string | undefined;
}

function renewalInfo({ value, retryAfter }: Answer, nowMs: number): RenewalInfo {
  const { start, end } = (value.suggestedWindow ?? {}) as Readonly<Record<string, unknown>>;
  const [startMs, endMs] = [Date.parse(String(start)), Date.parse(String(end))];
  if (!(startMs < endMs)) throw new Error('The window that the ACME server suggests is no window.');
  const { explanationURL: page } = value;
  const why = typeof page === 'string' && page.length <= acmeErrorCharactersMax ? page : undefined;
  const givenMs = readRetryAfter(retryAfter, { nowMs, msMax: acmeInfoMsMax });
  return { startMs, endMs, why, holdsMs: Math.max(givenMs ?? acmeInfoMs, acmeInfoMsMin) };
}

async function getJson(dialler: Dialler, text: string): Promise<Answer> {
  const url = outboundUrl(text);
  if (url.protocol !== 'https:') throw new Error(`${url.origin} is not an https URL.`);
  const answer = await dialler.send({
    ...{ origin: url.origin, target: url.pathname + url.search, method: 'GET' },
    ...{ fields: [], body: undefined, signal: new AbortController().signal },
  });
  const content = await answerText(answer.content());
  if (answer.status !== 200) throw new Error(`${url.host} answers ${answer.status}.`);
  const at = answer.fields.findIndex((one, i) => i % 2 === 0 && /^retry-after$/i.test(one));
  const value: unknown = JSON.parse(content);
  if (typeof value !== 'object' || value === null) throw new Error(`${url.host} sends no object.`);
  return { value: { ...value }, retryAfter: at === -1 ? undefined : answer.fields[at + 1] };
}
