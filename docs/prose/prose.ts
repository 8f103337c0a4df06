import { readFileSync } from 'node:fs';
import { parseSync, Visitor } from 'oxc-parser';
import { terms } from './terms.ts';

/** More words than this in a sentence are a problem. */
const sentenceWordsMax = 45;

/** A problem of a text: its line, and what is wrong. */
export interface ProseProblem {
  readonly line: number;
  readonly message: string;
}

/** Checks the wording and the sentences of a Markdown page; code is left out. */
export function markdownProblems(markdown: string): readonly ProseProblem[] {
  const blank = (text: string): string => text.replaceAll(/[^\n]/g, ' ');
  const text = markdown
    .replaceAll(/^```.*?^```/gms, blank)
    .replaceAll(/`[^`]*`/g, (code) => code.replaceAll(/[^`\n]/g, '…'))
    .replaceAll(/\]\([^)]*\)/g, blank);
  return [...termProblems(text), ...longSentences(text)];
}

/** Checks the wording of the comments and texts of a TypeScript file. */
export function codeProblems(path: string, code: string): readonly ProseProblem[] {
  const { program, comments } = parseSync(path, code);
  const texts = comments.map(({ start, end }) => [start, end] as const);
  new Visitor({
    Literal({ value, start, end }) {
      if (typeof value === 'string' && value.includes(' ')) texts.push([start, end]);
    },
    TemplateElement({ start, end }) {
      texts.push([start, end]);
    },
    JSXText({ start, end }) {
      texts.push([start, end]);
    },
  }).visit(program);
  return texts.flatMap(([start, end]) => {
    const before = code.slice(0, start).split('\n').length - 1;
    const text = code
      .slice(start, end)
      .replaceAll(/`[^`]*`/g, '…')
      // A comment that goes on in the next line.
      .replaceAll(/\n[ \t]*(?:\*|\/\/)?[ \t]?/g, '\n');
    return termProblems(text).map(({ line, message }) => ({ line: before + line, message }));
  });
}

/** Reads a file and checks it. */
export function fileProblems(path: string): readonly ProseProblem[] {
  const text = readFileSync(path, 'utf8');
  if (!path.endsWith('.md')) return codeProblems(path, text);
  // What was released stays as it was written.
  return markdownProblems(text.split(/^## \d/m)[0] ?? '');
}

function termProblems(text: string): readonly ProseProblem[] {
  return terms.flatMap(({ pattern, instead }) =>
    [...text.matchAll(inText(pattern))].map(({ 0: found, index }) => ({
      line: text.slice(0, index).split('\n').length,
      message: `“${found.replaceAll(/\s+/g, ' ')}”: write ${instead}.`,
    })),
  );
}

/** A pattern whose spaces may be the end of a line, and not of a paragraph. */
function inText({ source, flags }: RegExp): RegExp {
  return new RegExp(source.replaceAll(' ', String.raw`(?:[ \t]+|[ \t]*\n[ \t]*)`), `${flags}g`);
}

function longSentences(text: string): readonly ProseProblem[] {
  const problems: ProseProblem[] = [];
  let line = 1;
  // Paragraphs, items of lists and cells of tables.
  for (const block of text.split(/(\n[ \t]*\n|\n(?=[ \t]*(?:[-*|]|\d+\.) )|\|)/)) {
    for (const sentence of block.split(/(?<=[.!?:])\s/)) {
      const count = sentence.split(/\s+/).filter((word) => /\w|…/.test(word)).length;
      if (count > sentenceWordsMax) {
        const start = sentence.trim().slice(0, 40).replaceAll('\n', ' ');
        problems.push({
          line,
          message: `A sentence has ${count} words, at most ${sentenceWordsMax} are readable: ${start} …`,
        });
      }
    }
    line += block.split('\n').length - 1;
  }
  return problems;
}
