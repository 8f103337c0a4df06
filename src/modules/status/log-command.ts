import type { OperationDescription } from '../../core/operations/operation.ts';
import { operations } from '../../modules.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { printable } from '../../core/report/escape.ts';
import type { AccessRow } from './live-access.ts';
import { linesFromApi } from '../../cli/remote/api-client.ts';
import { clientCommand, type Subcommand } from '../../cli/remote/client-command.ts';
import { inputOptions } from '../../cli/remote/operation-command.ts';

const name = 'svc1.log.access';
const { input } = operations.find((one) => one.name === name) as OperationDescription;

const access: Subcommand = {
  summary: 'print requests as the server answers them, until it is interrupted',
  options: inputOptions(Object.entries(input.properties as Readonly<Record<string, JsonObject>>)),
  async *run(_args, { api, input: filters }) {
    const { ms_min: msMin, ...others } = filters;
    const v = { ...others, ...(msMin !== undefined && { ms_min: Number(msMin) }) };
    for await (const answer of linesFromApi(api, name, v)) {
      const { dropped } = answer;
      if (typeof dropped === 'number') {
        yield { answer, lines: [], notes: [`${dropped} requests are missing: this is too slow.`] };
      } else yield { answer, lines: [lineOf(answer as unknown as AccessRow)] };
    }
  },
};

function lineOf(row: AccessRow): string {
  const { time, status, method, host, target, bytes, ms, source, cache, address, id } = row;
  const url = `${printable(host)}${target.startsWith('/') ? '' : ' '}${printable(target)}`;
  const through = cache === undefined ? source : `${source} (${cache})`;
  const more = id === undefined ? '' : ` ${id}`;
  const figures = `${bytes} B ${ms.toFixed(1)} ms`;
  return `${time} ${status} ${printable(method)} ${url} ${figures} ${through} ${address}${more}`;
}

/** `waymark log access`. */
export const defineLog = clientCommand({
  description: 'Print the access log of a running server as it is written, through the HTTP API.',
  // The other operations are for nodes only.
  subcommands: { access },
});
