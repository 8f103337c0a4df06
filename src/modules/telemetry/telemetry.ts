import { randomBytes } from 'node:crypto';
import type { Context, Span, Tracer as SdkTracer } from '@opentelemetry/api';
import type {
  SpanAttributes,
  SpanEnd,
  SpanKind,
  TraceSpan,
  Tracer,
} from '../../core/report/trace.ts';
import { type Cidr, cidrsContain } from '../../core/values/network/cidr.ts';
import { loadOpenTelemetry } from './lazy-packages.ts';
import { exportMsMax, queuedSpansMax } from './limits.ts';
import { endRequestSpan } from './request-span.ts';
import { type SpanCounts, SpanQueue } from './span-queue.ts';

/** Characters of a `tracestate` that is passed on (W3C Trace Context §3.3.1.5). */
const traceStateCharactersMax = 512;

/** Its most list-members (W3C Trace Context §3.3.1.1). */
const traceStateMembersMax = 32;

/** Version, trace-id, parent-id and trace-flags (W3C Trace Context §3.2.2). */
const parentForm = /^([\da-f]{2})-([\da-f]{32})-([\da-f]{16})-([\da-f]{2})(-.*)?$/;
const key = '(?:[a-z][a-z\\d_*/-]{0,255}|[a-z\\d][a-z\\d_*/-]{0,240}@[a-z][a-z\\d_*/-]{0,13})';

/** A list-member: a key, with or without a tenant, and a value (W3C Trace Context §3.3.1). */
const memberForm = new RegExp(`^${key}=[\\x20-\\x2b\\x2d-\\x3c\\x3e-\\x7e]{1,256}$`);

/** The most spans of one export. */
const batchSpansMax = 512;

/** How long spans are collected before they are sent. */
const batchDelayMs = 2_000;

/** Characters of an attribute; the rest of a longer one is cut. */
const attributeCharactersMax = 1_024;

/** Attributes of a span. */
const attributesMax = 32;

/** `[telemetry]` with an endpoint. */
interface TelemetrySettings {
  /** The URL that takes traces by OTLP over HTTP. */
  readonly endpoint: string;
  readonly service: string;
  /** Of how many new traces one is recorded, from 0 to 1. */
  readonly sample: number;
  /** The networks whose word counts about which traces are recorded. */
  readonly trust: readonly Cidr[];
  readonly headers: Readonly<Record<string, string>>;
  /** Query parameters whose values the collector does not get. */
  readonly redact: readonly string[];
}

/** The tracer of a configuration. */
interface Telemetry {
  readonly tracer: Tracer;
  /** Waits for open spans and sends all that wait, within five seconds; drops later ones. */
  close(): Promise<void>;
}

type Sdk = ReturnType<typeof loadOpenTelemetry>;

/**
 * Starts OpenTelemetry's SDK for a configuration. `random` returns a number from 0 to 1, by which a
 * trace is recorded or not: the trace id of a stranger decides nothing.
 */
export function openTelemetry(
  settings: TelemetrySettings,
  {
    counts,
    version,
    random,
  }: { readonly counts: SpanCounts; readonly version: string; readonly random: () => number },
): Telemetry {
  const sdk = loadOpenTelemetry();
  const queue = new SpanQueue(counts);
  const { endpoint: url, headers, service } = settings;
  const timeout = { timeoutMillis: exportMsMax };
  const exporter = new sdk.OTLPTraceExporter({ url, headers: { ...headers }, ...timeout });
  const processor = new sdk.BatchSpanProcessor({
    exporter: queue.counted(exporter),
    maxQueueSize: queuedSpansMax,
    maxExportBatchSize: batchSpansMax,
    scheduledDelayMillis: batchDelayMs,
    exportTimeoutMillis: exportMsMax,
  });
  const provider = new sdk.TracerProvider({
    resource: sdk.resourceFromAttributes({
      'service.name': service,
      'service.version': version,
    }),
    spanLimits: {
      attributeValueLengthLimit: attributeCharactersMax,
      attributeCountLimit: attributesMax,
    },
    spanProcessors: [queue.inFrontOf(processor)],
  });
  const spans = new Spans(sdk, provider.getTracer('waymark', version));
  const isChosen = (): boolean => settings.sample === 1 || random() < settings.sample;
  return {
    tracer: {
      continue({ fields, peerAddress }, kind, name, attributes) {
        const sent = readTraceContext(fields);
        const isTrusted = sent !== undefined && cidrsContain(settings.trust, peerAddress);
        const isRecorded = isTrusted ? sent.isSampled : isChosen();
        return spans.first({ sent, isRecorded }, kind, name, attributes);
      },
      start: (kind, name, attributes) =>
        spans.first({ sent: undefined, isRecorded: isChosen() }, kind, name, attributes),
      endRequest(span, entry, peer) {
        endRequestSpan(span, entry, { peer, redact: settings.redact });
      },
    },
    async close() {
      const { promise: late, resolve } = Promise.withResolvers<undefined>();
      const timer = setTimeout(() => {
        resolve(undefined);
      }, exportMsMax);
      await Promise.race([queue.settled(), late]);
      // A failed export has been counted.
      await Promise.race([provider.shutdown().catch(() => undefined), late]);
      clearTimeout(timer);
    },
  };
}

/** Makes spans: those that are recorded by the SDK, and all others without it. */
class Spans {
  readonly #sdk: Sdk;
  readonly #tracer: SdkTracer;

  constructor(sdk: Sdk, tracer: SdkTracer) {
    this.#sdk = sdk;
    this.#tracer = tracer;
  }

