import { syntaxFailure, type Directive } from '../directive.ts';
import { blockDepthMax } from '../limits.ts';

type OpenSection = Directive & { readonly block: Directive[] };

/**
 * Parses a configuration of Apache: one directive a line, sections in `<…>`. The names of
 * directives are in lower case. `<IfModule>` and `<IfVersion>` are replaced by what they contain,
 * unless they ask that a module is missing. Throws `invalid` with a line.
 */
export function parseApache(text: string): readonly Directive[] {
  const root: Directive[] = [];
  const open: OpenSection[] = [];
  for (const { line, content } of logicalLines(text)) {
    const inner = open.at(-1);
    const [, end] = /^<\/\s*(\w+)\s*>$/.exec(content) ?? [];
    if (end !== undefined) {
      if (inner?.name !== `<${end.toLowerCase()}>`)
        throw syntaxFailure(line, `${content} without its start`);
      open.pop();
      const target = open.at(-1)?.block ?? root;
      if (!isCondition(inner)) target.push(inner);
      else if (!isAboutMissing(inner)) target.push(...inner.block);
      continue;
    }
    const isSection = content.startsWith('<') && content.endsWith('>');
    const [first = '', ...words] = wordsOf(isSection ? content.slice(1, -1) : content);
    const name = first.toLowerCase();
    if (isSection) {
      open.push({ name: `<${name}>`, words, line, text: content, block: [] });
      if (open.length > blockDepthMax) throw syntaxFailure(line, 'the sections nest too deep');
    } else (inner?.block ?? root).push({ name, words, line, text: content, block: undefined });
  }
  const last = open.at(-1);
  if (last !== undefined) throw syntaxFailure(last.line, `${last.text} has no end`);
  return root;
}

function isCondition({ name }: Directive): boolean {
  return ['<ifmodule>', '<ifversion>', '<ifdefine>'].includes(name);
}

function isAboutMissing({ name, words }: Directive): boolean {
  return name === '<ifdefine>' || words[0]?.startsWith('!') === true;
}

/** Lines without comments; a `\` at the end joins the next line. */
function* logicalLines(
  text: string,
): Generator<{ readonly line: number; readonly content: string }> {
  let joined = '';
  let start = 0;
  for (const [at, raw] of text.split(/\r\n|\n|\r/).entries()) {
    if (joined === '') start = at + 1;
    if (raw.endsWith('\\')) {
      joined += `${raw.slice(0, -1)} `;
      continue;
    }
    const content = (joined + raw).trim();
    joined = '';
    if (content !== '' && !content.startsWith('#')) yield { line: start, content };
  }
}

function wordsOf(text: string): readonly string[] {
  const words = text.matchAll(/"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|(\S+)/g);
  return [...words].map(([, double, single, plain]) => {
    const quoted = double ?? single;
    return quoted === undefined ? (plain ?? '') : quoted.replaceAll(/\\(["'])/g, '$1');
  });
}
