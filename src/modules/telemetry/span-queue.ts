import type { ReadableSpan, SpanExporter, SpanProcessor } from '@opentelemetry/sdk-trace';
import type { Log } from '../../core/report/log.ts';
import type { Metric } from '../../core/report/metrics.ts';
import { exportMsMax, queuedSpansMax } from './limits.ts';

/** Lines of the log about spans that were dropped: one in this time. */
const droppedLogMs = 60_000;

/** How an export ends: ExportResultCode of the SDK. */
type ExportCode = Parameters<Parameters<SpanExporter['export']>[1]>[0]['code'];

const exportSucceeded: ExportCode = 0;
const exportFailed: ExportCode = 1;

/** Counts the spans that the collector has taken, and those that it has not. */
export class SpanCounts {
  readonly #log: Log;
  readonly #now: () => number;
  #exported = 0;
  #dropped = 0;
  /** The dropped ones that no line of the log tells of. */
  #untold = 0;
  #toldMs = -Infinity;

  constructor({ log, now }: { readonly log: Log; readonly now: () => number }) {
    this.#log = log;
    this.#now = now;
  }

  exported(spans: number): void {
    this.#exported += spans;
  }

  /** Counts dropped spans; the log has one line a minute about them. */
  dropped(spans: number, reason: string): void {
    this.#dropped += spans;
    this.#untold += spans;
    const nowMs = this.#now();
    if (Math.abs(nowMs - this.#toldMs) < droppedLogMs) return;
    this.#log.warn({ spans: this.#untold, reason }, 'The collector of [telemetry] misses spans.');
    this.#untold = 0;
    this.#toldMs = nowMs;
  }

  /** None as long as no span has ended. */
  metrics(): readonly Metric[] {
    if (this.#exported === 0 && this.#dropped === 0) return [];
    const samples = [
      { labels: { outcome: 'exported' }, value: this.#exported },
      { labels: { outcome: 'dropped' }, value: this.#dropped },
    ];
    return [
      {
        name: 'waymark_telemetry_spans_total',
        type: 'counter',
        help: 'Spans for the collector of [telemetry]: exported, or dropped.',
        samples,
      },
    ];
  }
}

/** Spans on their way to a processor and its exporter, of which only so many may wait. */
export class SpanQueue {
  readonly #counts: SpanCounts;
  #waiting = 0;
  /** Spans that have begun and not ended. */
  #open = 0;
  #settled: (() => void) | undefined;
  #isClosed = false;

  constructor(counts: SpanCounts) {
    this.#counts = counts;
  }

  /** A processor in front of another one, which never has too many spans. */
  inFrontOf(processor: SpanProcessor): SpanProcessor {
    return {
      forceFlush: () => processor.forceFlush(),
      onStart: (...started) => {
        this.#open += 1;
        processor.onStart(...started);
      },
      onEnd: (span) => {
        this.#open -= 1;
        if (this.#open === 0) this.#settled?.();
        if (this.#isClosed) this.#counts.dropped(1, 'the server has ended this configuration');
        else if (this.#waiting >= queuedSpansMax) this.#counts.dropped(1, 'too many spans wait');
        else {
          this.#waiting += 1;
          processor.onEnd(span);
        }
      },
      shutdown: () => {
        this.#isClosed = true;
        return processor.shutdown();
      },
    };
  }

  /** Resolves when no span is open. */
  async settled(): Promise<void> {
    if (this.#open === 0) return;
    await new Promise<void>((resolve) => {
      this.#settled = resolve;
    });
  }

  /** An exporter that counts what becomes of the spans, each of which it reports in time. */
  counted(exporter: SpanExporter): SpanExporter {
    return {
      export: (spans: ReadableSpan[], done) => {
        this.#waiting -= spans.length;
        let isDone = false;
        const end: typeof done = (result) => {
          if (isDone) return;
          isDone = true;
          clearTimeout(timer);
          const { code, error } = result;
          if (code === exportSucceeded) this.#counts.exported(spans.length);
          else this.#counts.dropped(spans.length, error?.message ?? 'it refuses them');
          done(result);
        };
        const timer = setTimeout(() => {
          end({
            code: exportFailed,
            error: new Error(`it has not answered in ${exportMsMax / 1000} s`),
          });
        }, exportMsMax).unref();
        exporter.export(spans, end);
      },
      shutdown: () => exporter.shutdown(),
    };
  }
}
