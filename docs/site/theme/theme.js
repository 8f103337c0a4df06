// Runs before the page is shown, so that it never appears in the other theme first.
{
  const stored = localStorage.getItem('waymark-docs-theme');
  const dark = stored ? stored === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
}
