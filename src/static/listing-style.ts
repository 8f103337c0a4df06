/** The style sheet of listings. */
export const listingStyle = `
:root {
  --paper: #fbfbf9; --sheet: #ffffff; --ink: #1d1f23; --soft: #5b6068; --line: #e4e4df;
  --link: #0a50a8; --hover: #f1f5fb; --folder: #b7791f; --focus: #0a50a8;
  color-scheme: light dark;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #131519; --sheet: #1b1e23; --ink: #e8e9ec; --soft: #a4a9b3; --line: #2d3138;
    --link: #8fbcff; --hover: #232932; --folder: #e0b25c; --focus: #8fbcff;
  }
}
* { box-sizing: border-box }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif;
}
main { max-width: 60rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem }
h1 { margin: 0; font-size: 1.6rem; line-height: 1.25; overflow-wrap: anywhere }
a { color: var(--link); text-decoration: none; border-radius: .2rem }
a:hover { text-decoration: underline }
a:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px }
nav { margin-bottom: .35rem; font-size: .95rem }
nav ol { display: flex; flex-wrap: wrap; margin: 0; padding: 0; list-style: none }
nav li { overflow-wrap: anywhere }
nav li + li::before { content: "/"; padding: 0 .45rem; color: var(--soft) }
.sum, .note { color: var(--soft); font-size: .95rem }
.sum { margin: .25rem 0 1.25rem }
.note { margin: 1.25rem 0 0 }
.sheet {
  overflow: hidden; background: var(--sheet);
  border: 1px solid var(--line); border-radius: .6rem;
}
table { width: 100%; border-collapse: collapse }
th, td { padding: .5rem 1rem; text-align: left; vertical-align: top; font-weight: 400 }
thead th { padding-block: .6rem; color: var(--soft); font-size: .85rem; font-weight: 600 }
tbody tr { border-top: 1px solid var(--line) }
tbody tr:hover { background: var(--hover) }
tbody th { width: 99% }
tbody a { display: flex; gap: .65rem; overflow-wrap: anywhere }
tbody bdi { min-width: 0; unicode-bidi: isolate }
svg {
  flex: none; width: 1.2rem; height: 1.5rem; fill: none; color: var(--soft);
  stroke: currentColor; stroke-width: 1.4; stroke-linejoin: round; stroke-linecap: round;
}
.folder svg { color: var(--folder); fill: currentColor }
.symbols { display: none }
td { color: var(--soft); white-space: nowrap; font-variant-numeric: tabular-nums }
.size { text-align: right }
.empty { margin: 0; padding: 2rem 1rem; text-align: center; color: var(--soft) }
@media (max-width: 34rem) {
  main { padding: 1.5rem .75rem 3rem }
  h1 { font-size: 1.35rem }
  th, td { padding-inline: .4rem }
  tr > :first-child { padding-left: .75rem }
  tr > :last-child { padding-right: .75rem }
  td { font-size: .85rem; line-height: 1.5rem }
  .clock { display: none }
}
@media (prefers-contrast: more) { :root { --soft: var(--ink); --line: var(--soft) } }
@media print { .sheet { border: 0 } svg { display: none } }
`;
