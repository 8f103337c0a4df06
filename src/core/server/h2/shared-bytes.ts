/** A number of bytes that the connections of a process share. */
export class SharedBytes {
  #free: number;

  constructor(bytes: number) {
    this.#free = bytes;
  }

  /** Takes a number of bytes; false if there are not enough. */
  take(bytes: number): boolean {
    if (bytes > this.#free) return false;
    this.#free -= bytes;
    return true;
  }

  free(bytes: number): void {
    this.#free += bytes;
  }
}
