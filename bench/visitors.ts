import visitors from './visitors.json' with { type: 'json' };

/** A first number for visitors, so that runs have different ones. */
export function firstVisitor(): number {
  return Date.now() * 1_000;
}

/** The header fields of a visitor; each number has other ones. */
export function visitorFields(visitor: number): Readonly<Record<string, string>> {
  const { agents, accepts, languages } = visitors;
  return {
    'User-Agent': agents[visitor % agents.length] ?? '',
    Accept: accepts[visitor % accepts.length] ?? '',
    'Accept-Language': languages[visitor % languages.length] ?? '',
    Referer: `https://www.example.com/${visitor}`,
    Cookie: `visitor=${visitor}; theme=dark`,
  };
}

/** The arguments of wrk.lua, which makes the same visitors. */
export function visitorArguments(): readonly string[] {
  const { agents, accepts, languages } = visitors;
  const lists = [agents, languages, accepts].flatMap((list) => [String(list.length), ...list]);
  return [String(firstVisitor()), ...lists];
}
