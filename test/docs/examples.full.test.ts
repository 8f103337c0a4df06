import { suite } from 'node:test';
import { isFirst, testPages } from './examples.ts';

suite('the examples of all other pages', { concurrency: 4 }, () => {
  testPages((address) => !isFirst(address));
});
