import { clientCommand, table, type Subcommand } from './client-command.ts';
import { callApi } from './api-client.ts';

const list: Subcommand = {
  summary: 'list the replicas and counters that follow the server',
  async *run(_args, { api }) {
    const answer = await callApi(api, 'node.list', { v: {} });
    const { rows } = answer.data;
    const heading = [
      ...['NAME', 'ROLE', 'PLACE', 'LAST CONTACT', 'SEQ', 'LAG', 'OUTBOX', 'REFUSED', 'CLOCK'],
      'VERSION',
    ];
    const cells = rows.map(({ name, role, place, last_contact: contact, seq, lag, ...node }) => [
      ...[name, role, place ?? '-', contact, String(seq), String(lag)],
      ...[String(node.outbox.waiting), String(node.outbox.refused)],
      ...[`${node.clock_offset_ms} ms`, node.version],
    ]);
    yield {
      answer,
      lines: rows.length === 0 ? [] : table(heading, cells),
      notes: rows.length === 0 ? ['No node follows this server.'] : [],
    };
  },
};

/** `waymark node list`. */
export const defineNode = clientCommand({
  description: 'Show the replicas and counters that follow a server, through the HTTP API.',
  // The other operations are for nodes only.
  subcommands: { list },
});
