/**
 * The engines that Waymark brings along (docs/design/page-rules.md#fields); `[engine.*]` of the ini
 * file adds to them.
 */
export const builtInEngines = ['html', 'template', 'form'] as const;
