/**
 * The draft of a form whose version has been saved as `stored`. Members that are as they were sent
 * take what the server has made of them; what a person has written since then stays, and a member that
 * they have removed is undefined.
 */
export function afterSave<D extends object>(now: D, sent: D, stored: D): D {
  const names = Object.keys({ ...sent, ...now }) as (keyof D)[];
  const kept = names.filter((name) => now[name] !== sent[name]);
  return { ...stored, ...Object.fromEntries(kept.map((name) => [name, now[name]])) };
}
