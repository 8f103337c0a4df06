import { setTimeout as wait } from 'node:timers/promises';
import type { Service } from '../rules/service.ts';

const type = 'bench.happened';

/** Inserts a hook for each URL, for the type of events below. */
export async function addHooks(service: Service, urls: readonly string[]): Promise<void> {
  for (const [at, url] of urls.entries()) {
    await service.call('svc1.webhook.insert', { name: `hook ${at}`, event: type, url });
  }
}

/** Inserts events as fast as they are acknowledged, `inFlight` at a time. */
export async function insertEvents(
  service: Service,
  { events, inFlight }: { readonly events: number; readonly inFlight: number },
): Promise<void> {
  let left = events;
  await Promise.all(
    Array.from({ length: inFlight }, async () => {
      while (left > 0) {
        left -= 1;
        await insertEvent(service);
      }
    }),
  );
}

/**
 * Inserts events at a constant rate for some time, without waiting for acknowledgements; resolves
 * to their number when the last one is acknowledged.
 */
export async function insertEventsAtRate(
  service: Service,
  { perSecond, seconds }: { readonly perSecond: number; readonly seconds: number },
): Promise<number> {
  const started = performance.now();
  const inserted: Promise<unknown>[] = [];
  while (inserted.length < perSecond * seconds) {
    const due = Math.floor(((performance.now() - started) / 1000) * perSecond);
    while (inserted.length < due) inserted.push(insertEvent(service));
    await wait(1);
  }
  await Promise.all(inserted);
  return inserted.length;
}

function insertEvent(service: Service): Promise<unknown> {
  const at = performance.timeOrigin + performance.now();
  const data = { at, product: 'P-7', level: 3, note: 'x'.repeat(200) };
  return service.call('svc1.event.insert', { type, data });
}
