import type { Command, Option } from 'commander';
import type { DefineCommand } from './command.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
type Shell = (typeof shells)[number];

/** `waymark completion bash | zsh | fish`: prints a script that completes commands and options. */
export const defineCompletion: DefineCommand = (command, terminal) => {
  command.description(
    'Print a script that completes commands, options and their values in a shell.',
  );
  const usage: Readonly<Record<Shell, string>> = {
    bash: 'source <(waymark completion bash)      in ~/.bashrc',
    zsh: 'source <(waymark completion zsh)       in ~/.zshrc, after compinit',
    fish: 'waymark completion fish | source       in ~/.config/fish/config.fish',
  };
  for (const shell of shells) {
    command
      .command(shell)
      .description(`Print the script for ${shell}.`)
      .addHelpText('after', `\nTo use it:\n  ${usage[shell]}`)
      .action(() => {
        terminal.out.write(scripts[shell](wordsOf(command.parent ?? command)));
      });
  }
};

/** The words that may follow one command. */
interface Completion {
  /** The words of the command, without `waymark`; empty for the program itself. */
  readonly words: readonly string[];
  readonly candidates: readonly Candidate[];
  /** The options with a list of values. */
  readonly values: readonly { readonly option: string; readonly values: readonly string[] }[];
}

interface Candidate {
  readonly word: string;
  readonly description: string;
}

function wordsOf(command: Command, words: readonly string[] = []): readonly Completion[] {
  const { options, commands } = command;
  const help = { word: '--help', description: 'show the help' };
  const own: Completion = {
    words,
    candidates: [
      ...commands.map((one) => ({
        word: one.name(),
        description: one.summary() === '' ? one.description() : one.summary(),
      })),
      ...options.flatMap(({ long, description }) => (long ? [{ word: long, description }] : [])),
      help,
    ],
    values: options.flatMap(valuesOf),
  };
  return [own, ...commands.flatMap((one) => wordsOf(one, [...words, one.name()]))];
}

function valuesOf({ long, argChoices }: Option): Completion['values'] {
  return long && argChoices ? [{ option: long, values: argChoices }] : [];
}

const scripts: Readonly<Record<Shell, (completions: readonly Completion[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Words that are neither options nor values select the command; otherwise, files are completed. */
function bashScript(completions: readonly Completion[]): string {
  return `# Completion of waymark for bash.
_waymark() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" words="" word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$words $word" in
${completions
  .filter(({ words }) => words.length > 0)
  .map(({ words }) => `      ' ${words.join(' ')}') words="$words $word" ;;\n`)
  .join('')}    esac
  done
  local candidates=""
  case "$words $previous" in
${completions.flatMap(bashValues).join('')}    *)
      case "$words" in
${completions.map(bashWords).join('')}      esac ;;
  esac
  COMPREPLY=($(compgen -W "$candidates" -- "$current"))
}
complete -o default -F _waymark waymark
`;
}

function bashValues({ words, values }: Completion): readonly string[] {
  return values.map(({ option, values: all }) => {
    const pattern = [...words.map((word) => ` ${word}`), ` ${option}`].join('');
    return `    '${pattern}') candidates='${all.join(' ')}' ;;\n`;
  });
}

function bashWords({ words, candidates }: Completion): string {
  const pattern = words.map((word) => ` ${word}`).join('');
  return `        '${pattern}') candidates='${candidates.map(({ word }) => word).join(' ')}' ;;\n`;
}

function zshScript(completions: readonly Completion[]): string {
  return `#compdef waymark
# Completion of waymark for zsh.
_waymark() {
  local line="" word
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$line $word" in
${completions
  .filter(({ words }) => words.length > 0)
  .map(({ words }) => `      ' ${words.join(' ')}') line="$line $word" ;;\n`)
  .join('')}    esac
  done
  local -a candidates
  case "$line \${words[CURRENT-1]}" in
${completions.flatMap(zshValues).join('')}    *)
      case "$line" in
${completions.map(zshWords).join('')}      esac ;;
  esac
  _describe waymark candidates || _files
}
compdef _waymark waymark
`;
}

function zshValues({ words, values }: Completion): readonly string[] {
  return values.map(({ option, values: all }) => {
    const pattern = [...words.map((word) => ` ${word}`), ` ${option}`].join('');
    return `    '${pattern}') candidates=(${all.join(' ')}) ;;\n`;
  });
}

function zshWords({ words, candidates }: Completion): string {
  const pattern = words.map((word) => ` ${word}`).join('');
  const described = candidates.map(({ word, description }) =>
    quoted(`${word}:${description.replaceAll(':', '\\:')}`),
  );
  return `        '${pattern}') candidates=(${described.join(' ')}) ;;\n`;
}

function fishScript(completions: readonly Completion[]): string {
  const lines = completions.flatMap(({ words, candidates, values }) => {
    const isHere = `__waymark_at ${words.join(' ')}`.trim();
    return [
      ...candidates.map(({ word, description }) => {
        const flags = word.startsWith('--') ? `-l ${word.slice(2)}` : `-f -a ${word}`;
        const known = values.find(({ option }) => option === word)?.values;
        const taken = known === undefined ? '' : ` -x -a '${known.join(' ')}'`;
        return `complete -c waymark -n '${isHere}' ${flags}${taken} -d ${quoted(description)}`;
      }),
    ];
  });
  const paths = completions.map(({ words }) => `'${words.join(' ')}'`).join(' ');
  return `# Completion of waymark for fish.
function __waymark_at
    set -l found
    for word in (commandline -opc)[2..-1]
        set -l longer (string join -- ' ' $found $word)
        contains -- $longer ${paths}; and set found $found $word
    end
    test "$found" = "$argv"
end
${lines.join('\n')}
`;
}

/** Quotes a text as one word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
