import { useMemo, useState } from 'preact/hooks';
import encodeQR from 'qr';
import { texts } from '../texts.ts';
import { Field } from '../components/ui.tsx';
import { linkOf, type BreadcrumbRule } from './breadcrumb-rule.ts';

const t = texts.breadcrumbs;

type Correction = keyof typeof t.corrections;
const corrections = Object.keys(t.corrections) as Correction[];

/** Light modules around the code, which readers need (ISO/IEC 18004). */
const border = 4;
/** The least width of a PNG, which is enough for print. */
const pngPixels = 1024;

/** The link of a breadcrumb, and its QR code. */
export function LinkAndCode({ rule }: { rule: BreadcrumbRule }) {
  const link = linkOf(rule);
  const [isCopied, setCopied] = useState(false);
  const [correction, setCorrection] = useState<Correction>('medium');
  const modules = useMemo(
    () => encodeQR(link, 'raw', { ecc: correction, border }),
    [link, correction],
  );
  const name = rule.path.replace(/[^\w-]+/g, '-').replace(/^-|-$/g, '') || 'breadcrumb';
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(link);
    setCopied(true);
  };
  return (
    <section class="code-part">
      <div>
        <h2>{t.link}</h2>
        <p class="link-text">
          <a href={link} target="_blank" rel="noopener noreferrer">
            {link}
          </a>
        </p>
        {rule.origin === '*' ? <p class="note">{t.linkOrigin}</p> : null}
        <div class="actions">
          <button type="button" onClick={() => void copy()}>
            <span aria-live="polite">{isCopied ? t.copied : t.copyLink}</span>
          </button>
        </div>
        <Field label={t.correction}>
          <select
            value={correction}
            onChange={({ currentTarget }) => {
              setCorrection(currentTarget.value as Correction);
            }}
          >
            {corrections.map((one) => (
              <option key={one} value={one}>
                {t.corrections[one]}
              </option>
            ))}
          </select>
        </Field>
        <div class="actions">
          <button
            type="button"
            onClick={() => {
              download(new Blob([svgText(modules)], { type: 'image/svg+xml' }), `${name}.svg`);
            }}
          >
            {t.svg}
          </button>
          <button type="button" onClick={() => void downloadPng(modules, `${name}.png`)}>
            {t.png}
          </button>
        </div>
        <p class="note">{t.codeHint}</p>
      </div>
      <svg
        class="qr"
        role="img"
        aria-label={t.code}
        viewBox={`0 0 ${modules.length} ${modules.length}`}
        shape-rendering="crispEdges"
      >
        <rect width={modules.length} height={modules.length} fill="#fff" />
        <path d={pathOf(modules)} fill="#000" />
      </svg>
    </section>
  );
}

type Modules = readonly (readonly boolean[])[];

/** The dark modules as a path: a rectangle for each run in a row. */
function pathOf(modules: Modules): string {
  const runs: string[] = [];
  modules.forEach((row, y) => {
    for (let x = 0; x < row.length; x += 1) {
      if (row[x] !== true) continue;
      const start = x;
      while (row[x + 1] === true) x += 1;
      const width = x + 1 - start;
      runs.push(`M${start} ${y}h${width}v1h-${width}z`);
    }
  });
  return runs.join('');
}

function svgText(modules: Modules): string {
  const size = modules.length;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" ` +
    `shape-rendering="crispEdges"><rect width="${size}" height="${size}" fill="#fff"/>` +
    `<path d="${pathOf(modules)}"/></svg>\n`
  );
}

async function downloadPng(modules: Modules, name: string): Promise<void> {
  const scale = Math.ceil(pngPixels / modules.length);
  const canvas = document.createElement('canvas');
  canvas.width = modules.length * scale;
  canvas.height = canvas.width;
  const context = canvas.getContext('2d');
  if (context === null) return;
  context.fillStyle = '#fff';
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.fillStyle = '#000';
  modules.forEach((row, y) => {
    row.forEach((isDark, x) => {
      if (isDark) context.fillRect(x * scale, y * scale, scale, scale);
    });
  });
  const blob = await new Promise<Blob | null>((resolve) => {
    canvas.toBlob(resolve, 'image/png');
  });
  if (blob !== null) download(blob, name);
}

function download(blob: Blob, name: string): void {
  const href = URL.createObjectURL(blob);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  setTimeout(() => {
    URL.revokeObjectURL(href);
  }, 10_000);
}
