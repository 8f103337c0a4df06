import { syntaxFailure, type Directive } from '../directive.ts';
import { blockDepthMax } from '../limits.ts';

interface Word {
  readonly kind: 'word' | ';' | '{' | '}';
  readonly text: string;
  readonly line: number;
}

const double = '"((?:[^"\\\\]|\\\\[\\s\\S])*)"';
const single = "'((?:[^'\\\\]|\\\\[\\s\\S])*)'";
const escaped = '\\\\[\\s\\S]|\\$\\{\\w{1,64}\\}';
const plain = `((?:${escaped}|[^\\s;{}\\\\"'])(?:${escaped}|[^\\s;{}\\\\])*)`;
/** Space, a comment, a mark, a quoted word, or a plain one, with `${name}` and escapes in it. */
const token = new RegExp(`\\s+|#[^\\n]*|([;{}])|${double}|${single}|${plain}|[\\s\\S]`, 'g');

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

function* wordsOf(configuration: string): Generator<Word> {
  let line = 1;
  for (const [whole, mark, doubled, singled, written] of configuration.matchAll(token)) {
    if (mark !== undefined) yield { kind: mark as ';' | '{' | '}', text: mark, line };
    else if (doubled !== undefined || singled !== undefined) {
      const quoted = doubled ?? singled ?? '';
      const text = quoted.replaceAll(/\\(["'\\ntr])/g, (_, one: string) => escapes[one] ?? one);
      yield { kind: 'word', text, line };
    } else if (written !== undefined) yield { kind: 'word', text: written, line };
    else if (!/^[\s#]/.test(whole)) throw syntaxFailure(line, `\`${whole}\` has no end`);
    line += whole.split('\n').length - 1;
  }
}

/**
 * Parses a configuration of nginx into its directives, each with its line. Throws `invalid` with a
 * line if a quote, a block or a directive has no end.
 */
export function parseNginx(text: string): readonly Directive[] {
  const root: Directive[] = [];
  const open: { readonly block: Directive[]; readonly line: number }[] = [{ block: root, line: 1 }];
  let words: Word[] = [];
  let last = 1;
  for (const word of wordsOf(text)) {
    last = word.line;
    const inner = open.at(-1);
    if (word.kind === 'word') words.push(word);
    else if (word.kind === '}') {
      if (words.length > 0) throw syntaxFailure(word.line, '`}` before the `;` of a directive');
      if (open.length === 1) throw syntaxFailure(word.line, 'a `}` without its `{`');
      open.pop();
    } else {
      const [name] = words;
      if (name === undefined)
        throw syntaxFailure(word.line, `\`${word.kind}\` without a directive`);
      const block: Directive[] | undefined = word.kind === '{' ? [] : undefined;
      inner?.block.push(directiveOf(name, words.slice(1), block));
      if (block !== undefined) open.push({ block, line: word.line });
      if (open.length > blockDepthMax) throw syntaxFailure(word.line, 'the blocks nest too deep');
      words = [];
    }
  }
  const unclosed = open.at(-1);
  if (open.length > 1) throw syntaxFailure(unclosed?.line ?? last, 'this block has no `}`');
  if (words.length > 0) throw syntaxFailure(last, 'the last directive has no `;`');
  return root;
}

function directiveOf(
  name: Word,
  words: readonly Word[],
  block: Directive[] | undefined,
): Directive {
  const texts = words.map(({ text }) => text);
  return {
    ...{ name: name.text, words: texts, line: name.line, block },
    text: [name.text, ...texts].join(' '),
  };
}
