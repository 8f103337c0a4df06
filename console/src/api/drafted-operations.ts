/**
 * The operations of screens that read or change a draft instead of the live site. Webhooks are not
 * among them: their screens show deliveries, which only live ones have.
 */
export const draftedOperations: readonly string[] = [
  ...[
    'read',
    'list',
    'insert',
    'edit',
    'invalidate',
    'import',
    'tree',
    'explain',
    'times',
    'replace',
  ].map((verb) => `userinterface.${verb}`),
  ...['get_render', 'get_content'].map((verb) => `userinterface.${verb}`),
  ...['read', 'list', 'insert', 'edit', 'invalidate', 'check', 'schema'].map(
    (verb) => `record.${verb}`,
  ),
  ...['list', 'insert', 'edit', 'invalidate', 'counts'].map((verb) => `table.${verb}`),
  ...['list', 'read', 'invalidate'].map((verb) => `asset.${verb}`),
];
