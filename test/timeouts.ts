/**
 * Runs something with a short timeout, and again with longer ones if it fails: a machine that is
 * busy for a moment looks like a peer that does not answer. Fails as the last attempt does.
 */
export async function withTimeout(
  [timeoutMs = 0, ...longer]: readonly number[],
  act: (timeoutMs: number) => Promise<void>,
): Promise<void> {
  try {
    await act(timeoutMs);
  } catch (error) {
    if (longer.length === 0) throw error;
    await withTimeout(longer, act);
  }
}
