// Uses the theme that a person has chosen before the browser paints anything. Another page of the
// origin can write the storage, so the text may be anything.
try {
  const theme = localStorage.getItem('waymark console theme');
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
} catch {
  // The browser has no storage: the theme is that of the system.
}
