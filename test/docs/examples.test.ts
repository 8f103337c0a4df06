import { suite } from 'node:test';
import { isFirst, testPages, testTexts } from './examples.ts';

suite('the examples of the documentation', { concurrency: 4 }, () => {
  testPages(isFirst);
  testTexts();
});
