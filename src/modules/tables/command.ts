import { recordCommand } from '../../cli/remote/record-commands.ts';
import { tableFamily } from './operations/table-family.ts';
import { rowFamily } from './rows/row-family.ts';

/** `waymark table`: reads and writes tables. */
export const defineTable = recordCommand(tableFamily);

/** `waymark record`: reads and writes rows. */
export const defineRecord = recordCommand(rowFamily);
