import { Readable } from 'node:stream';
import type { ContentRequest } from '../../core/http/request.ts';
import type { OutboundRequest } from '../../core/outbound/dialler.ts';
import type { SourceResponse } from '../../core/outbound/exchange.ts';
import { Failure } from '../../core/values/failure.ts';
import { type FetchPlan, sourceTargets } from './fetch-plan.ts';
import type { SourceDiallers } from './source-diallers.ts';
import type { SourceStatistics } from './source-statistics.ts';

/** Content of checks and mirrors, which nobody wants, that is read to keep its connection. */
const unwantedContentBytesMax = 64 * 1024;

/** Requests that a mirror is answering at the same time, and the longest content of a copy. */
const mirrorsOpenMax = 100;
const mirrorContentBytesMax = 1024 * 1024;

/** Gets the content of a request while it passes. */
export interface ContentCopy {
  add(chunk: Buffer): void;
  /** All of the content has passed. */
  end(): void;
}

/** The parts of a request that its copy has too. */
type CopiedParts = Pick<OutboundRequest, 'method' | 'fields' | 'timeoutMs' | 'preamble'>;

/**
 * Sends copies of requests to the mirror of their plan. No copy delays its request or changes its
 * answer: the answer of the mirror is skipped, its failures only count, and a request is not copied
 * while the mirror is too slow or if its content is too long.
 */
export class Mirror {
  readonly #diallers: Pick<SourceDiallers, 'of'>;
  readonly #statistics: SourceStatistics;
  #open = 0;

  constructor({
    diallers,
    statistics,
  }: {
    readonly diallers: Pick<SourceDiallers, 'of'>;
    readonly statistics: SourceStatistics;
  }) {
    this.#diallers = diallers;
    this.#statistics = statistics;
  }

  /**
   * Copies a request, at once if it has no content. Otherwise returns what has to get the content;
   * the copy is sent when all of it has passed.
   */
  copy(
    plan: FetchPlan,
    request: ContentRequest,
    { method, fields, timeoutMs, preamble }: CopiedParts,
    hasContent: boolean,
  ): ContentCopy | undefined {
    const { mirror } = plan;
    if (mirror === undefined) return undefined;
    const [to] = sourceTargets({ ...plan, sources: [mirror] }, request);
    if (to === undefined) return undefined;
    const { server: origin } = mirror;
    const place = { origin, target: to.target, ...{ method, fields, timeoutMs, preamble } };
    if (!hasContent) {
      void this.#send(plan, place, undefined);
      return undefined;
    }
    let chunks: Buffer[] | undefined = [];
    let bytes = 0;
    return {
      add: (chunk) => {
        bytes += chunk.length;
        if (bytes > mirrorContentBytesMax) chunks = undefined;
        chunks?.push(chunk);
      },
      end: () => {
        if (chunks !== undefined) void this.#send(plan, place, Buffer.concat(chunks));
        chunks = undefined;
      },
    };
  }

  async #send(
    plan: FetchPlan,
    place: CopiedParts & Pick<OutboundRequest, 'origin' | 'target'>,
    content: Buffer | undefined,
  ): Promise<void> {
    const counted = this.#statistics.start(place.origin);
    this.#open += 1;
    try {
      if (this.#open > mirrorsOpenMax) throw tooSlow();
      const answer = await this.#diallers.of(plan).send({
        ...place,
        body: content === undefined ? undefined : Readable.from([content]),
        signal: new AbortController().signal,
      });
      counted.answered(answer.status);
      await skipContent(answer);
    } catch (error) {
      counted.failed(error instanceof Failure ? error.message : String(error));
    } finally {
      this.#open -= 1;
      counted.ended();
    }
  }
}

function tooSlow(): Failure {
  return new Failure('unavailable', `${mirrorsOpenMax} copies of requests wait for the mirror.`);
}

/**
 * Reads content that nobody wants, so that its connection can be used again; aborts long content.
 * Resolves when it has ended.
 */
export function skipContent(answer: SourceResponse): Promise<void> {
  const content = answer.content();
  if (!(content instanceof Readable)) return Promise.resolve();
  let bytes = 0;
  content.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > unwantedContentBytesMax) content.destroy();
  });
  return new Promise((resolve) => {
    content.once('close', resolve);
  });
}
