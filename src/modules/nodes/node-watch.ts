import { type Task, afterIntervals } from '../../core/background/tasks.ts';
import type { Emit } from '../../core/log/events/emit.ts';
import type { SharedPart, Store } from '../../core/log/store.ts';
import type { Log } from '../../core/report/log.ts';
import { type Metric, singleMetric } from '../../core/report/metrics.ts';
import type { Node } from '../webhooks/hook.ts';
import { type Nodes, nodesPart } from './log/node-states.ts';
import { Members } from './members.ts';
import { outboxPart } from './log/outbox-entries.ts';

/** How long a node may be silent before an event reports it, and how often the centre looks. */
const nodeSilentMs = 60_000;
const silenceLookMs = 10_000;

/** After this time without a sign, a machine of a cluster is no longer listed. */
const memberForgottenMs = 7 * 86_400_000;

/** `now` in milliseconds since 1970. */
interface NodeWatchParts {
  readonly store: Store;
  readonly emit: Emit;
  readonly node: Node;
  readonly version: string;
  readonly now: () => number;
  readonly log: Log;
}

/** Knows the nodes that follow this one and those of its cluster, and reports silent ones. */
export function nodeWatching(parts: NodeWatchParts, everyMs = silenceLookMs): readonly Task[] {
  const { shared } = parts.store;
  const members = shared && new Members({ ...parts, shared });
  return [
    {
      name: 'silent_nodes',
      title: 'The search for silent nodes',
      run: silentNodes(parts, everyMs),
    },
    ...(members === undefined ? [] : [members.task]),
  ];
}

function silentNodes({ store, emit, now, log }: NodeWatchParts, everyMs: number): Task['run'] {
  const { shared } = store;
  const nodes = store.part(nodesPart);
  const hasKey = (name: string): boolean => store.keys().some(({ node }) => node === name);
  let couldHear = hearingSince(now);
  // Right after the start, no node counts as silent.
  return afterIntervals(everyMs, async () => {
    // Without the cluster, this node hears nothing of the others.
    if (shared?.state().isConnected === false) couldHear = hearingSince(now);
    const sinceMs = couldHear();
    const reports = isReporter(shared);
    await reportSilentNodes({ nodes, emit, log, now, sinceMs, hasKey, reports });
  });
}

/** Whether this node reports the silence of others: of a cluster, the one that delivers does. */
function isReporter(shared: SharedPart | undefined): boolean {
  if (shared === undefined) return true;
  const deliverer = shared.tasks().find(({ task }) => task === 'webhooks');
  return deliverer?.member === shared.member;
}

/** `now` in milliseconds since 1970. */
interface SilenceParts {
  readonly nodes: Nodes;
  readonly emit: Emit;
  readonly log: Log;
  readonly now: () => number;
  /** Since when this node could have heard of others. */
  readonly sinceMs: number;
  /** Whether a follower has a key that is not revoked. */
  readonly hasKey: (name: string) => boolean;
  /** Whether it raises events: of the nodes of a cluster, one does. */
  readonly reports: boolean;
}

/**
 * Makes a function that returns since when this node could have heard of others, each time that it
 * looks: since its start, or since the process went on or the clock was moved. Both in milliseconds
 * since 1970.
 */
export function hearingSince(now: () => number): () => number {
  let [sinceMs, lookedMs] = [now(), now()];
  return () => {
    const nowMs = now();
    if (Math.abs(nowMs - lookedMs) > 3 * silenceLookMs) sinceMs = nowMs;
    lookedMs = nowMs;
    return sinceMs;
  };
}

/**
 * Reports each node that has not been heard of for `nodeSilentMs`, once until it reports again
 * (docs/design/nodes.md#the-view-of-the-centre). Removes a follower whose keys are revoked instead.
 */
export async function reportSilentNodes(parts: SilenceParts): Promise<void> {
  const { nodes, emit, log, now, sinceMs, hasKey, reports } = parts;
  for (const node of nodes.all()) {
    const { name, last_contact: contact, silent, cluster } = node;
    const contactMs = Date.parse(contact);
    // A contact in the future is from before the clock was set back.
    const silentMs = now() - (contactMs > now() ? sinceMs : Math.max(contactMs, sinceMs));
    const isForgotten =
      cluster === undefined
        ? silentMs >= nodeSilentMs && !hasKey(name)
        : now() - contactMs >= memberForgottenMs;
    if (isForgotten) {
      await nodes.remove(name);
      continue;
    }
    if (silent || silentMs < nodeSilentMs) continue;
    const message = `The node ${name} has not reported since ${contact}.`;
    if (reports) {
      log.warn({ node: name }, message);
      await emit('error.detected', { code: 'node_silent', message, id: name });
    }
    // Recorded last: after a crash it is reported again, rather than never.
    await nodes.put({ ...node, silent: true });
  }
}

/** The metrics of a node with a centre, or of a cluster, from its store; none for other ones. */
export function nodeMetrics(
  { central }: { readonly central: string | undefined },
  { part, shared, sharedPlace }: Pick<Store, 'part' | 'shared' | 'sharedPlace'>,
): readonly Metric[] {
  if (shared !== undefined) {
    return [
      singleMetric('gauge', 'waymark_cluster_connected', {
        help: 'Whether the node reaches the log of its cluster at this moment.',
        value: shared.state().isConnected ? 1 : 0,
      }),
      singleMetric('gauge', 'waymark_cluster_position', {
        help: 'The position up to which the node has applied the log of its cluster.',
        value: sharedPlace()?.position ?? 0,
      }),
    ];
  }
  if (central === undefined) return [];
  const outbox = part(outboxPart);
  const { waiting, refused, bytes } = outbox.counts();
  return [
    singleMetric('gauge', 'waymark_central_connected', {
      help: 'Whether the node follows its centre at this moment.',
      value: part(nodesPart).link()?.connected === true ? 1 : 0,
    }),
    singleMetric('gauge', 'waymark_outbox_waiting', {
      help: 'Entries of the outbox that wait for the centre.',
      value: waiting,
    }),
    singleMetric('gauge', 'waymark_outbox_refused', {
      help: 'Entries of the outbox that the centre has refused.',
      value: refused,
    }),
    singleMetric('gauge', 'waymark_outbox_bytes', {
      help: 'Bytes of the entries of the outbox that wait or were refused.',
      value: bytes,
    }),
    singleMetric('gauge', 'waymark_outbox_entries_max', {
      help: 'Entries that the outbox may have.',
      value: outbox.max.entries,
    }),
    singleMetric('gauge', 'waymark_outbox_bytes_max', {
      help: 'Bytes that the entries of the outbox may have.',
      value: outbox.max.bytes,
    }),
  ];
}
