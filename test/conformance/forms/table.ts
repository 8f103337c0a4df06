import type { Row } from './answers.ts';

/** The place of a table in `docs/reference/request-forms.md`. */
export type TableName = 'browsers' | 'programs';

const heads: Readonly<Record<TableName, readonly string[]>> = {
  browsers: ['in a link', 'a browser sends'],
  programs: ['a program sends'],
};

const columns: readonly string[] = [
  ...['nginx: application', 'file', 'Caddy: application', 'file'],
  ...['Waymark: application', 'file', 'stored page'],
];

/** The cells of a row, without those of servers that did not run. */
export function cellsOf(name: TableName, row: Row): readonly string[] {
  const { written, sent, nginx = ['', ''], caddy = ['', ''], waymark } = row;
  const isSame = sent === written;
  const sentCell = isSame ? 'the same' : sent === undefined ? '' : codeOf(sent);
  const first = name === 'browsers' ? [codeOf(written), sentCell] : [codeOf(written)];
  return [...first, ...nginx, ...caddy, ...waymark];
}

/** A table in Markdown. */
export function tableOf(name: TableName, rows: readonly Row[]): string {
  const head = [...heads[name], ...columns];
  const lines = [head, head.map(() => '---'), ...rows.map((row) => cellsOf(name, row))];
  return lines.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

/** A text in code, in a cell of a table. */
function codeOf(text: string): string {
  const safe = text.replaceAll('|', String.raw`\|`);
  return text.includes('`') ? `\`\`${safe}\`\`` : `\`${safe}\``;
}

/** The rows of cells of a table in the documentation. */
export function cellsIn(name: TableName, markdown: string): readonly (readonly string[])[] {
  const lines = partOf(name, markdown)
    .split('\n')
    .filter((line) => line.startsWith('|'));
  return lines.slice(2).map((line) =>
    line
      .split(/(?<!\\)\|/)
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
}

/** The documentation with another table. */
export function withTable(name: TableName, markdown: string, table: string): string {
  const start = `<!-- ${name} -->\n`;
  return markdown.replace(start + partOf(name, markdown), () => `${start}\n${table}\n`);
}

/** What stands between the comments of a table. */
function partOf(name: TableName, markdown: string): string {
  const [, part] = new RegExp(`<!-- ${name} -->\n([^]*?)<!-- end -->`).exec(markdown) ?? [];
  if (part === undefined) throw new Error(`docs/reference/request-forms.md has no table ${name}.`);
  return part;
}
