/**
 * Removes the service workers of this origin that control the console, or could. A page of the site
 * may have registered one before the server refused it; what is typed here would pass through it.
 * Returns the paths of their scripts; a worker that controls this document does so until the next
 * one is loaded.
 */
export async function removeWorkers(): Promise<readonly string[]> {
  // Without HTTPS there are none.
  if (!('serviceWorker' in navigator)) return [];
  const registrations = await navigator.serviceWorker.getRegistrations();
  const found = registrations.filter(({ scope }) => location.href.startsWith(scope));
  await Promise.all(found.map((registration) => registration.unregister()));
  return found.map(({ active, waiting, installing, scope }) => {
    const script = (active ?? waiting ?? installing)?.scriptURL ?? scope;
    return new URL(script).pathname;
  });
}
