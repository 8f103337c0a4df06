import { createHash, randomInt } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { BrowserContext, Page } from 'playwright-core';

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

/** Makes the pages of a context slow, if the environment asks for it. */
export async function slowDown(context: BrowserContext): Promise<void> {
  if (asked === undefined) return;
  const { cpuRate, seed } = asked;
  const counts = new Map<string, number>();
  await context.route('**', async (route, request) => {
    // A test waits for the document itself; what the document loads comes in any order.
    if (!request.isNavigationRequest()) {
      const name = `${request.method()} ${new URL(request.url()).pathname}`;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      await wait(delayMs(`${seed} ${name} ${count}`));
    }
    // The page may be gone meanwhile.
    await route.continue().catch(() => undefined);
  });
  context.on('page', (page) => {
    // A window that closes at once has no session.
    throttle(page, cpuRate).catch(() => undefined);
  });
}

async function throttle(page: Page, rate: number): Promise<void> {
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setCPUThrottlingRate', { rate });
}

function delayMs(of: string): number {
  return createHash('sha256').update(of).digest().readUInt32BE() % (delayMsMax + 1);
}