  /** The first span of a trace in this server. */
  first(
    { sent, isRecorded }: { readonly sent: SentTrace | undefined; readonly isRecorded: boolean },
    kind: SpanKind,
    name: string,
    attributes: SpanAttributes,
  ): TraceSpan {
    const { ROOT_CONTEXT, TraceFlags, trace } = this.#sdk;
    if (!isRecorded) {
      return new UnrecordedSpan(sent?.traceId ?? randomBytes(16).toString('hex'), sent?.state);
    }
    if (sent === undefined) return this.span(ROOT_CONTEXT, kind, name, attributes, undefined);
    const { traceId, spanId, state } = sent;
    const remote = { traceId, spanId, isRemote: true, traceFlags: TraceFlags.SAMPLED };
    const context = trace.setSpanContext(ROOT_CONTEXT, remote);
    return this.span(context, kind, name, attributes, state);
  }

  span(
    context: Context,
    kind: SpanKind,
    name: string,
    attributes: SpanAttributes,
    state: string | undefined,
  ): TraceSpan {
    const { trace, SpanKind: kinds } = this.#sdk;
    const sdkKind = { server: kinds.SERVER, client: kinds.CLIENT, internal: kinds.INTERNAL }[kind];
    const span = this.#tracer.startSpan(name, { kind: sdkKind, attributes }, context);
    const own = trace.setSpan(context, span);
    return new RecordedSpan(span, state, {
      error: this.#sdk.SpanStatusCode.ERROR,
      child: (...given) => this.span(own, ...given, state),
    });
  }
}

/** A span that the collector gets. */
class RecordedSpan implements TraceSpan {
  readonly isRecorded = true;
  readonly #span: Span;
  readonly #state: string | undefined;
  readonly #error: Sdk['SpanStatusCode']['ERROR'];
  readonly child: TraceSpan['child'];

  constructor(
    span: Span,
    state: string | undefined,
    {
      error,
      child,
    }: {
      readonly error: Sdk['SpanStatusCode']['ERROR'];
      readonly child: TraceSpan['child'];
    },
  ) {
    this.#span = span;
    this.#state = state;
    this.#error = error;
    this.child = child;
  }

  get traceId(): string {
    return this.#span.spanContext().traceId;
  }

  get fields(): readonly string[] {
    const { traceId, spanId } = this.#span.spanContext();
    return traceFields(traceId, spanId, { isSampled: true, state: this.#state });
  }

  get isOpen(): boolean {
    return this.#span.isRecording();
  }

  rename(name: string): void {
    this.#span.updateName(name);
  }

  end({ attributes = {}, error }: SpanEnd): void {
    if (!this.isOpen) return;
    this.#span.setAttributes(attributes);
    if (error !== undefined) {
      this.#span.setAttribute('error.type', error);
      this.#span.setStatus({ code: this.#error });
    }
    this.#span.end();
  }
}

/** A span of a trace that is not recorded here: other servers still get its id. */
class UnrecordedSpan implements TraceSpan {
  readonly isRecorded = false;
  readonly traceId: string;
  readonly #state: string | undefined;
  #fields: readonly string[] | undefined;
  #isOpen = true;

  constructor(traceId: string, state: string | undefined) {
    this.traceId = traceId;
    this.#state = state;
  }

  get fields(): readonly string[] {
    const spanId = randomBytes(8).toString('hex');
    const given = { isSampled: false, state: this.#state };
    this.#fields ??= traceFields(this.traceId, spanId, given);
    return this.#fields;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  child(): TraceSpan {
    return new UnrecordedSpan(this.traceId, this.#state);
  }

  rename(): void {
    // It has no name.
  }

  end(): void {
    this.#isOpen = false;
  }
}

/** The trace that the sender of a request belongs to. */
interface SentTrace {
  readonly traceId: string;
  /** The id of the sender's span. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** The value of `tracestate`; undefined without a valid one. */
  readonly state: string | undefined;
}

/**
 * Reads the trace context of a request's fields: name, value, name, value. Undefined without a
 * single valid `traceparent` (W3C Trace Context §3.2): the trace then begins here. An invalid
 * `tracestate` is left out (§3.3).
 */
export function readTraceContext(fields: readonly string[]): SentTrace | undefined {
  let parent: string | undefined;
  let state: string | undefined;
  for (let at = 0; at < fields.length; at += 2) {
    const name = fields[at] ?? '';
    if (name.length !== 11 && name.length !== 10) continue;
    const lower = name.toLowerCase();
    const value = fields[at + 1] ?? '';
    if (lower === 'traceparent') {
      if (parent !== undefined) return undefined;
      parent = value;
    } else if (lower === 'tracestate') {
      state = state === undefined ? value : `${state},${value}`;
    }
  }
  if (parent === undefined || parent.length > traceStateCharactersMax) return undefined;
  const [, version, traceId = '', spanId = '', flags = '', rest] = parentForm.exec(parent) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) {
    return undefined;
  }
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  return { traceId, spanId, isSampled, state: validState(state) };
}

/** The members of a `tracestate`; undefined if one is invalid, or if they are too many. */
function validState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > traceStateCharactersMax) return undefined;
  if (!/^[\t\x20-\x7e]*$/.test(text)) return undefined;
  const members = text.split(',').map((member) => member.trim());
  const named = members.filter((member) => member !== '');
  const keys = new Set(named.map((member) => member.split('=', 1)[0]));
  const isValid = named.every((member) => memberForm.test(member));
  const areFew = named.length > 0 && named.length <= traceStateMembersMax;
  return isValid && areFew && keys.size === named.length ? named.join(',') : undefined;
}

/** The fields of a span for the servers that it calls. */
function traceFields(
  traceId: string,
  spanId: string,
  { isSampled, state }: { readonly isSampled: boolean; readonly state: string | undefined },
): readonly string[] {
  const parent = ['traceparent', `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`];
  return state === undefined ? parent : [...parent, 'tracestate', state];
}
