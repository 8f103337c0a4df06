import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';

/** One tree of LMDB: struct MDB_db of liblmdb's mdb.c, the fields that the check uses. */
interface Tree {
  readonly name: string;
  readonly depth: number;
  readonly root: number;
}

/** A meta page, which holds the roots of the trees of one transaction. */
interface Meta {
  readonly pageBytes: number;
  readonly free: Tree;
  readonly main: Tree;
  readonly lastPage: number;
  readonly txnId: bigint;
}

/** The result of a check of the pages of a data file. */
export interface PageCheck {
  /** A description of the damage; undefined if none was found. */
  readonly damage: string | undefined;
  /** Whether the check covered every page that holds an entry. */
  readonly isComplete: boolean;
}

/** Of liblmdb's mdb.c, as a 64-bit machine writes it: flags of pages and of nodes. */
const pageFlags = { branch: 0x01, leaf: 0x02, overflow: 0x04, meta: 0x08, leaf2: 0x20, sub: 0x40 };
const kindMask = Object.values(pageFlags).reduce((all, flag) => all | flag);
const nodeFlags = { overflow: 0x01, tree: 0x02, duplicates: 0x04 };
const magic = 0xbeefc0de;
const dataVersion = 2;
const metaPages = 2;
const metaBytes = 160;
const headerBytes = 24;
const nodeHeaderBytes = 8;
const treeBytes = 48;
const overflowBytes = 24;
const noPage = 0xffff_ffff_ffff_ffffn;
const depthMax = 32;

/** A page that LMDB cannot have written. */
class DamagedPage extends Error {}

/**
 * Checks the pages of an LMDB data file without LMDB, which ends the process (SIGBUS, SIGSEGV or
 * SIGABRT) at some damage. It checks that the trees of the newest transaction are complete, and
 * that each of their pages lies within the file and could have been written by LMDB. It does not
 * check values. If other processes write, the caller holds a reader of that transaction or an older
 * one, so that LMDB does not reuse its pages (docs/design/history.md#damaged-data).
 */
export function checkPages(fd: number, { pagesMax = Infinity }: Bounds = {}): PageCheck {
  const walk = new PageWalk(fd, pagesMax);
  try {
    walk.run();
    return { damage: undefined, isComplete: walk.isComplete };
  } catch (error) {
    if (error instanceof DamagedPage) return { damage: error.message, isComplete: false };
    throw error;
  }
}

interface Bounds {
  /** The most pages to check; a truncated file is checked in full. */
  readonly pagesMax?: number;
}

/** Id of the newest transaction in a data file; undefined if its meta pages are damaged. */
export function newestTransaction(fd: number): bigint | undefined {
  return newestMeta(fd)?.txnId;
}

/** A page to check. */
interface Place {
  readonly tree: string;
  readonly page: number;
  /** Levels from here to the leaves: 1 for a leaf. */
  readonly levels: number;
}

class PageWalk {
  readonly #fd: number;
  #pagesMax: number;
  /** The pages to check: the upper levels of all trees come before the leaves. */
  readonly #inner: Place[] = [];
  readonly #leaves: Place[] = [];
  #seen = new Uint8Array(0);
  #meta!: Meta;
  #filePages = 0;
  #page = Buffer.alloc(0);
  #pages = 0;
  isComplete = false;

  constructor(fd: number, pagesMax: number) {
    this.#fd = fd;
    this.#pagesMax = pagesMax;
  }

