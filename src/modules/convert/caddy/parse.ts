import { type Directive, syntaxFailure } from '../directive.ts';
import { type IncludedText, type ReadIncluded, inFile, ofFile } from '../include.ts';
import { blockDepthMax, includeDepthMax } from '../limits.ts';

/** How many lines the snippets of a Caddyfile may expand to. */
const expandedDirectivesMax = 100_000;

interface Token {
  readonly text: string;
  readonly line: number;
  /** Whether it was written without quotes, so that `{` opens a block. */
  readonly isPlain: boolean;
}

/** Splits a Caddyfile into words with their lines; an escaped line break goes on with the line. */
function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  let line = 1;
  // Words after an escaped line break belong to the line before it.
  let joined = 0;
  let at = 0;
  while (at < text.length) {
    const [whole = '', space, mark, quoted, raw, plain] = matchAt(text, at);
    let end = at + whole.length;
    const place = { line: line - joined, isPlain: plain !== undefined };
    if (mark !== undefined) {
      const found = heredocEnd(text, { from: end, mark });
      if (found === undefined) throw syntaxFailure(line, `the text after <<${mark} has no end`);
      tokens.push({ ...place, text: found.content });
      end = found.end;
    } else if (space === undefined) {
      const content = raw ?? plain ?? quoted?.replaceAll(/\\(["\\])/g, '$1');
      if (content === undefined) throw syntaxFailure(line, `${whole} has no end`);
      tokens.push({ ...place, text: content });
    }
    const breaks = text.slice(at, end).split('\n').length - 1;
    line += breaks;
    if (space?.startsWith('\\') === true) joined += 1;
    else if (breaks > 0 && space !== undefined) joined = 0;
    at = end;
  }
  return tokens;
}

const space = '(\\\\\\r?\\n|\\s+|#[^\\n]*)';
const heredoc = '<<([A-Za-z0-9_-]{1,64})\\r?\\n';
const quotes = '"((?:[^"\\\\]|\\\\[\\s\\S])*)"|`([^`]*)`';
/** Space or a comment, a heredoc, the three kinds of words of a Caddyfile, or a broken one. */
const token = new RegExp(`${space}|${heredoc}|${quotes}|([^\\s"\`][^\\s]*)|[\\s\\S]`, 'y');

function matchAt(text: string, at: number): readonly (string | undefined)[] {
  token.lastIndex = at;
  return token.exec(text) ?? [];
}

/** The text of a heredoc, without the indent of its end mark. */
function heredocEnd(
  text: string,
  { from, mark }: { readonly from: number; readonly mark: string },
): { readonly content: string; readonly end: number } | undefined {
  const lines: string[] = [];
  let at = from;
  while (at <= text.length) {
    const lineEnd = text.indexOf('\n', at);
    const line = text.slice(at, lineEnd === -1 ? text.length : lineEnd);
    if (line.trim() === mark) {
      const indent = line.slice(0, line.indexOf(mark));
      const unindented = lines.map((one) =>
        one.startsWith(indent) ? one.slice(indent.length) : one,
      );
      return { content: unindented.join('\n'), end: at + line.length };
    }
    if (lineEnd === -1) return undefined;
    lines.push(line.replace(/\r$/, ''));
    at = lineEnd + 1;
  }
  return undefined;
}

/** A block of a Caddyfile: the words before its `{`, and its directives. */
export interface CaddyBlock {
  readonly addresses: readonly string[];
  readonly line: number;
  /** The imported file that has it. */
  readonly file?: string;
  readonly block: readonly Directive[];
}

/**
 * Parses a Caddyfile into its blocks: global options (without an address), snippets (`(name)`) and
 * sites. `import` is replaced by the directives of the snippet or of the files, which `read` reads.
 * Throws `invalid` with a line.
 */
export function parseCaddyfile(text: string, read: ReadIncluded): readonly CaddyBlock[] {
  const blocks = withImported(new Parser(tokensOf(text)).blocks(), read, 0);
  const snippets = new Map(
    blocks
      .filter(({ addresses }) => /^\(.+\)$/.test(addresses[0] ?? ''))
      .map((one) => [(one.addresses[0] ?? '').slice(1, -1), one.block]),
  );
  let expanded = 0;
  const expand = (block: readonly Directive[], depth: number): readonly Directive[] =>
    block.flatMap((one): readonly Directive[] => {
      expanded += 1;
      const snippet = one.name === 'import' ? snippets.get(one.words[0] ?? '') : undefined;
      if (depth > blockDepthMax || expanded > expandedDirectivesMax) {
        throw syntaxFailure(one.line, 'the snippets import each other without end');
      }
      if (snippet !== undefined)
        return expand(withArguments(snippet, one.words.slice(1)), depth + 1);
      const files = one.name === 'import' ? read(one.words[0] ?? '', one.file) : undefined;
      if (files !== undefined) return expand(files.flatMap(directivesOf), depth + 1);
      return [{ ...one, block: one.block && expand(one.block, depth + 1) }];
    });
  return blocks
    .filter(({ addresses }) => !/^\(.+\)$/.test(addresses[0] ?? ''))
    .map((one) => ({ ...one, block: expand(one.block, 0) }));
}

/** The directives of a file that is imported into a block. */
function directivesOf({ file, text }: IncludedText): readonly Directive[] {
  const parse = (): readonly Directive[] => new Parser(tokensOf(text)).directives();
  return ofFile(inFile(file, parse), file);
}

/** The blocks, with those of imported files in place of `import` outside of a block. */
function withImported(
  blocks: readonly CaddyBlock[],
  read: ReadIncluded,
  depth: number,
): readonly CaddyBlock[] {
  return blocks.flatMap((one): readonly CaddyBlock[] => {
    const [word, pattern] = one.addresses;
    const files =
      word === 'import' && depth < includeDepthMax ? read(pattern ?? '', one.file) : undefined;
    if (files === undefined) return [one];
    return files.flatMap(({ file, text }) => {
      const found = inFile(file, () => new Parser(tokensOf(text)).blocks());
      const inner = found.map((block) => ({ ...block, file, block: ofFile(block.block, file) }));
      return withImported(inner, read, depth + 1);
    });
  });
}

/** Puts the arguments of an `import` in place of `{args[0]}` and `{args.0}`. */
function withArguments(
  block: readonly Directive[],
  values: readonly string[],
): readonly Directive[] {
  if (values.length === 0) return block;
  const fill = (text: string): string =>
    text.replaceAll(
      /\{args(?:\[(\d{1,3})\]|\.(\d{1,3}))\}/g,
      (whole, one?: string, other?: string) => values[Number(one ?? other)] ?? whole,
    );
  return block.map((one) => ({
    ...one,
    words: one.words.map(fill),
    block: one.block && withArguments(one.block, values),
  }));
}

class Parser {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  blocks(): readonly CaddyBlock[] {
    const blocks: CaddyBlock[] = [];
    while (this.#at < this.#tokens.length) {
      const { line } = this.#tokens[this.#at] ?? { line: 1 };
      const addresses = this.#addresses();
      if (this.#opens()) {
        this.#at += 1;
        blocks.push({ addresses, line, block: this.#block(line, 1) });
      } else if (addresses[0] === 'import') blocks.push({ addresses, line, block: [] });
      // A file with one site needs no braces.
      else blocks.push({ addresses, line, block: this.directives() });
    }
    return blocks;
  }

  /** All directives up to the end. */
  directives(): readonly Directive[] {
    const block: Directive[] = [];
    while (this.#at < this.#tokens.length) block.push(this.#directive(1));
    return block;
  }

  /** The addresses of a site: the first line, and the next ones after a comma. */
  #addresses(): readonly string[] {
    const found: string[] = [];
    let line = this.#tokens[this.#at]?.line;
    while (this.#at < this.#tokens.length && !this.#opens()) {
      const next = this.#tokens[this.#at];
      if (next === undefined || (next.line !== line && !(found.at(-1) ?? '').endsWith(','))) break;
      found.push(next.text);
      line = next.line;
      this.#at += 1;
    }
    return found.flatMap((one) => one.split(',')).filter(Boolean);
  }

  #opens(): boolean {
    const next = this.#tokens[this.#at];
    return next?.isPlain === true && next.text === '{';
  }

  #block(line: number, depth: number): readonly Directive[] {
    if (depth > blockDepthMax) throw syntaxFailure(line, 'the blocks nest too deep');
    const block: Directive[] = [];
    for (;;) {
      const next = this.#tokens[this.#at];
      if (next === undefined) throw syntaxFailure(line, 'this block has no }');
      if (next.isPlain && next.text === '}') {
        this.#at += 1;
        return block;
      }
      block.push(this.#directive(depth));
    }
  }

  #directive(depth: number): Directive {
    const [first] = this.#tokens.slice(this.#at, this.#at + 1);
    if (first === undefined || (first.isPlain && first.text === '}')) {
      throw syntaxFailure(first?.line ?? 1, 'a } without its {');
    }
    this.#at += 1;
    const words: string[] = [];
    let block: readonly Directive[] | undefined;
    for (
      let next = this.#tokens[this.#at];
      next?.line === first.line;
      next = this.#tokens[this.#at]
    ) {
      if (this.#opens()) {
        this.#at += 1;
        block = this.#block(first.line, depth + 1);
        break;
      }
      if (next.isPlain && next.text === '}') break;
      words.push(next.text);
      this.#at += 1;
    }
    const text = [first.text, ...words].join(' ');
    return { name: first.text, words, line: first.line, text, block };
  }
}
