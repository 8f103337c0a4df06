import packaged, { inflate } from '@sparticuz/chromium';

/**
 * Unpacks the packaged Chromium, and the archive in the first argument. The package unpacks into the
 * temporary folder of its process only, so this is a process with a temporary folder of its own.
 */
const [, , archive = ''] = process.argv;
await packaged.executablePath();
await inflate(archive);
