/**
 * The engines that Waymark brings along (contract §4.1); `[engine.*]` of the ini file adds to them.
 */
export const builtInEngines = ['html', 'template', 'form'] as const;
