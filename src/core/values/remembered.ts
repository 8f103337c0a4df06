/**
 * A function that remembers its results, of up to `max` texts of up to `charactersMax`: for texts
 * that most requests bring along again.
 */
export function remembered(
  read: (text: string) => string,
  { max, charactersMax }: { readonly max: number; readonly charactersMax: number },
): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let value = known.get(text);
    if (value === undefined) {
      value = read(text);
      if (text.length > charactersMax) return value;
      // Cheaper for each request than an order of use, and the usual texts are soon back.
      if (known.size >= max) known.clear();
      known.set(flat(text), value);
    }
    return value;
  };
}

/** A copy of a text: V8 keeps the whole head of a request for the sake of a part of it. */
export function flat(text: string): string {
  return Buffer.from(text, 'latin1').toString('latin1');
}
