import { EventEmitter, once } from 'node:events';
import type { RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import type { Cleaning } from '../../folder.ts';
import { httpSource } from '../../core/outbound/sources.ts';

/** A span as a collector gets it by OTLP. */
export interface Received {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentId: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  readonly isError: boolean;
}

/** A receiver of OTLP over HTTP. */
export interface Collector {
  /** The line of `[telemetry]`. */
  readonly ini: string;
  readonly spans: readonly Received[];
  /** The fields of the requests. */
  readonly heads: readonly NodeJS.Dict<string | string[]>[];
  /** Everything that it has got, as text. */
  readonly texts: readonly string[];
  /** Resolves once so many spans have come. */
  until(count: number): Promise<readonly Received[]>;
  /** Answers requests in place of 200. */
  answer: RequestListener | undefined;
}

interface SentSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly { readonly key: string; readonly value: object }[];
  readonly status: { readonly code?: number };
}

/** Starts a collector. */
export async function startCollector(t: Cleaning): Promise<Collector> {
  const spans: Received[] = [];
  const heads: NodeJS.Dict<string | string[]>[] = [];
  const texts: string[] = [];
  const came = new EventEmitter().setMaxListeners(0);
  const { origin } = await httpSource(t, (request, response) => {
    void text(request).then((body) => {
      heads.push(request.headers);
      texts.push(body);
      if (collector.answer !== undefined) {
        collector.answer(request, response);
        return;
      }
      spans.push(...receivedOf(body));
      response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
      came.emit('spans');
    });
  });
  const collector: Collector = {
    ini: `[telemetry]\nendpoint = ${origin}\n`,
    ...{ spans, heads, texts },
    async until(count) {
      while (spans.length < count) await once(came, 'spans');
      return spans;
    },
    answer: undefined,
  };
  return collector;
}

function receivedOf(body: string): readonly Received[] {
  const { resourceSpans } = JSON.parse(body) as {
    readonly resourceSpans: readonly {
      readonly scopeSpans: readonly { readonly spans: readonly SentSpan[] }[];
    }[];
  };
  return resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap((scope) => scope.spans)
    .map(({ traceId, spanId, parentSpanId = '', name, kind, attributes, status }) => ({
      ...{ traceId, spanId, parentId: parentSpanId, name, kind },
      attributes: Object.fromEntries(
        attributes.map(({ key, value }) => [key, Object.values(value)[0] as string | number]),
      ),
      isError: status.code === 2,
    }));
}
