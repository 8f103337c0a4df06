import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Json, JsonObject } from '../../core/values/json/json.ts';

/** How long a page may load, and an answer of the browser may take. */
const pictureLoadMs = 10_000;
const pictureCallMs = 30_000;

/** The width of a picture, and its most height, in CSS pixels. */
const pictureWidth = 1_280;
const pictureHeightMax = 6_000;

const names = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const macPaths = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
];

/** The Chromium of this machine: what CHROMIUM names, or the first in PATH; undefined for none. */
export function findChromium(env: NodeJS.ProcessEnv): string | undefined {
  const { CHROMIUM: named = '', PATH: path = '' } = env;
  if (named !== '') return isExecutable(named) ? named : undefined;
  const inPath = path.split(delimiter).flatMap((at) => names.map((name) => join(at, name)));
  return [...inPath, ...macPaths].find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

interface Message {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: JsonObject;
  readonly result?: JsonObject;
  readonly error?: { readonly message: string };
}

/**
 * A running Chromium, spoken to by the DevTools protocol over two pipes, so that no port is open.
 * https://chromedevtools.github.io/devtools-protocol/
 */
export class Chromium {
  readonly #child: ChildProcess;
  readonly #folder: string;
  readonly #waiting = new Map<number, PromiseWithResolvers<JsonObject>>();
  readonly #listeners = new Set<(message: Message) => void>();
  #lastId = 0;

  private constructor(child: ChildProcess, folder: string) {
    [this.#child, this.#folder] = [child, folder];
    let rest = '';
    const output = child.stdio[4] as Readable;
    output.setEncoding('utf8').on('data', (chunk: string) => {
      const messages = (rest + chunk).split('\0');
      rest = messages.pop() ?? '';
      for (const text of messages) this.#take(JSON.parse(text) as Message);
    });
    const ended = (): void => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the browser has ended'));
      this.#waiting.clear();
    };
    child.once('error', ended).once('close', ended);
    (child.stdio[3] as Writable).on('error', ended);
  }

  /** Starts a browser with an empty profile. Its calls reject if it does not start. */
  static async start(path: string): Promise<Chromium> {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-pictures-'));
    const words = [
      ...['--headless', '--remote-debugging-pipe', `--user-data-dir=${folder}`, '--disable-gpu'],
      ...['--no-first-run', '--disable-background-networking', '--disable-sync'],
      ...['--disable-dev-shm-usage', '--hide-scrollbars', '--mute-audio'],
      // Chromium refuses to run as root with its sandbox.
      ...(process.getuid?.() === 0 ? ['--no-sandbox'] : []),
    ];
    const stdio = ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] as const;
    return new Chromium(spawn(path, words, { stdio: [...stdio] }), folder);
  }

  async close(): Promise<void> {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null && this.#child.pid !== undefined) {
      const closed = new Promise((resolve) => this.#child.once('close', resolve));
      this.#child.kill('SIGKILL');
      await closed;
    }
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  /** Opens an empty tab that shares no cookies with others. */
  async openTab(): Promise<ChromiumTab> {
    const { browserContextId } = await this.call('Target.createBrowserContext');
    const made = { url: 'about:blank', browserContextId: browserContextId ?? null };
    const { targetId } = await this.call('Target.createTarget', made);
    const attach = { targetId: targetId ?? null, flatten: true };
    const { sessionId } = await this.call('Target.attachToTarget', attach);
    const tab = new ChromiumTab(this, textOf(sessionId));
    await tab.prepare();
    return tab;
  }

  /** Calls a method; rejects with its error, and if no answer comes in time. */
  async call(method: string, params: JsonObject = {}, sessionId?: string): Promise<JsonObject> {
    this.#lastId += 1;
    const id = this.#lastId;
    const answer = Promise.withResolvers<JsonObject>();
    this.#waiting.set(id, answer);
    const timer = setTimeout(() => {
      answer.reject(new Error(`the browser does not answer ${method}`));
    }, pictureCallMs);
    const message = { id, method, params, ...(sessionId !== undefined && { sessionId }) };
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify(message)}\0`);
    try {
      return await answer.promise;
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(id);
    }
  }

  /** Calls a listener for each event of a tab; the returned function ends that. */
  listen(sessionId: string, listener: (method: string, params: JsonObject) => void): () => void {
    const take = ({ sessionId: at, method, params = {} }: Message): void => {
      if (at === sessionId && method !== undefined) listener(method, params);
    };
    this.#listeners.add(take);
    return () => this.#listeners.delete(take);
  }

  #take(message: Message): void {
    if (message.id === undefined) {
      for (const listener of this.#listeners) listener(message);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    if (message.error === undefined) waiting?.resolve(message.result ?? {});
    else waiting?.reject(new Error(message.error.message));
  }
}

/** A tab of a browser. */
export class ChromiumTab {
  readonly #browser: Chromium;
  readonly #sessionId: string;

  constructor(browser: Chromium, sessionId: string) {
    [this.#browser, this.#sessionId] = [browser, sessionId];
  }

  #call(method: string, params: JsonObject = {}): Promise<JsonObject> {
    return this.#browser.call(method, params, this.#sessionId);
  }

  async prepare(): Promise<void> {
    await this.#call('Page.enable');
    await this.#call('Page.setLifecycleEventsEnabled', { enabled: true });
    const size = { width: pictureWidth, height: Math.round(pictureWidth * 0.625) };
    const screen = { ...size, deviceScaleFactor: 1, mobile: false };
    await this.#call('Emulation.setDeviceMetricsOverride', screen);
  }

  /**
   * Goes to a URL; resolves once the page and what it loads are there, or after some seconds.
   * Rejects if there is no page.
   */
  async open(url: string): Promise<void> {
    const idle = Promise.withResolvers<undefined>();
    let loader: Json | undefined;
    const seen = new Set<Json | undefined>();
    const forget = this.#browser.listen(this.#sessionId, (method, { name, loaderId }) => {
      if (method !== 'Page.lifecycleEvent' || name !== 'networkIdle') return;
      seen.add(loaderId);
      if (loaderId === loader) idle.resolve(undefined);
    });
    const over = new AbortController();
    try {
      const { errorText, loaderId } = await this.#call('Page.navigate', { url });
      if (typeof errorText === 'string') throw new Error(errorText);
      loader = loaderId;
      if (seen.has(loader)) return;
      await Promise.race([idle.promise, delay(pictureLoadMs, undefined, { signal: over.signal })]);
    } finally {
      over.abort();
      forget();
    }
  }

  /** The whole page as a PNG, to a height. */
  async picture(): Promise<Buffer> {
    const { cssContentSize } = await this.#call('Page.getLayoutMetrics');
    const { height = 1 } = cssContentSize as { readonly height?: number };
    const clip = { x: 0, y: 0, width: pictureWidth, height: Math.min(height, pictureHeightMax) };
    const { data } = await this.#call('Page.captureScreenshot', {
      ...{ format: 'png', captureBeyondViewport: true, clip: { ...clip, scale: 1 } },
    });
    return Buffer.from(textOf(data), 'base64');
  }
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}
