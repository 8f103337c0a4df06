// The tests of a log of one machine, with stores that write to a shared log.
process.env.TEST_LOG = 'shared';

await import('../write/commit.test.ts');
await import('../write/feed.test.ts');
await import('../write/invalidate.test.ts');
await import('../write/table-events.test.ts');
await import('../reads.test.ts');
await import('../../../modules/tables/log/rows-model.full.test.ts');
await import('../../../modules/tables/log/rows.test.ts');
await import('../../../modules/webhooks/log/dispatch.test.ts');
await import('../../../modules/upkeep/verify/verify-rows.full.test.ts');
