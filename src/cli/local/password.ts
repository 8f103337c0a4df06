import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { loginNameCharactersMax, passwordBytesMax } from '../../modules/access/limits.ts';
import { hashPassword } from '../../modules/access/password-hash.ts';
import { Failure } from '../../core/values/failure.ts';
import { UsageError, writeLine, type DefineCommand, type Terminal } from '../command.ts';

/**
 * `waymark password NAME`: prints a line for a password file on standard output. The password comes
 * from the terminal, without an echo, or from the first line of standard input.
 */
export const definePassword: DefineCommand = (command, terminal) => {
  command
    .description(
      'Print the line of a user for `password_file` of an [access.<name>] section. Asks for the ' +
        'password, or reads it from the first line of standard input.',
    )
    .argument('<name>', 'the name with which the user signs in')
    .action(async (name: string) => {
      requireName(name);
      const password = await readPassword(terminal);
      requirePassword(password);
      writeLine(terminal.out, `${name.normalize('NFC')}:${await hashPassword(password)}`);
    });
};

function requireName(name: string): void {
  const isValid = /^[^:#\p{Cc}][^:\p{Cc}]*$/u.test(name) && name.trim() === name;
  if (isValid && name.length <= loginNameCharactersMax) return;
  throw new UsageError('a name has no colon, no space around it, and does not begin with #.');
}

function requirePassword(password: string): void {
  if (password === '') throw new Failure('invalid', 'The password is empty.');
  if (/\p{Cc}/u.test(password) || Buffer.byteLength(password) > passwordBytesMax) {
    const bounds = `at most ${passwordBytesMax} bytes`;
    throw new Failure('invalid', `A password has ${bounds} and no control character.`);
  }
}

async function readPassword(terminal: Terminal): Promise<string> {
  const input = terminal.input();
  if (!isTerminal(input)) return firstLine(input);
  const first = await ask(input, terminal, 'Password: ');
  if (first !== (await ask(input, terminal, 'Again: '))) {
    throw new Failure('invalid', 'The two passwords are different.');
  }
  return first;
}

function isTerminal(input: object): input is NodeJS.ReadStream {
  return 'isTTY' in input && input.isTTY === true;
}

/** Asks for a line without showing what is typed. */
async function ask(input: NodeJS.ReadStream, { err }: Terminal, prompt: string): Promise<string> {
  const silent = new Writable({
    write: (_chunk, _encoding, done) => {
      done();
    },
  });
  const lines = createInterface({ input, output: silent, terminal: true });
  err.write(prompt);
  try {
    return await lines.question('');
  } finally {
    lines.close();
    writeLine(err, '');
  }
}

async function firstLine(input: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > 2 * passwordBytesMax || chunk.includes(0x0a)) break;
  }
  const [line = ''] = Buffer.concat(chunks).toString().split(/\r?\n/);
  return line;
}
