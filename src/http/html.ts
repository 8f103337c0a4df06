const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text made safe inside HTML text and quoted attribute values. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}

/** A small page of its own with a title and one sentence, without scripts or anything to load. */
export function plainPage(title: string, sentence: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<style>
body { margin: 15vh auto 0; max-width: 34rem; padding: 0 1.5rem }
body { font: 1.05rem/1.6 system-ui, sans-serif }
h1 { font-size: 1.4rem; line-height: 1.3 }
</style>
<main>
<h1>${escapeHtml(title)}</h1>
<p>${sentence}</p>
</main>
</html>
`;
}
