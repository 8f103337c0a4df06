import { inspect } from 'node:util';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { SharedLimit } from '../../core/fair/shared-limit.ts';
import type { User } from '../../core/http/visitor.ts';
import { Failure } from '../../core/values/failure.ts';
import { withNumberTexts } from '../../core/values/json/exact-number.ts';
import type { Json, JsonObject } from '../../core/values/json/json.ts';
import { pageTextBytesMax } from './limits.ts';
import type { RenderingModules } from './shared-rendering.ts';

/** How long the rendering of one page may take, its sanitizing included. */
const renderMsMax = 5_000;

/** How long the thread that renders may take to start. */
const threadStartMsMax = 60_000;

/** After this time without work, the thread ends and frees its memory. */
const threadIdleMs = 600_000;

/** The heap of the thread that renders, in MiB. */
const threadHeapMibMax = 512;

/** Threads: while one renders a page of a client, those of others need not wait for it. */
const threadsMax = 2;

/** Pages that wait for a thread, and how long; further visitors get 503. */
export const rendersWaitingMax = 100;
const renderWaitMs = 30_000;

/** The part of an answer of get_render that a template uses. */
export interface TemplateAnswer {
  readonly enginedata: JsonObject;
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly capture: string | null;
  readonly user: User | null;
  readonly origin: string;
  readonly path: string;
  readonly lang: string | null;
  /** Lists of rows by the names of enginedata.rows. */
  readonly rows: JsonObject;
}

/**
 * The work of the thread: a whole page, the page with `enginedata.html` instead of a failed
 * template, or the inputs of its lists of rows.
 */
interface Job {
  readonly kind: 'page' | 'html' | 'rows';
  /** The text of the generic page. */
  readonly page: string;
  readonly answer: TemplateAnswer;
}

type Message =
  | { readonly kind: 'ready' }
  | { readonly kind: 'done'; readonly result: Json }
  | { readonly kind: 'failed'; readonly reason: string };

/** A job of a thread, and who waits for its result. */
interface Waiting {
  readonly job: Job;
  readonly resolve: (result: Json) => void;
  readonly reject: (error: unknown) => void;
}

/** A template failed; `message` says why, for the log. */
export class TemplateError extends Error {}

/**
 * Renders templates in threads, so that no template can block the event loop. A thread renders one
 * page at a time, and ends with a template that takes too long or too much memory.
 */
export class TemplateThreads {
  /** The turns of the clients whose pages the threads render: a client has one of them. */
  readonly turns = new SharedLimit({
    what: 'pages to render',
    limit: 'renderings',
    held: 'long',
    max: threadsMax,
    waiting: { max: rendersWaitingMax, ms: renderWaitMs },
  });
  readonly #threads: readonly TemplateThread[];
  #waiting: Waiting[] = [];

  constructor(
    modules: RenderingModules,
    { renderMs = renderMsMax }: { readonly renderMs?: number } = {},
  ) {
    const parts: ThreadParts = {
      modules,
      renderMs,
      next: () => this.#waiting.shift(),
      isWanted: () => this.#waiting.length > 0,
    };
    this.#threads = Array.from({ length: threadsMax }, () => new TemplateThread(parts));
  }

