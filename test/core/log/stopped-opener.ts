// A process that stops itself while it opens the LMDB environment of a folder, as often as the
// second argument says. It goes on with SIGCONT.
import { openEnvironment } from '../../../src/core/log/databases.ts';
import { OpeningLock } from '../../../src/core/log/folder/opening-lock.ts';

const [folder = '', count = '1'] = process.argv.slice(2);
const lock = new OpeningLock(folder);
for (let times = 0; times < Number(count); times += 1) {
  lock.alone(() => {
    process.kill(process.pid, 'SIGSTOP');
  });
  await openEnvironment(folder).close();
}
lock.close();
