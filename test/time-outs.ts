/**
 * Runs something with a short time-out, and again with longer ones if it fails: a machine that is
 * busy for a moment looks like a peer that does not answer. Fails as the last attempt does.
 */
export async function withTimeOut(
  [timeoutMs = 0, ...longer]: readonly number[],
  act: (timeoutMs: number) => Promise<void>,
): Promise<void> {
  try {
    await act(timeoutMs);
  } catch (error) {
    if (longer.length === 0) throw error;
    await withTimeOut(longer, act);
  }
}