  run(): void {
    const meta = newestMeta(this.#fd);
    if (meta === undefined) throw new DamagedPage('its first pages are not meta pages of LMDB');
    this.#meta = meta;
    this.#page = Buffer.allocUnsafe(meta.pageBytes);
    // Read after the meta page, because a writer extends the file first.
    this.#filePages = Math.floor(fstatSync(this.#fd).size / meta.pageBytes);
    // LMDB omits free pages at the end: only a complete walk distinguishes that from a truncated
    // file.
    if (this.#filePages <= meta.lastPage) this.#pagesMax = Infinity;
    this.#seen = new Uint8Array(Math.ceil(this.#filePages / 8));
    this.#addTree(meta.main);
    this.#addTree(meta.free);
    for (;;) {
      const place = this.#inner.pop() ?? this.#leaves.pop();
      if (place === undefined) break;
      if (this.#pages >= this.#pagesMax) return;
      this.#visit(place);
    }
    this.isComplete = true;
  }

  #addTree({ name, depth, root }: Tree): void {
    if (root < 0) return;
    if (depth < 1 || depth > depthMax)
      throw new DamagedPage(`the tree of ${name} has an invalid depth`);
    this.#add({ tree: name, page: root, levels: depth });
  }

  #add(place: Place): void {
    this.#claim(place, 1);
    // The entries of LMDB's own tree are the other trees. A complete walk goes depth first, so that
    // few pages wait.
    const isFirst = place.levels > 1 || place.tree === mainTree || this.#pagesMax === Infinity;
    (isFirst ? this.#inner : this.#leaves).push(place);
  }

  /** Marks pages as used: each must lie within the file and be used only once. */
  #claim({ tree, page }: Pick<Place, 'tree' | 'page'>, count: number): void {
    const { lastPage } = this.#meta;
    if (page < metaPages || page + count - 1 > lastPage) {
      throw new DamagedPage(`${tree} refers to page ${page}, which does not exist`);
    }
    if (page + count > this.#filePages) {
      throw new DamagedPage(`the file ends before page ${page} of ${tree}: it was cut off`);
    }
    this.#mark(tree, page, count);
  }

  #mark(tree: string, page: number, count: number): void {
    for (let at = page; at < Math.min(page + count, this.#filePages); at += 1) {
      const bit = 1 << (at & 7);
      const byte = this.#seen[at >> 3] ?? 0;
      if ((byte & bit) !== 0) throw new DamagedPage(`page ${at} of ${tree} is used twice`);
      this.#seen[at >> 3] = byte | bit;
    }
  }

  #visit({ tree, page, levels }: Place): void {
    const bytes = this.#page;
    const { pageBytes } = this.#meta;
    readFully(this.#fd, bytes, page * pageBytes);
    this.#pages += 1;
    const bad = (what: string): DamagedPage => new DamagedPage(`page ${page} of ${tree} ${what}`);
    this.#checkHeader(page, bad);
    const kind = bytes.readUInt16LE(18) & kindMask;
    if (kind !== (levels > 1 ? pageFlags.branch : pageFlags.leaf)) {
      throw bad(levels > 1 ? 'is not a branch page' : 'is not a leaf page');
    }
    const isBranch = levels > 1;
    for (const node of nodesOf(bytes, 0, pageBytes, bad)) {
      if (isBranch) this.#add({ tree, page: childOf(bytes, node), levels: levels - 1 });
      else this.#checkLeafNode(tree, node, bad);
    }
  }

  #checkHeader(page: number, bad: (what: string) => DamagedPage): void {
    if (this.#page.readBigUInt64LE(0) !== BigInt(page))
      throw bad('has another page number in its header');
    if (this.#page.readBigUInt64LE(8) > this.#meta.txnId)
      throw bad('is newer than the newest transaction');
  }

  #checkLeafNode(tree: string, node: number, bad: (what: string) => DamagedPage): void {
    const bytes = this.#page;
    const size = bytes.readUInt32LE(node);
    const flags = bytes.readUInt16LE(node + 4);
    const data = node + nodeHeaderBytes + bytes.readUInt16LE(node + 6);
    const has = (length: number): boolean => data + length <= bytes.length;
    if ((flags & nodeFlags.overflow) !== 0) {
      if (!has(overflowBytes)) throw bad('has an entry beyond its end');
      this.#checkOverflow(tree, bytes.subarray(data, data + overflowBytes), size);
    } else if (!has(size)) {
      throw bad('has an entry beyond its end');
    } else if (tree === freeTree) {
      this.#checkFreePages(bytes.subarray(data, data + size), bad);
    } else if ((flags & nodeFlags.tree) !== 0) {
      if (size !== treeBytes) throw bad('has an entry that should be a tree but is not');
      const isNamed = tree === mainTree;
      const key = bytes.toString('latin1', node + nodeHeaderBytes, data);
      this.#addTree(treeAt(bytes, data, isNamed ? key.replaceAll('\0', '') : tree));
    } else if ((flags & nodeFlags.duplicates) !== 0) {
      checkSubPage(bytes.subarray(data, data + size), bad);
    }
  }

  /** A value on overflow pages, of which only the first has a header. */
  #checkOverflow(tree: string, where: Buffer, size: number): void {
    const page = pageNumber(where.readBigUInt64LE(0));
    const count = pageNumber(where.readBigUInt64LE(16));
    const bad = (what: string): DamagedPage => new DamagedPage(`page ${page} of ${tree} ${what}`);
    const { pageBytes } = this.#meta;
    if (count < 1 || headerBytes + size > count * pageBytes)
      throw bad('is too small for its value');
    this.#claim({ tree, page }, count);
    const header = Buffer.alloc(headerBytes);
    readFully(this.#fd, header, page * pageBytes);
    this.#pages += 1;
    if (header.readBigUInt64LE(0) !== BigInt(page))
      throw bad('has another page number in its header');
    if ((header.readUInt16LE(18) & kindMask) !== pageFlags.overflow)
      throw bad('is not an overflow page');
    if (header.readUInt32LE(20) !== count) throw bad('has another length than its entry');
    if (tree !== freeTree) return;
    const value = Buffer.allocUnsafe(size);
    readFully(this.#fd, value, page * pageBytes + headerBytes);
    this.#checkFreePages(value, bad);
  }

  /**
   * Free pages must not be in a tree, or LMDB would overwrite them. A value of the free list is a
   * count and page numbers; a negative number is the length of a run that starts at the next
   * number. Free pages may lie after the end of the file.
   */
  #checkFreePages(value: Buffer, bad: (what: string) => DamagedPage): void {
    const count = value.length < numberBytes ? -1 : numberAt(value, 0);
    if (count < 0 || (count + 1) * numberBytes > value.length) throw bad('has an invalid entry');
    let length = 1;
    for (let at = 1; at <= count; at += 1) {
      const entry = numberAt(value, at * numberBytes);
      if (entry > 0) {
        const isThere = entry >= metaPages && entry + length - 1 <= this.#meta.lastPage;
        if (!isThere) throw bad('has an invalid entry');
        this.#mark(freeTree, entry, length);
      }
      length = entry < 0 ? -entry : 1;
    }
  }
}

/** The tree whose entries are the other trees, by their names. */
const mainTree = 'the list of databases';
/** The tree whose entries are free pages. */
const freeTree = 'the list of free pages';
const numberBytes = 8;

/** The size of a signed 64-bit number. */
function numberAt(bytes: Buffer, at: number): number {
  return bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at);
}

