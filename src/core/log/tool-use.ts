/** A text without control characters, marks of direction and line breaks. */
export function visibleText(text: string): string {
  return text.replaceAll(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '').trim();
}
