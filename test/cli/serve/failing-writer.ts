import { families } from '../../../src/families.ts';
// A process with a bug: an exception, while a thread holds the write lock of a store.
import { uuidv7 } from 'uuidv7';
import { endOnBug } from '../../../src/cli/serve/end-at-once.ts';
import { openStore } from '../../../src/core/log/open.ts';

const [folder = ''] = process.argv.slice(2);
endOnBug();
const store = await openStore({ families, folder, now: Date.now, newId: uuidv7 });
store.commit('test', () => ({ drafts: [], answer: () => undefined })).catch(() => undefined);
// The thread begins the transaction, and waits for this one to decide.
await Promise.resolve();
setImmediate(() => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  throw new Error('a bug');
});
