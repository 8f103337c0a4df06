// A thread that writes to the LMDB environment of a folder, its workerData, without a pause until
// it gets a message.
import { parentPort, workerData } from 'node:worker_threads';
import { openEnvironment } from '../../../src/core/log/databases.ts';
import { transact } from '../../../src/core/log/environment.ts';

let isOver = false as boolean;
parentPort?.once('message', () => {
  isOver = true;
});
const environment = openEnvironment(workerData as string);
const texts = environment.openDB<string, number>('texts', { encoding: 'string' });
for (let count = 0; !isOver; count += 1) {
  await transact(environment, () => {
    texts.putSync(0, String(count));
  });
  if (count === 0) parentPort?.postMessage('writes');
}
await environment.close();
