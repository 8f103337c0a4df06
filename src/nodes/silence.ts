import type { Log } from '../observability/log.ts';
import type { Emit } from '../store/emit.ts';
import type { Nodes } from '../store/nodes.ts';
import { nodeSilentMs } from './limits.ts';

/** The dependencies of a search for silent nodes; `now` in milliseconds since 1970. */
interface SilenceParts {
  readonly nodes: Nodes;
  readonly emit: Emit;
  readonly log: Log;
  readonly now: () => number;
}

/**
 * Reports each node that has not been heard of for `nodeSilentMs`, once until it reports again
 * (docs/design/nodes.md#the-view-of-the-centre).
 */
export async function reportSilentNodes({ nodes, emit, log, now }: SilenceParts): Promise<void> {
  for (const node of nodes.all()) {
    const { name, last_contact: contact, silent } = node;
    if (silent || now() - Date.parse(contact) < nodeSilentMs) continue;
    const message = `The node ${name} has not reported since ${contact}.`;
    log.warn({ node: name }, message);
    await emit('error.detected', { code: 'node_silent', message, id: name });
    // Recorded last: after a crash it is reported again, rather than never.
    await nodes.put({ ...node, silent: true });
  }
}
