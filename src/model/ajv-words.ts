/** A message of ajv without the capitals with which it stresses NOT. */
export function wordsOfAjv(message: string | undefined): string | undefined {
  return message?.replace('must NOT', 'must not');
}
