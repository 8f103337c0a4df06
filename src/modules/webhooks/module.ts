import { defineModule } from '../../core/module.ts';
import { recordOperations } from '../../core/operations/records/write.ts';
import { listDeliveries } from './operations/deliveries.ts';
import { readDelivery } from './operations/delivery.ts';
import { listEvents, readEvent } from './operations/event-reads.ts';
import { listEventTypes } from './operations/event-types.ts';
import { insertEvent, testHook } from './operations/events.ts';
import { listHealth } from './operations/health.ts';
import { hookFamily } from './operations/hook-family.ts';
import { pauseHook, resumeHook } from './operations/pause.ts';
import { replayDeliveries } from './operations/replay.ts';
import { rotateSecret } from './operations/rotate.ts';
import type { EventTypes } from './event-types.ts';

declare module '../../core/module.ts' {
  interface Offers {
    readonly eventTypes: EventTypes;
  }
}

/** Events, and the hooks that deliver them: `[webhook]`. */
export const webhooks = defineModule({
  name: 'webhooks',
  needs: ['tables'],
  operations: [
    ...recordOperations(hookFamily),
    rotateSecret,
    pauseHook,
    resumeHook,
    testHook,
    replayDeliveries,
    listDeliveries,
    readDelivery,
    listHealth,
    insertEvent,
    readEvent,
    listEvents,
    listEventTypes,
  ],
  commands: [
    {
      name: 'hook',
      summary: 'read and write webhooks, and see their deliveries',
      load: async () => (await import('./command.ts')).defineHook,
    },
    {
      name: 'event',
      summary: 'insert and list events',
      load: async () => (await import('./event-command.ts')).defineEvent,
    },
  ],
});
