// Builds the documentation after `npm ci` in a clone, so that a server there has it. In an installation
// without development packages it does nothing.
import { fileURLToPath } from 'node:url';

function hasPackages() {
  try {
    import.meta.resolve('markdown-it');
    return true;
  } catch {
    return false;
  }
}

if (hasPackages()) {
  try {
    const { buildDocs } = await import('./build.ts');
    await buildDocs(fileURLToPath(new URL('../../public/docs', import.meta.url)));
  } catch (error) {
    // A clone without its documentation still works; `npm run docs` shows the whole error.
    process.stderr.write(`The documentation is not built: ${error.message}\n`);
  }
}
