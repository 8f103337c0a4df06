// What a browser transfers and how long it takes until the console can be used, and until a page of
// the documentation is painted; see bench/README.md. `--beside DIR` loads the files of another admin interface in the same
// browser. `--rules N` scrolls the tree and the list of that many page rules instead, and times the frames.
import { readFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';
import { chromium, type Browser, type Page } from 'playwright-core';
import { unpackChromium } from '../test/browser/packaged-chromium.ts';
import { startDemo } from '../test/browser/demo-site.ts';
import { startSite } from '../test/harness.ts';
import { spreadOf } from './figures.ts';

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    beside: { type: 'string' },
    rules: { type: 'string' },
  },
});

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};

/** One step of a round: an action, and the state of the page that ends it. */
interface Step {
  readonly name: string;
  readonly run: (page: Page) => Promise<void>;
  /** Milliseconds to an event in the page; by default, the time that `run` takes. */
  readonly time?: (page: Page) => Promise<number>;
}

/** What one step took. */
interface Measured {
  readonly bytes: number;
  readonly requests: number;
  readonly milliseconds: number;
}

/** Scrolls 440 pixels, ten rows, in each of 1,500 frames; returns the milliseconds between them. */
const scrolling = `new Promise((resolve) => {
  const list = document.querySelector('.virtual');
  const times = [];
  let last = performance.now();
  const step = (now) => {
    times.push(now - last);
    last = now;
    list.scrollTop += 440;
    if (times.length < 1500) requestAnimationFrame(step);
    else resolve(times.slice(1));
  };
  requestAnimationFrame(step);
})`;

/** One import takes no more. */
const importLinesMax = 100_000;

const cleanings: (() => unknown)[] = [];
const context = { after: (clean: () => unknown) => cleanings.unshift(clean) };
try {
  await run();
} finally {
  for (const clean of cleanings) await clean();
}

async function run(): Promise<void> {
  const { executablePath, env } = await unpackChromium();
  const args = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  const browser = await chromium.launch({ executablePath, env, args });
  context.after(() => browser.close());
  if (options.rules !== undefined) {
    await scrollRules(browser, Number(options.rules));
    return;
  }
  const demo = await startDemo(context);
  await measure(browser, 'Waymark', [
    {
      name: 'sign-in can be typed into',
      run: async (page) => {
        await page.goto(`${demo.url}/svc1/console/`);
        await page.locator('input:focus').waitFor();
      },
    },
    {
      name: 'overview after the sign-in',
      run: async (page) => {
        await page.keyboard.insertText(demo.adminKey);
        await page.keyboard.press('Enter');
        await page.locator('.tiles').waitFor();
        await page.locator('.changes li').first().waitFor();
      },
    },
  ]);
  for (const path of ['', 'reference/ini-file.html', 'reference/operations.html']) {
    const url = `${demo.url}/svc1/docs/${path}`;
    const open: Step = {
      name: `/svc1/docs/${path}, first paint`,
      run: async (page) => {
        await page.goto(url, { waitUntil: 'load' });
      },
      time: (page) =>
        page.evaluate<number>(
          `performance.getEntriesByName('first-contentful-paint')[0].startTime`,
        ),
    };
    await measure(browser, 'Waymark', [open]);
  }
  if (options.beside === undefined) return;
  const url = await serveFolder(options.beside);
  const load: Step = {
    name: 'a field or button can be used',
    run: async (page) => {
      await page.goto(url, { waitUntil: 'load' });
      await page.locator('input:visible, button:visible').first().waitFor();
    },
  };
  await measure(browser, options.beside, [load]);
}

/** Scrolls the tree and the list of many page rules, and prints the times between frames. */
async function scrollRules(browser: Browser, count: number): Promise<void> {
  const site = await startSite(context);
  for (let first = 0; first < count; first += importLinesMax) {
    const lines = Array.from({ length: Math.min(importLinesMax, count - first) }, (_, at) =>
      JSON.stringify({
        path: `/pages/${((first + at) * 7_919) % count}`,
        kind: 'content',
        content: 'x',
      }),
    );
    await site.call('svc1.userinterface.import', { ndjson: lines.join('\n') });
  }
  const tab = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await tab.newPage();
  await page.goto(`${site.url}/svc1/console/`);
  await page.getByLabel('API key').fill(site.adminKey);
  await page.keyboard.press('Enter');
  await page.locator('.tiles').waitFor();
  for (const [name, hash] of [
    ['tree', '#/pages?path=/pages/'],
    ['list by insert', '#/pages?sort=-inserted'],
    ['list by path', '#/pages?sort=path'],
  ] as const) {
    const opened = performance.now();
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
    await page.locator('.virtual .row').nth(9).waitFor();
    const shownMs = performance.now() - opened;
    await page.waitForLoadState('networkidle');
    const frames = await page.evaluate<number[]>(scrolling);
    const { length } = frames.filter((ms) => ms > 50);
    console.log(
      `${name} of ${count} rules: first rows after ${shownMs.toFixed(0)} ms; ${frames.length} ` +
        `frames, the longest ${Math.max(...frames).toFixed(0)} ms, ${length} over 50 ms`,
    );
    await page.evaluate(`location.hash = '#/'`);
    await page.locator('.tiles').waitFor();
  }
  await tab.close();
}

/** Runs the steps in a new browser context for each round, and prints the medians. */
async function measure(browser: Browser, name: string, steps: readonly Step[]): Promise<void> {
  const rounds: Measured[][] = [];
  for (let round = 0; round < Number(options.rounds); round += 1) {
    rounds.push(await runRound(browser, steps));
  }
  for (const [at, step] of steps.entries()) {
    const taken = rounds.flatMap((one) => one[at] ?? []);
    const median = (value: (one: Measured) => number): number => spreadOf(taken.map(value)).median;
    const kilobytes = (median(({ bytes }) => bytes) / 1000).toFixed(1);
    const requests = median((one) => one.requests);
    const milliseconds = median((one) => one.milliseconds).toFixed(0);
    console.log(`${name}, ${step.name}: ${kilobytes} KB, ${requests} requests, ${milliseconds} ms`);
  }
}

async function runRound(browser: Browser, steps: readonly Step[]): Promise<Measured[]> {
  const tab = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await tab.newPage();
  const session = await tab.newCDPSession(page);
  await session.send('Network.enable');
  let [bytes, requests] = [0, 0];
  session.on('Network.loadingFinished', ({ encodedDataLength }) => {
    bytes += encodedDataLength;
    requests += 1;
  });
  const measured: Measured[] = [];
  for (const { run: step, time } of steps) {
    const started = performance.now();
    await step(page);
    const taken = performance.now() - started;
    await page.waitForLoadState('networkidle');
    const milliseconds = (await time?.(page)) ?? taken;
    measured.push({ bytes, requests, milliseconds });
  }
  await tab.close();
  return measured;
}

/** Serves the files of a folder, texts with gzip; resolves to the URL. */
async function serveFolder(folder: string): Promise<string> {
  const server: Server = createServer((request, response) => {
    const path = normalize(new URL(request.url ?? '/', 'http://x').pathname);
    const file = join(folder, path === '/' ? 'index.html' : path);
    readFile(file).then(
      (content) => {
        const type = types[extname(file)];
        const packed = type === undefined ? {} : { 'content-encoding': 'gzip' };
        response.writeHead(200, { 'content-type': type ?? 'application/octet-stream', ...packed });
        response.end(type === undefined ? content : gzipSync(content));
      },
      () => response.writeHead(404).end(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
