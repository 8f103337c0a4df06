// A process that opens the LMDB environment of a folder and closes it. Arguments: the folder, and
// how often.
import { openEnvironment } from '../../../src/core/log/databases.ts';

const [folder = '', count = '0'] = process.argv.slice(2);
for (let times = 0; times < Number(count); times += 1) await openEnvironment(folder).close();
