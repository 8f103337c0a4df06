import packaged, { inflate } from '@sparticuz/chromium';

/**
 * Unpacks the packaged Chromium, and the archive named as argument. The package knows one place to
 * unpack to, the temporary folder of its process: so this one has a process of its own.
 */
const [, , archive = ''] = process.argv;
await packaged.executablePath();
await inflate(archive);
