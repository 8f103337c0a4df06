/** The number of runs on the command line; ends the process with a message if it is no number. */
export function runsAsked(argument: string | undefined): number {
  const runs = Number(argument ?? 200);
  if (Number.isSafeInteger(runs) && runs > 0) return runs;
  process.stderr.write(`How many runs? A whole number from 1 on, not ${argument ?? ''}.\n`);
  process.exit(2);
}
