import { BackgroundTasks } from '../../../core/background/tasks.ts';
import type { Config } from '../../../core/config/config.ts';
import { newId, now } from '../../../core/values/clock.ts';
import type { Logs } from '../../../core/report/log.ts';
import { createEmit, type Emit } from '../../../core/log/events/emit.ts';
import { claimFolder } from '../../../core/log/folder/folder-claim.ts';
import type { Store } from '../../../core/log/store.ts';
import { Deliverer } from '../../../modules/webhooks/deliverer.ts';
import { createReports } from '../../../modules/webhooks/reports.ts';
import type { AppInstance } from './compose.ts';
import type { AppContext } from './context.ts';
import { outboxEvents, outboxPart } from '../../../modules/nodes/log/outbox-entries.ts';

/** Makes the frame of all work in the background of this process. */
export function backgroundTasks({ log }: Pick<Logs, 'log'>): BackgroundTasks {
  return new BackgroundTasks({ log, now, monotonicMs: () => performance.now() });
}

/** Raises events in the log of a configuration's node, or in its outbox. */
export function emitFor({ node }: Config, { log }: Logs, store: Store): Emit {
  const by = 'serve';
  const put =
    node.central === undefined
      ? undefined
      : outboxEvents(store.part(outboxPart), { node: node.name, by, now });
  return createEmit({ store, put, newId, now, by, log });
}

/** Creates the deliverer of a data folder's webhooks; it always uses the current configuration. */
export function createDeliverer(
  folder: string,
  { store, emit, tasks, logs: { log } }: Pick<AppContext, 'store' | 'emit' | 'logs' | 'tasks'>,
  instance: () => AppInstance,
): Deliverer {
  return new Deliverer({
    store,
    log,
    tasks,
    attempt: (...args) => instance().attempt(...args),
    settings: () => {
      const { webhook, node } = instance().serving.config;
      return { ...webhook, node };
    },
    claim: () => claimFolder(folder, { pid: process.pid }, 'deliver'),
    now,
    monotonicMs: () => performance.now(),
    random: Math.random,
    report: createReports({ store, emit, log }),
  });
}
