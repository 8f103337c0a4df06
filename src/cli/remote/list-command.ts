import type { Operations } from '../client/operations.ts';
import type { JsonObject } from '../../core/values/json/json.ts';
import { callApi, type ApiTarget } from './api-client.ts';
import { table, type Subcommand, type SubcommandResult } from './client-command.ts';

/** The operations that answer rows; those that answer them in pages have `next`, too. */
type ListOperation = {
  [Name in keyof Operations]: Operations[Name]['output'] extends {
    readonly rows: readonly unknown[];
  }
    ? Name
    : never;
}[keyof Operations];

type RowOf<Name extends ListOperation> = Operations[Name]['output']['rows'][number];

/** The columns of a list: a heading, and the text of a row below it. */
export type ListColumns<Row> = Readonly<Record<string, (row: Row) => string>>;

/** How a command shows the rows of an operation. */
interface ListShape<Name extends ListOperation> extends Pick<Subcommand, 'summary' | 'options'> {
  readonly columns: ListColumns<RowOf<Name>>;
  /** What standard error says if there is no row; the heading alone is printed without it. */
  readonly none?: string;
}

/** The subcommand that prints the rows of an operation, page by page. */
export function listSubcommand<Name extends ListOperation>(
  name: Name,
  { summary, options, columns, none }: ListShape<Name>,
): Subcommand {
  return {
    summary,
    ...(options !== undefined && { options }),
    async *run(_args, { api, input }) {
      yield* listPages({ api, name, columns, none }, input);
    },
  };
}

/** The pages of a list; each begins after `next` of the one before. */
export async function* listPages(
  list: {
    readonly api: ApiTarget;
    readonly name: string;
    /** They get the rows of the operation. */
    readonly columns: ListColumns<never>;
    readonly none?: string | undefined;
  },
  input: JsonObject,
): AsyncIterable<SubcommandResult> {
  const { api, name, columns, none } = list;
  const heading = Object.keys(columns);
  let after: JsonObject[string] | undefined;
  do {
    const v: JsonObject = { ...input, ...(after !== undefined && { after }) };
    const answer: JsonObject = await callApi(api, name, { v });
    const { rows, next } = answer.data as { readonly rows: readonly never[] } & JsonObject;
    const isFirst = after === undefined;
    const cells = rows.map((row) => Object.values(columns).map((column) => column(row)));
    const isEmpty = isFirst && rows.length === 0 && none !== undefined;
    const lines = isEmpty ? [] : table(heading, cells);
    yield { answer, lines: isFirst ? lines : lines.slice(1), notes: isEmpty ? [none] : [] };
    after = next ?? undefined;
  } while (after !== undefined);
}
