import { clientCommand } from '../../cli/remote/client-command.ts';
import { listSubcommand } from '../../cli/remote/list-command.ts';

const list = listSubcommand('source.list', {
  summary: 'list the servers that content is fetched from',
  columns: {
    ORIGIN: (row) => (row.set_aside ? `${row.origin} (set aside)` : row.origin),
    REQUESTS: (row) => String(row.requests),
    FAILED: (row) => String(row.failed),
    '5XX': (row) => String(row.server_errors),
    P50: (row) => shownMs(row.p50_ms),
    P99: (row) => shownMs(row.p99_ms),
    OPEN: (row) => `${row.open_requests}/${row.connections}`,
    'LAST ERROR': ({ last_error: last }) => (last === null ? '-' : `${last.at} ${last.message}`),
  },
  none: 'The server has fetched nothing yet.',
});

function shownMs(ms: number | null): string {
  return ms === null ? '-' : `${ms.toFixed(1)} ms`;
}

/** `waymark source list`. */
export const defineSource = clientCommand({
  description: 'Show the servers that content is fetched from, through the HTTP API.',
  subcommands: { list },
});
