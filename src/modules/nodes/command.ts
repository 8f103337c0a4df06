import { clientCommand, table, type Subcommand } from '../../cli/remote/client-command.ts';
import { callApi } from '../../cli/remote/api-client.ts';

const list: Subcommand = {
  summary: 'list the machines of the cluster, and the replicas and counters that follow it',
  async *run(_args, { api }) {
    const answer = await callApi(api, 'node.list', { v: {} });
    const { rows } = answer.data;
    const isCluster = rows.some(({ cluster }) => cluster !== undefined);
    const heading = [
      ...['NAME', 'ROLE', 'PLACE', 'LAST CONTACT', 'SEQ', 'LAG', 'OUTBOX', 'REFUSED', 'CLOCK'],
      'VERSION',
      ...(isCluster ? ['TASKS', 'REPORTS TO'] : []),
    ];
    const cells = rows.map(({ name, role, place, last_contact: contact, seq, lag, ...node }) => [
      ...[name, role, place ?? '-', contact, String(seq), String(lag)],
      ...[String(node.outbox.waiting), String(node.outbox.refused)],
      ...[`${node.clock_offset_ms} ms`, node.version],
      ...(isCluster ? [tasksOf(node), node.via ?? '-'] : []),
    ]);
    yield {
      answer,
      lines: rows.length === 0 ? [] : table(heading, cells),
      notes:
        rows.length === 0
          ? ['No node follows this server.']
          : rows.flatMap(({ problem }) => problem ?? []),
    };
  },
};

/** The tasks of a machine for its cluster. */
function tasksOf({
  cluster,
}: {
  readonly cluster?: { readonly tasks: readonly string[] } | undefined;
}): string {
  return cluster === undefined || cluster.tasks.length === 0 ? '-' : cluster.tasks.join(',');
}

/** `waymark node list`. */
export const defineNode = clientCommand({
  description:
    'Show the machines of a cluster and the nodes that follow a server, through the HTTP API.',
  // The other operations are for nodes only.
  subcommands: { list },
});
