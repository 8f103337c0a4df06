import { InvalidArgumentError } from 'commander';
import { createProtectedPaths } from '../../core/pipeline/protected-paths.ts';
import { signedQuery } from '../../modules/access/signed-links.ts';
import { parseUrl } from '../../core/operations/place.ts';
import type { AccessConfig, Config } from '../../core/config/config.ts';
import { readLinkKeys } from '../../core/config/secrets-keys.ts';
import { now } from '../../core/values/clock.ts';
import { Failure } from '../../core/values/failure.ts';
import { encodePath } from '../../core/values/path.ts';
import { durationMs } from '../../core/values/units.ts';
import { writeLine, type DefineCommand } from '../command.ts';
import { configOption, requireConfig } from '../options.ts';

/** `waymark link sign URL --for 24h`: prints a link to a protected page that ends. */
export const defineLink: DefineCommand = (command, terminal) => {
  command
    .description('Make links to protected pages.')
    .command('sign')
    .description(
      'Print a link that opens a page of an [access.<name>] section with `link_key_file` until ' +
        'its time has passed. Anyone who has the link may use it.',
    )
    .argument('<url>', 'the whole URL of the page')
    .requiredOption('--for <time>', 'how long it is valid, such as 30m, 24h or 7d', requireTime)
    .option(
      '--access <name>',
      'the section, if its paths do not have the URL: a page rule names it in its access',
    )
    .addOption(configOption())
    .action(async (url: string, options: LinkOptions) => {
      const config = await requireConfig(options.config, terminal);
      writeLine(terminal.out, await signLink(config, url, options));
    });
};

interface LinkOptions {
  /** Milliseconds. */
  readonly for: number;
  readonly access?: string;
  readonly config?: string;
}

const longestMs = 3_650 * 86_400_000;

function requireTime(text: string): number {
  const ms = durationMs(text);
  if (ms !== undefined && ms >= 1_000 && ms <= longestMs) return ms;
  throw new InvalidArgumentError('write a time from 1s to 3650d, such as `24h` or `7d`.');
}

async function signLink(
  config: Config,
  url: string,
  { for: validMs, access }: LinkOptions,
): Promise<string> {
  if (!/^https?:\/\//i.test(url)) {
    throw new Failure('invalid', 'Give a whole URL, such as https://example.com/report.pdf.');
  }
  const place = parseUrl(url, { origin: '', query: '' });
  const { linkKeyFile: file = '' } =
    access === undefined ? ruleOf(config, url, place) : sectionOf(config, access);
  const read = await readLinkKeys(file);
  if ('refused' in read) throw new Failure('invalid', `${file} ${read.refused}.`);
  const query = signedQuery(read.keys[0].bytes, place, Math.ceil((now() + validMs) / 1_000));
  return `${place.origin}${encodePath(place.path)}?${query}`;
}

/** The section of a name, which has keys. Throws `invalid`. */
function sectionOf({ access }: Config, name: string): AccessConfig {
  const section = access.find((one) => one.name === name);
  if (section?.linkKeyFile !== undefined) return section;
  const why = section === undefined ? 'The ini file does not have it.' : 'It has no link_key_file.';
  throw new Failure('invalid', `--access ${name}: [access.${name}] cannot sign. ${why}`);
}

/** The first rule with keys that protects a place. Throws `invalid`. */
function ruleOf(
  { access, disk }: Config,
  url: string,
  place: { readonly origin: string; readonly path: string },
): AccessConfig {
  const found = createProtectedPaths(access, disk)(place);
  const [rule] = found.filter(({ linkKeyFile }) => linkKeyFile !== undefined);
  if (rule !== undefined) return rule;
  const names = found.map(({ name }) => `[access.${name}]`).join(' and ');
  throw new Failure(
    'invalid',
    found.length === 0
      ? `No [access.<name>] protects ${url}. If its page rule names one, add --access NAME.`
      : `${names} has no \`link_key_file\`: add one, with \`satisfy = any\` if there are others.`,
  );
}
