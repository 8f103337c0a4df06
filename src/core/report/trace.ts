import { AsyncLocalStorage } from 'node:async_hooks';
import type { ClientAddress, Peer } from '../values/network/peer.ts';
import { unixScheme } from '../values/network/unix-socket.ts';
import type { AccessEntry } from './access-entry.ts';

/** What a span says about its work; the names are those of OpenTelemetry's conventions. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

/** The kinds of OpenTelemetry: a request to this server, one to another, or work within. */
export type SpanKind = 'server' | 'client' | 'internal';

/** How the work of a span has ended. */
export interface SpanEnd {
  readonly attributes?: SpanAttributes;
  /** `error.type`, if the work has failed: a code or a status. */
  readonly error?: string | undefined;
}

/** A piece of work in a trace, from its beginning to its end. */
export interface TraceSpan {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** The header fields that pass the trace on (W3C Trace Context §3): name, value … */
  readonly fields: readonly string[];
  /** Whether the collector gets it. */
  readonly isRecorded: boolean;
  /** Whether it has not ended. */
  readonly isOpen: boolean;
  /** Begins a piece of this work. */
  child(kind: SpanKind, name: string, attributes: SpanAttributes): TraceSpan;
  rename(name: string): void;
  /** Ends it; a second call has no effect. */
  end(ended: SpanEnd): void;
}

/** The trace that another program sends with a request, and whether its word counts. */
interface GivenTrace {
  /** The header fields of the request as they were sent: name, value … */
  readonly fields: readonly string[];
  /** The address of the connection. */
  readonly peerAddress: ClientAddress;
}

/** Begins spans. Which traces are recorded is decided once for each, at its first span here. */
export interface Tracer {
  /** Begins the span of a request: a part of the sender's trace, if it sends one. */
  continue(given: GivenTrace, kind: SpanKind, name: string, attributes: SpanAttributes): TraceSpan;
  /** Begins a new trace. */
  start(kind: SpanKind, name: string, attributes: SpanAttributes): TraceSpan;
  /** Ends the span of an answered request. */
  endRequest(span: TraceSpan, entry: AccessEntry, peer: Peer): void;
}

/*
 * The span of the work that runs now, for the code that it calls, however deep; nothing is ever
 * stored here without `[telemetry]`.
 */
const storage = new AsyncLocalStorage<TraceSpan | undefined>();

/** Calls a function whose work, and all that follows from it, belongs to a span. */
export function runInSpan<T>(span: TraceSpan, run: () => T): T {
  return storage.run(span, run);
}

/** Calls a function whose work outlives the span that runs now, and so does not belong to it. */
export function outsideSpans(run: () => void): void {
  // oxlint-disable-next-line unicorn/no-useless-undefined -- AsyncLocalStorage.run needs the value
  storage.run(undefined, run);
}

/**
 * The span of the work that runs now; undefined without one, and after its end: timers and
 * connections that a request has begun outlive it.
 */
export function currentSpan(): TraceSpan | undefined {
  const span = storage.getStore();
  return span?.isOpen === true ? span : undefined;
}

/** Runs work within this server as a span of its own, if it belongs to one. */
export function spanned<T>(
  name: string,
  attributes: SpanAttributes,
  run: () => Promise<T>,
): Promise<T> {
  const parent = currentSpan();
  if (parent === undefined) return run();
  return runAndEnd(parent.child('internal', name, attributes), run);
}

async function runAndEnd<T>(span: TraceSpan, run: () => Promise<T>): Promise<T> {
  try {
    const result = await runInSpan(span, run);
    span.end({});
    return result;
  } catch (error) {
    span.end({ error: errorType(error) });
    throw error;
  }
}

/** The attributes of the server that a request goes to. */
export function serverAttributes(origin: string): SpanAttributes {
  if (origin.startsWith(unixScheme)) return { 'server.address': origin.slice(unixScheme.length) };
  const { protocol, hostname, port } = new URL(origin);
  return {
    'server.address': hostname.replace(/^\[|\]$/g, ''),
    'server.port': port === '' ? defaultPort(protocol) : Number(port),
  };
}

function defaultPort(protocol: string): number {
  return protocol === 'https:' ? 443 : 80;
}

/** The `error.type` of something thrown: the code of a Failure, or the name of the class. */
export function errorType(error: unknown): string {
  if (!(error instanceof Error)) return '_OTHER';
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : error.name;
}
