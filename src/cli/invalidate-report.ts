import type { Json, JsonObject } from '../model/json.ts';

/** What an invalidate reports (docs/design/history.md#undo), before and after. */
interface Report {
  readonly done: boolean;
  readonly records: number;
  readonly rows: number;
  readonly unlisted: number;
}

interface DryRun extends Report {
  readonly gone: number;
  readonly restored: number;
  readonly changed: number;
  readonly changes: readonly {
    readonly id: string;
    readonly becomes: string;
    readonly fields: Readonly<Record<string, { readonly now: Json; readonly then: Json }>>;
  }[];
  readonly conflicts: readonly { readonly id: string; readonly rows: readonly number[] }[];
  readonly conflicting: number;
  readonly digest: string;
}

interface Done extends Report {
  readonly txn: string | null;
}

/** What the records of a report are called, and the command for them. */
interface Names {
  readonly noun: string;
  readonly command: string;
}

/** The report of an invalidate in words, with what to do next. */
export function invalidateLines(data: JsonObject, names: Names): readonly string[] {
  return data.done === true
    ? doneLines(data as unknown as Done, names)
    : dryRunLines(data as unknown as DryRun, names);
}

function doneLines({ records, rows, txn }: Done, { noun, command }: Names): readonly string[] {
  if (txn === null) return ['Nothing was in force that could be invalidated.'];
  return [
    `Done: ${rows} changes of ${records} ${noun}s are taken back.`,
    `To take it back: waymark ${command} invalidate --txn ${txn}`,
  ];
}

function dryRunLines(report: DryRun, { noun }: Names): readonly string[] {
  const { records, rows, gone, restored, changed, changes, conflicts } = report;
  if (records === 0) return ['Nothing is in force that could be invalidated.'];
  return [
    `Nothing is done yet. ${rows} changes of ${records} ${noun}s would be taken back.`,
    `It would delete ${gone} ${noun}s, restore ${restored} and change ${changed}.`,
    ...changes.flatMap(({ id, becomes, fields }) => [
      `  ${id}  ${becomes}`,
      ...Object.entries(fields).map(
        ([name, { now, then }]) =>
          `    ${name}: ${JSON.stringify(now)} would be ${JSON.stringify(then)}`,
      ),
    ]),
    ...(report.unlisted > 0 ? [`  … and ${report.unlisted} more`] : []),
    ...(report.conflicting > 0
      ? [`${report.conflicting} were edited again since; those later changes stay:`]
      : []),
    ...conflicts.map(({ id, rows: later }) => `  ${id}  seq ${later.join(', ')}`),
    `To do it, repeat the command with --confirm ${report.digest}`,
  ];
}