/** The offsets of the nodes of a page, checked to lie within it. */
function* nodesOf(
  bytes: Buffer,
  start: number,
  end: number,
  bad: (what: string) => DamagedPage,
): Iterable<number> {
  const base = start + headerBytes;
  const lower = bytes.readUInt16LE(start + 20);
  const upper = bytes.readUInt16LE(start + 22);
  if (lower % 2 !== 0 || lower > upper || base + upper > end) throw bad('has an invalid header');
  if (lower === 0) throw bad('is empty');
  for (let at = base; at < base + lower; at += 2) {
    const offset = bytes.readUInt16LE(at);
    const node = base + offset;
    if (offset < upper || node + nodeHeaderBytes > end) throw bad('has an entry beyond its end');
    const keyEnd = node + nodeHeaderBytes + bytes.readUInt16LE(node + 6);
    if (keyEnd > end) throw bad('has a key beyond its end');
    yield node;
  }
}

/** LMDB stores few values under one key in a page within the page. */
function checkSubPage(bytes: Buffer, bad: (what: string) => DamagedPage): void {
  if (bytes.length < headerBytes) throw bad('has values beyond its end');
  const kind = bytes.readUInt16LE(18) & kindMask;
  if (kind !== (pageFlags.leaf | pageFlags.sub))
    throw bad('has several values of a key without a sub-page');
  for (const node of nodesOf(bytes, 0, bytes.length, bad)) {
    const keyEnd = node + nodeHeaderBytes + bytes.readUInt16LE(node + 6);
    if (keyEnd + bytes.readUInt32LE(node) > bytes.length) throw bad('has a value beyond its end');
  }
}

