import type { Config } from '../../core/config/config.ts';
import { type Reply, discard } from '../../core/http/reply.ts';
import type { Step } from '../../core/pipeline/pipeline.ts';
import { whenReady } from '../../core/values/when-ready.ts';
import { consoleOriginReply, withoutConsoleWorker } from './console.ts';

/**
 * The step of the console: nothing of the site is at an origin of its own, and where it shares that
 * of the site, no page rule answers with a service worker that could control it.
 */
export function consoleStep(config: Pick<Config, 'server'>): Step {
  return {
    at: 'console',
    handle(request, next) {
      const own = consoleOriginReply(config, request, request.method);
      if (own !== undefined) return own;
      const checked = (reply: Reply): Reply | Promise<Reply> => {
        try {
          return withoutConsoleWorker(config, { target: request, fields: request.fields }, reply);
        } catch (refused) {
          return discard(reply).then(() => {
            throw refused;
          });
        }
      };
      return whenReady(next(request), (reply) => reply && checked(reply));
    },
  };
}
