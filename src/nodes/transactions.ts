/** A row of the log as text, with the members that show where its transaction begins. */
interface CopiedRow {
  readonly text: string;
  readonly txn: string;
}

const txnMember = /"txn":"([^"\\]*)"/;

/**
 * Collects the rows of a log and gives them back as whole transactions: a reader of a copy must see
 * a transaction as a whole or not at all.
 */
export class Transactions {
  #rows: CopiedRow[] = [];
  /** The number of rows that are parts of complete transactions. */
  #complete = 0;
  #characters = 0;

  /** The rows that it has, and their characters. */
  get size(): { readonly rows: number; readonly characters: number } {
    return { rows: this.#rows.length, characters: this.#characters };
  }

  /**
   * Adds rows that follow the earlier ones. `areLast` says that the last of them ended the log when
   * it was read, so that its transaction is complete.
   */
  add(texts: readonly string[], areLast: boolean): void {
    for (const text of texts) {
      const [, txn = ''] = txnMember.exec(text) ?? [];
      if (txn !== this.#rows.at(-1)?.txn) this.#complete = this.#rows.length;
      this.#rows.push({ text, txn });
      this.#characters += text.length;
    }
    if (areLast) this.#complete = this.#rows.length;
  }

  /** Whether complete transactions have enough rows or characters to write them. */
  exceeds({ rows, characters }: { readonly rows: number; readonly characters: number }): boolean {
    return this.#complete > rows || (this.#complete > 0 && this.#characters > characters);
  }

  /** Removes the complete transactions and returns their rows. */
  take(): readonly string[] {
    const taken = this.#rows.splice(0, this.#complete);
    this.#complete = 0;
    const texts = taken.map(({ text }) => text);
    this.#characters -= texts.reduce((sum, { length }) => sum + length, 0);
    return texts;
  }
}