  /**
   * Renders an answer into the text of its generic page; resolves to the text of the whole page.
   * Rejects with a TemplateError. To be called in one of `turns`.
   */
  async page(page: string, answer: TemplateAnswer): Promise<string> {
    return (await this.#run({ kind: 'page', page, answer })) as string;
  }

  /** The text of a page with `enginedata.html`; rejects as `page` does. */
  async html(page: string, answer: TemplateAnswer): Promise<string> {
    return (await this.#run({ kind: 'html', page, answer })) as string;
  }

  /** The inputs of the lists of rows in enginedata.rows, by name; rejects as `page` does. */
  async rowInputs(answer: TemplateAnswer): Promise<JsonObject> {
    return (await this.#run({ kind: 'rows', page: '', answer })) as JsonObject;
  }

  /** Ends the threads; pages that wait for them are refused. */
  async close(): Promise<void> {
    const stopping = new Failure('unavailable', 'The server is stopping.', {
      retryAfterSeconds: 1,
    });
    this.turns.refuseWaiting(stopping);
    for (const { reject } of this.#waiting) reject(stopping);
    this.#waiting = [];
    await Promise.all(this.#threads.map((thread) => thread.close(stopping)));
  }

  #run(job: Job): Promise<Json> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ job, resolve, reject });
      const isMoreWanted = this.turns.waiting > 0;
      const free = this.#threads.toSorted((one, other) => other.readiness - one.readiness);
      // While clients wait, all threads are kept ready: the next client does not wait for a start.
      for (const thread of free) if (isMoreWanted || this.#waiting.length > 0) thread.wake();
    });
  }
}

/** What a thread is made with. */
interface ThreadParts {
  readonly modules: RenderingModules;
  readonly renderMs: number;
  /** Takes the next job that waits. */
  readonly next: () => Waiting | undefined;
  /** Whether a job waits. */
  readonly isWanted: () => boolean;
}

/** One thread, which starts when it is needed. */
class TemplateThread {
  readonly #parts: ThreadParts;
  #current: Waiting | undefined;
  #worker: Worker | undefined;
  #isReady = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: ThreadParts) {
    this.#parts = parts;
  }

  /** How soon it would begin a job: 2 at once, 1 after its start, 0 after its own job. */
  get readiness(): number {
    if (this.#current !== undefined) return 0;
    return this.#isReady ? 2 : 1;
  }

  /** Begins the next job, or starts the thread, which then does. */
  wake(): void {
    if (this.#current !== undefined) return;
    if (this.#worker === undefined) this.#start();
    else if (this.#isReady) this.#next();
  }

  /** Ends the thread, and refuses its job. */
  async close(reason: Failure): Promise<void> {
    this.#current?.reject(reason);
    await this.#end();
  }

  #next(): void {
    const next = this.#parts.next();
    if (next === undefined) {
      this.#after(threadIdleMs, () => void this.#end());
      return;
    }
    this.#current = next;
    this.#worker?.postMessage(withNumberTexts(next.job));
    const { renderMs } = this.#parts;
    this.#after(renderMs, () => {
      this.#abandon(`It took longer than ${renderMs / 1_000} s.`);
    });
  }

  #start(): void {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { templates: this.#parts.modules } satisfies ThreadData,
      resourceLimits: { maxOldGenerationSizeMb: threadHeapMibMax },
    });
    this.#worker = worker;
    const isMine = (): boolean => this.#worker === worker;
    worker.on('message', (message: Message) => {
      if (isMine()) this.#receive(message);
    });
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const isFull = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      if (isMine()) this.#abandon(isFull ? 'It needed too much memory.' : inspect(error));
    });
    worker.on('exit', () => {
      if (isMine()) this.#abandon('Its thread ended.');
    });
    worker.unref();
    this.#after(threadStartMsMax, () => {
      this.#abandon(`The thread for templates did not start within ${threadStartMsMax / 1_000} s.`);
    });
  }

  #receive(message: Message): void {
    if (message.kind === 'ready') this.#isReady = true;
    const current = this.#current;
    this.#current = undefined;
    if (message.kind === 'done') current?.resolve(message.result);
    if (message.kind === 'failed') current?.reject(new TemplateError(message.reason));
    this.#next();
  }

  /** Ends the thread and refuses its job, or the next one if it has not started. */
  #abandon(reason: string): void {
    const lost = this.#isReady ? this.#current : this.#parts.next();
    this.#current = undefined;
    void this.#end();
    lost?.reject(new TemplateError(reason));
    if (this.#parts.isWanted()) this.#start();
  }

  async #end(): Promise<void> {
    clearTimeout(this.#timer);
    const worker = this.#worker;
    this.#worker = undefined;
    this.#isReady = false;
    await worker?.terminate();
  }

  #after(ms: number, act: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(act, ms).unref();
  }
}

/** The exports of public/engines/template/render.js. */
interface SharedRendering {
  readonly sanitizing: object;
  renderTemplate(
    liquid: unknown,
    answer: TemplateAnswer,
  ): Promise<{ readonly html: string; readonly title?: string }>;
  rowInputs(liquid: unknown, answer: TemplateAnswer): Promise<JsonObject>;
}

/** The exports of public/engines/template/insert.js. */
interface Insertion {
  removeClobbered(node: unknown): void;
  insertRendered(
    document: unknown,
    answer: TemplateAnswer,
    rendered: { readonly content: unknown; readonly title?: string } | undefined,
  ): string;
}

/** The members of jsdom that the thread uses; this project has no types of the DOM. */
interface DomPackage {
  readonly JSDOM: new (html: string) => {
    readonly window: {
      readonly DOMParser: new () => { parseFromString(text: string, type: string): unknown };
    };
  };
}

/** The data that the thread gets at its start. */
interface ThreadData {
  readonly templates: RenderingModules;
}

/** DOMPurify for a window. */
type CreatePurify = (window: unknown) => {
  addHook(name: string, hook: (node: unknown) => void): void;
  sanitize(html: string, options: object): unknown;
};

/** Makes the function that does the work in the thread. */
async function prepareThread(modules: RenderingModules): Promise<(job: Job) => Promise<Json>> {
  // @ts-expect-error -- jsdom comes without types
  const { default: dom } = (await import('jsdom')) as { readonly default: DomPackage };
  const { default: purifyPackage } = await import('dompurify');
  const { Liquid } = await import('liquidjs');
  const shared = (await import(modules.render)) as SharedRendering;
  const insertion = (await import(modules.insert)) as Insertion;
  const { window } = new dom.JSDOM('');
  const purify = (purifyPackage as unknown as CreatePurify)(window);
  purify.addHook('beforeSanitizeElements', (node) => {
    insertion.removeClobbered(node);
  });
  const parser = new window.DOMParser();

  return async ({ kind, page, answer }) => {
    if (kind === 'rows') return shared.rowInputs(Liquid, answer);
    const document = parser.parseFromString(page, 'text/html');
    if (kind === 'html') return insertion.insertRendered(document, answer, undefined);
    const { html, ...others } = await shared.renderTemplate(Liquid, answer);
    if (html.length > pageTextBytesMax) throw new TemplateError('The page is too large.');
    const content = purify.sanitize(html, { ...shared.sanitizing, RETURN_DOM: true });
    return insertion.insertRendered(document, answer, { ...others, content });
  };
}

const given = workerData as Partial<ThreadData> | null;
if (!isMainThread && given?.templates !== undefined && parentPort !== null) {
  const port = parentPort;
  const work = await prepareThread(given.templates);
  const send = (message: Message): void => {
    port.postMessage(message);
  };
  port.on('message', (job: Job) => {
    work(job).then(
      (result) => {
        send({ kind: 'done', result });
      },
      (error: unknown) => {
        send({ kind: 'failed', reason: error instanceof Error ? error.message : inspect(error) });
      },
    );
  });
  send({ kind: 'ready' });
}
