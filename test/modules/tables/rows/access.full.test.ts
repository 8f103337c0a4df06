import { testWay } from './access-rig.ts';

testWay('HTTP JSON');
testWay('HTTP form');
