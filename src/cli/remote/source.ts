import { callApi } from './api-client.ts';
import { clientCommand, table, type Subcommand } from './client-command.ts';

const list: Subcommand = {
  summary: 'list the servers that content is fetched from',
  async *run(_args, { api }) {
    const answer = await callApi(api, 'source.list', { v: {} });
    const { rows } = answer.data;
    const heading = ['ORIGIN', 'REQUESTS', 'FAILED', '5XX', 'P50', 'P99', 'OPEN', 'LAST ERROR'];
    const cells = rows.map(({ origin, requests, failed, last_error: last, ...more }) => [
      more.set_aside ? `${origin} (set aside)` : origin,
      ...[requests, failed, more.server_errors].map(String),
      ...[more.p50_ms, more.p99_ms].map((ms) => (ms === null ? '-' : `${ms.toFixed(1)} ms`)),
      `${more.open_requests}/${more.connections}`,
      last === null ? '-' : `${last.at} ${last.message}`,
    ]);
    yield {
      answer,
      lines: rows.length === 0 ? [] : table(heading, cells),
      notes: rows.length === 0 ? ['The server has fetched nothing yet.'] : [],
    };
  },
};

/** `waymark source list`. */
export const defineSource = clientCommand({
  description: 'Show the servers that content is fetched from, through the HTTP API.',
  subcommands: { list },
});
