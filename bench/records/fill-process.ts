// The process behind records.ts that fills a folder, so that nothing it leaves behind in memory is
// beside what is measured then. Its arguments are the data folder and how many rows; it prints
// FillTimes as JSON.
import { fillFolder, type FillTimes } from './rows.ts';

const [folder = '', rowsText = ''] = process.argv.slice(2);
const started = performance.now();
await fillFolder(folder, Number(rowsText));
const result: FillTimes = { seconds: (performance.now() - started) / 1000 };
console.log(JSON.stringify(result));
