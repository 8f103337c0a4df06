/** The user, with a password, of each URL in a text (RFC 3986 §3.2.1). */
const userOfUrl = /(?<=:\/\/)[^/?#\s@"'<>][^/?#\s"'<>]*(?=@)/g;

/** The users, with passwords, of the URLs in a text: `ann:secret` of `https://ann:secret@a`. */
export function usersIn(text: string): readonly string[] {
  return text.match(userOfUrl) ?? [];
}

/** A text with other users in its URLs; the same text if it has none. */
export function mapUsersIn(text: string, map: (user: string) => string): string {
  return text.includes('://') ? text.replace(userOfUrl, map) : text;
}

/** A text whose URLs do not show who has access by them. */
export function withoutUsers(text: string): string {
  return mapUsersIn(text, () => '…');
}
