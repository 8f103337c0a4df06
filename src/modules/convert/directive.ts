import { Failure } from '../../core/values/failure.ts';

/** A directive of a configuration of nginx, Caddy or Apache, with its block. */
export interface Directive {
  readonly name: string;
  /** Its arguments, without quotes. */
  readonly words: readonly string[];
  /** The line on which it begins, from 1. */
  readonly line: number;
  /** The included file that has it; undefined for the file that is converted. */
  readonly file?: string | undefined;
  /** Name and arguments as they are written. */
  readonly text: string;
  /** Undefined without a block. */
  readonly block: readonly Directive[] | undefined;
}

/** All directives of a block with a name. */
export function allOf(block: readonly Directive[], name: string): readonly Directive[] {
  return block.filter((one) => one.name === name);
}

/** The last directive of a block with a name, which is the one that counts. */
export function lastOf(block: readonly Directive[], name: string): Directive | undefined {
  return block.findLast((one) => one.name === name);
}

/** The failure of a file that is no configuration: `invalid`, with the line. */
export function syntaxFailure(line: number, message: string): Failure {
  return new Failure('invalid', `line ${line}: ${message}`);
}
