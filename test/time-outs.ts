/**
 * Does something with a short time-out that is not to matter for its outcome, and with longer ones,
 * one after the other, where it fails: a machine that stands still for a moment looks like another
 * side that says nothing. Fails as it does with the last one.
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
