// The process behind rules.ts that fills a folder, so that nothing it leaves behind in memory is
// beside what is measured then. Its arguments are the data folder and how many rules; it prints
// FillTimes as JSON.
import { fillFolder, type FillTimes } from './fill.ts';

const [folder = '', rulesText = ''] = process.argv.slice(2);
const started = performance.now();
await fillFolder(folder, Number(rulesText));
const result: FillTimes = { seconds: (performance.now() - started) / 1000 };
console.log(JSON.stringify(result));
