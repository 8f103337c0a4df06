// Shifts the clock of a process by the milliseconds in a file, which a test changes while the
// process runs: `NODE_OPTIONS=--import=…/clock.ts CLOCK_FILE=…`. No file of src/ depends on this.
import { readFileSync } from 'node:fs';

const file = process.env.CLOCK_FILE;
if (file !== undefined) {
  const systemNow = Date.now.bind(Date);
  let offsetMs = 0;
  const read = (): void => {
    try {
      offsetMs = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      // Without a file, the clock is right.
      offsetMs = 0;
    }
  };
  read();
  setInterval(read, 20).unref();
  Date.now = () => systemNow() + offsetMs;
}
