/** A wording that the project does not use, and what to write instead. */
export interface Term {
  readonly pattern: RegExp;
  readonly instead: string;
}

/** One word for one thing (docs/glossary.md), and plain sentences. */
export const terms: readonly Term[] = [
  // One word for one thing.
  { pattern: /\bconfig(?:uration)? files?\b/i, instead: 'ini file' },
  { pattern: /\bidempotency token\b/i, instead: 'idempotency key, or vk' },
  { pattern: /\bAPI tokens?\b/i, instead: 'API key' },
  { pattern: /\b(?:web sockets?|web-sockets?)\b/i, instead: 'websocket' },
  { pattern: /\bfilenames?\b/, instead: 'file name' },
  { pattern: /\bhost names?\b/, instead: 'hostname' },
  { pattern: /\btime-outs?\b/, instead: 'timeout' },
  { pattern: /\blowercase\b/, instead: 'lower case' },
  { pattern: /\bback-?ends?\b/i, instead: 'source, or application' },
  { pattern: /\b(?:master|slave)s?\b/i, instead: 'centre, replica, leader or worker' },
  { pattern: /\b(?:whitelist|blacklist)/i, instead: 'the list of what is allowed or refused' },
  { pattern: /\bweb ?hook endpoints?\b/i, instead: 'receiver' },
  // Plain sentences.
  { pattern: /\blets? go of\b/i, instead: 'releases, closes or purges' },
  { pattern: /\bwho(?:ever)? asks?\b/i, instead: 'the client, or the caller' },
  { pattern: /\bwhoever\b/i, instead: 'the user, caller or client that …' },
  { pattern: /\b(?:is|are|was|were) asked\b/i, instead: 'gets a request' },
  { pattern: /\bunheard\b/i, instead: 'without a handler' },
  { pattern: /\band also\b/i, instead: 'and' },
  { pattern: /\b(?:simply|obviously|easily|of course)\b/i, instead: 'nothing: leave it out' },
  { pattern: /\b(?:utili[sz]e|leverage)[sd]?\b/i, instead: 'use' },
  { pattern: /\bin order to\b/i, instead: 'to' },
  { pattern: /\b(?:e\.g\.|i\.e\.|etc\.)/i, instead: 'for example, that is, and so on' },
  { pattern: /\b(?:thereof|thereby|heretofore|hence)\b/i, instead: 'a plain sentence' },
  // Mistakes.
  { pattern: /\b([a-z]+) \1\b/, instead: 'the word once' },
  { pattern: /\ba (?:[aei]|o(?!ne))[a-z]+\b/, instead: 'an' },
  {
    pattern: /\ban (?!h(?:our|onest|ttp)|npm|[xmfnrslh]\b)[bcdfghjklmnpqrstvwxyz][a-z]+\b/,
    instead: 'a',
  },
];
