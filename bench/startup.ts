import { spreadOf, type Spread } from './figures.ts';
import type { BenchServer } from './servers/server.ts';

/**
 * Milliseconds from the start of the process to its first response. Each server is started for the
 * first time.
 */
export async function measureStartUp(servers: readonly BenchServer[]): Promise<Spread> {
  const times: number[] = [];
  for (const server of servers) {
    const started = performance.now();
    await server.start();
    times.push(performance.now() - started);
    await server.stop();
  }
  return spreadOf(times);
}
