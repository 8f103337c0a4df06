/** A signed-in session; docs/design/console.md#sessions says why its token is kept in memory. */
export interface Session {
  readonly token: string;
  readonly name: string;
  readonly scopes: readonly string[];
  readonly expires: string;
  /** The origins and paths to which its key is bound. */
  readonly origins?: readonly string[];
  readonly paths?: readonly string[];
}

/** The draft that screens read and write. */
export interface ChosenDraft {
  readonly id: string;
  readonly name: string;
}

const reloadKey = 'waymark console reload';
const reloaded = takeAfterReload();
let current = reloaded?.session;
let draft = reloaded?.draft;

/** The session of this tab; undefined if nobody is signed in. */
export function currentSession(): Session | undefined {
  return current;
}

/** Keeps the session of this tab in memory, or forgets it; a draft ends with its session. */
export function keepSession(session: Session | undefined): void {
  current = session;
  draft = undefined;
}

/** The draft that this tab works in; undefined for the live site. */
export function currentDraft(): ChosenDraft | undefined {
  return draft;
}

/** Keeps the draft of this tab in memory, or forgets it. */
export function keepDraft(chosen: ChosenDraft | undefined): void {
  draft = chosen;
}

/**
 * The session that the document before a reload has left, which is removed from the storage. After
 * any other navigation, another page of the origin has left it, so it is not used.
 */
function takeAfterReload(): Kept | undefined {
  const text = sessionStorage.getItem(reloadKey);
  sessionStorage.removeItem(reloadKey);
  const [navigated] = performance.getEntriesByType('navigation');
  const isReload = (navigated as PerformanceNavigationTiming | undefined)?.type === 'reload';
  return text === null || !isReload ? undefined : parseKept(text);
}

/** What a reload hands on. */
interface Kept {
  readonly session: Session;
  readonly draft: ChosenDraft | undefined;
}

/** Another page of the origin can write the storage, so the text may be anything. */
function parseKept(text: string): Kept | undefined {
  try {
    const { session = {}, draft: chosen } = JSON.parse(text) as Partial<Kept>;
    const { token, name, scopes, expires, origins, paths } = session as Partial<Session>;
    const isSession = [token, name, expires].every((one) => typeof one === 'string');
    const isDraft = [chosen?.id, chosen?.name].every((one) => typeof one === 'string');
    if (!isSession || !isTexts(scopes) || (chosen !== undefined && !isDraft)) return undefined;
    const bounds = { ...(isTexts(origins) && { origins }), ...(isTexts(paths) && { paths }) };
    return { session: { token, name, scopes, expires, ...bounds } as Session, draft: chosen };
  } catch {
    return undefined;
  }
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((one) => typeof one === 'string');
}

interface NavigateEvent extends Event {
  readonly navigationType: string;
}

/** Only a reload hands the session on: a page that the tab opens instead finds nothing. */
function leaveForReload(event: Event): void {
  if ((event as NavigateEvent).navigationType !== 'reload' || current === undefined) return;
  sessionStorage.setItem(reloadKey, JSON.stringify({ session: current, draft }));
}

/**
 * Reloads by script: only such a reload has an event, not one by the browser's own button, after
 * which a person signs in again.
 */
function reloadByKey(event: KeyboardEvent): void {
  const { key, ctrlKey, metaKey, shiftKey } = event;
  const isReload = key === 'F5' || ((ctrlKey || metaKey) && key.toLowerCase() === 'r');
  if (!isReload || shiftKey || current === undefined || navigation === undefined) return;
  event.preventDefault();
  location.reload();
}

const { navigation } = globalThis as { navigation?: EventTarget };
navigation?.addEventListener('navigate', leaveForReload);
addEventListener('keydown', reloadByKey);
