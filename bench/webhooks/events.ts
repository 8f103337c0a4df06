import { setTimeout as wait } from 'node:timers/promises';
import type { Service } from '../rules/service.ts';

const type = 'bench.happened';

/** Inserts hooks for the events below at some URLs, and hooks for other events. */
export async function addHooks(service: Service, urls: readonly string[]): Promise<void> {
  for (const [at, url] of urls.entries()) {
    await service.call('svc1.webhook.insert', { name: `hook ${at}`, event: type, url });
  }
}

/** Inserts a number of events, some at a time, as fast as they are acknowledged. */
export async function tellEvents(
  service: Service,
  { events, inFlight }: { readonly events: number; readonly inFlight: number },
): Promise<void> {
  let left = events;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left > 0) {
        left -= 1;
        await tellOne(service);
      }
    }),
  );
}

/**
 * Inserts events at a constant rate for some time, whether the ones before are acknowledged or not;
 * resolves to their number when the last one is acknowledged.
 */
export async function tellSteadily(
  service: Service,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<number> {
  const started = performance.now();
  const told: Promise<unknown>[] = [];
  while (told.length < perSecond * seconds) {
    const due = Math.floor(((performance.now() - started) / 1000) * perSecond);
    while (told.length < due) told.push(tellOne(service));
    await wait(1);
  }
  await Promise.all(told);
  return told.length;
}

function tellOne(service: Service): Promise<unknown> {
  const at = performance.timeOrigin + performance.now();
  const data = { at, product: 'P-7', level: 3, note: 'x'.repeat(200) };
  return service.call('svc1.event.insert', { type, data });
}
