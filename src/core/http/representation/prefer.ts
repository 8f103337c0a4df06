/** Whether Prefer fields contain `handling=strict` (RFC 7240 §4.4). */
export function isStrictPreferred(...prefer: readonly (string | undefined)[]): boolean {
  const wanted = prefer.flatMap((field) => field?.split(/[,;]/) ?? []);
  return wanted.some((one) => one.replaceAll(/[ \t"]/g, '').toLowerCase() === 'handling=strict');
}
