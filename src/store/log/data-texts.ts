import type { JsonObject } from '../../model/json.ts';
import { dataTextsCharactersMax } from '../limits.ts';

/** The JSON texts of data that two databases get, the log and the rows: each is made once. */
export class DataTexts {
  readonly #texts = new Map<JsonObject, string>();
  #characters = 0;

  /** The text of an object, which does not change meanwhile. */
  of(data: JsonObject): string {
    const known = this.#texts.get(data);
    if (known !== undefined) return known;
    const text = JSON.stringify(data);
    this.#characters += text.length;
    if (this.#characters <= dataTextsCharactersMax) this.#texts.set(data, text);
    return text;
  }

  /** The state of a record after its insert, as JSON: its fields are the data of the insert. */
  ofInserted(
    name: 'rule' | 'row',
    {
      id,
      data,
      state: { seq, insertedSeq },
    }: {
      readonly id: string;
      readonly data: JsonObject;
      readonly state: { readonly seq: number; readonly insertedSeq: number };
    },
  ): string {
    const fields = `"id":${JSON.stringify(id)},${this.of(data).slice(1)}`;
    return `{"${name}":{${fields},"seq":${seq},"insertedSeq":${insertedSeq}}`;
  }
}
