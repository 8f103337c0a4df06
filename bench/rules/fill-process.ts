// The process behind rules.ts that fills a folder: it ends before the measurement, so that its
// memory does not slow it down. Its arguments are the data folder and the number of rules; it
// prints FillTimes as JSON.
import { fillFolder, type FillTimes } from './fill.ts';

const [folder = '', rulesText = ''] = process.argv.slice(2);
const started = performance.now();
await fillFolder(folder, Number(rulesText));
const result: FillTimes = { seconds: (performance.now() - started) / 1000 };
console.log(JSON.stringify(result));
