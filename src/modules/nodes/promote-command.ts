import { newId } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { openExistingData } from '../../cli/open-data.ts';
import { claimFolder } from '../../core/log/folder/folder-claim.ts';
import type { Store } from '../../core/log/store.ts';
import { writeLine, type DefineCommand, type Terminal } from '../../cli/command.ts';
import { configOption, jsonOption, requireConfig } from '../../cli/options.ts';
import { rowLogPart } from './log/open-row-log.ts';
import { upkeep } from '../upkeep/upkeep.ts';
import { outboxPart } from './log/outbox-entries.ts';

interface PromoteOptions {
  readonly config?: string;
  readonly json: boolean;
}

/** `waymark promote`: makes the copy of a lost centre the new centre. */
export const definePromote: DefineCommand = (command, terminal) => {
  command
    .description(
      'Make the data of a replica that of a centre, because the centre is lost. Stop the server ' +
        'first, and remove `central` from [node] of the ini file afterwards.',
    )
    .addOption(configOption())
    .addOption(jsonOption())
    .action(async ({ config, json }: PromoteOptions) => {
      await promote(config, json, terminal);
    });
};

async function promote(file: string | undefined, json: boolean, terminal: Terminal): Promise<void> {
  const config = await requireConfig(file, terminal);
  const { data } = config.server;
  const store = await openExistingData(config);
  let claim: { release(): Promise<void> } | undefined;
  try {
    claim = await claimFolder(data, { pid: process.pid });
    requireEmptyOutbox(store);
    await requireSound(store);
    const rowLog = store.part(rowLogPart);
    const { follows } = rowLog.identity();
    await rowLog.promote(newId());
    const { generation, id: log } = rowLog.identity();
    const seq = store.seq();
    if (json) writeLine(terminal.out, JSON.stringify({ data, seq, log, generation }));
    else writeLine(terminal.err, textOf({ data, seq, former: follows?.central ?? '' }));
  } finally {
    await store.close();
    await claim?.release();
  }
}

/** Entries that no centre has would never be sent. */
function requireEmptyOutbox(store: Store): void {
  const { waiting } = store.part(outboxPart).counts();
  if (waiting === 0) return;
  throw new Failure(
    'conflict',
    `${waiting} entries of the outbox wait for the centre: promote another node, ` +
      'and let this one follow it, which sends them.',
  );
}

async function requireSound(store: Store): Promise<void> {
  for await (const { differences } of store.part(upkeep).verify()) {
    const [first] = differences;
    if (first === undefined) continue;
    throw new Failure('unavailable', `The data is not sound: ${first.database}: ${first.what}.`);
  }
}

function textOf({
  data,
  seq,
  former,
}: {
  readonly data: string;
  readonly seq: number;
  readonly former: string;
}): string {
  return (
    `${data} is the data of a centre now, with the changes up to ${seq}. Remove \`central\` and ` +
    `\`key_file\` from [node] of the ini file, set \`role = central\`, and start the server. Set ` +
    `\`central\` of the other nodes to it. Do not start ${former} with its data again.`
  );
}
