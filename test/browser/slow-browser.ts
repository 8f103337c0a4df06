import { createHash, randomInt } from 'node:crypto';
import type { Page } from 'playwright-core';

/** How slow the browser of the tests is made, to find tests and pages that race. */
interface Slowness {
  /** The processor seems so many times as slow. */
  readonly cpuRate: number;
  /** It chooses the delays: the same seed delays the same requests of a tab for the same time. */
  readonly seed: number;
}

const delayMsMax = 300;

/**
 * What WAYMARK_TEST_SLOW_BROWSER asks for: a rate such as `6`, or one with a seed, `6:1234`.
 * Undefined without it. A seed is printed, so that a failure can be looked at again.
 */
function slowness(): Slowness | undefined {
  const { WAYMARK_TEST_SLOW_BROWSER: text = '' } = process.env;
  if (text === '') return undefined;
  const [cpuRate = NaN, seed = randomInt(1_000_000)] = text.split(':').map(Number);
  if (!(cpuRate >= 1) || !Number.isInteger(seed)) {
    throw new Error(
      `WAYMARK_TEST_SLOW_BROWSER=${text}: write a rate, 6, or one and a seed, 6:1234.`,
    );
  }
  process.stderr.write(`WAYMARK_TEST_SLOW_BROWSER=${cpuRate}:${seed}\n`);
  return { cpuRate, seed };
}

const asked = slowness();

/** Makes a page slow, and the windows that it opens, if the environment asks for it. */
export async function slowDown(page: Page): Promise<void> {
  if (asked === undefined) return;
  const { cpuRate: rate, seed } = asked;
  const session = await page.context().newCDPSession(page);
  const counts = new Map<string, number>();
  // Not by page.route, which answers the preflight requests of CORS by itself.
  session.on('Fetch.requestPaused', ({ requestId, resourceType, request }) => {
    const name = `${request.method} ${new URL(request.url).pathname}`;
    const count = (counts.get(name) ?? 0) + 1;
    counts.set(name, count);
    // A test waits for a document by itself; what the document loads comes in any order.
    const ms = resourceType === 'Document' ? 0 : delayMs(`${seed} ${name} ${count}`);
    setTimeout(() => {
      // The page may be gone meanwhile.
      session.send('Fetch.continueRequest', { requestId }).catch(() => undefined);
    }, ms);
  });
  page.on('popup', (opened) => {
    // A window that is closed at once has no session.
    slowDown(opened).catch(() => undefined);
  });
  await session.send('Fetch.enable', { patterns: [{ urlPattern: '*' }] });
  await session.send('Emulation.setCPUThrottlingRate', { rate });
}

function delayMs(of: string): number {
  return createHash('sha256').update(of).digest().readUInt32BE() % (delayMsMax + 1);
}