function childOf(bytes: Buffer, node: number): number {
  return bytes.readUInt32LE(node) + bytes.readUInt16LE(node + 4) * 2 ** 32;
}

/** -1 for none. */
function pageNumber(value: bigint): number {
  return value === noPage ? -1 : Number(value);
}

function treeAt(bytes: Buffer, at: number, name: string): Tree {
  const root = pageNumber(bytes.readBigUInt64LE(at + 40));
  return { name, depth: bytes.readUInt16LE(at + 6), root };
}

function newestMeta(fd: number): Meta | undefined {
  const first = readMeta(fd, 0);
  if (first === undefined) return undefined;
  const second = readMeta(fd, first.pageBytes);
  if (second === undefined || second.pageBytes !== first.pageBytes) return undefined;
  return second.txnId > first.txnId ? second : first;
}

/** Reads struct MDB_meta of liblmdb's mdb.c as a 64-bit machine writes it. */
function readMeta(fd: number, position: number): Meta | undefined {
  const bytes = Buffer.alloc(metaBytes);
  if (readSync(fd, bytes, 0, metaBytes, position) < metaBytes) return undefined;
  if ((bytes.readUInt16LE(18) & pageFlags.meta) === 0) return undefined;
  if (bytes.readUInt32LE(24) !== magic) return undefined;
  if ((bytes.readUInt32LE(28) & 0xffff) !== dataVersion) return undefined;
  const pageBytes = bytes.readUInt32LE(48);
  // A power of two, as large as LMDB makes them.
  if (pageBytes < 512 || pageBytes > 65_536 || (pageBytes & (pageBytes - 1)) !== 0)
    return undefined;
  return {
    pageBytes,
    free: treeAt(bytes, 48, freeTree),
    main: treeAt(bytes, 96, mainTree),
    lastPage: pageNumber(bytes.readBigUInt64LE(144)),
    txnId: bytes.readBigUInt64LE(152),
  };
}

function readFully(fd: number, bytes: Buffer, position: number): void {
  if (readSync(fd, bytes, 0, bytes.length, position) === bytes.length) return;
  throw new DamagedPage('the file ends within a page: it was cut off');
}

/** The workerData of this module. */
interface Job {
  readonly pageCheck: { readonly file: string };
}

/**
 * Checks all pages of a data file in a worker thread, because reading them blocks on the disk.
 * Resolves to an incomplete check if the signal aborts; rejects with the system's error.
 */
export async function checkInThread(file: string, signal: AbortSignal): Promise<PageCheck> {
  const job: Job = { pageCheck: { file } };
  const worker = new Worker(new URL(import.meta.url), { workerData: job });
  try {
    const [check] = (await once(worker, 'message', { signal })) as [PageCheck];
    return check;
  } catch (error) {
    if (signal.aborted) return { damage: undefined, isComplete: false };
    throw error;
  } finally {
    await worker.terminate();
  }
}

function work({ file }: Job['pageCheck']): PageCheck {
  const fd = openSync(file, 'r');
  try {
    return checkPages(fd);
  } finally {
    closeSync(fd);
  }
}

const job = workerData as Partial<Job> | null;
if (!isMainThread && job?.pageCheck !== undefined) parentPort?.postMessage(work(job.pageCheck));
