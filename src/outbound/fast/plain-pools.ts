import type { Dispatcher } from 'undici';
import { outboundCheckMs, outboundNotPlainMs, outboundNotPlainOriginsMax } from './limits.ts';
import { createLruCache } from '../../model/lru-cache.ts';
import type { OutboundExchange } from '../exchange.ts';
import { PlainPool, type PlainPoolParts } from './plain-pool.ts';

/**
 * The connections over which most pages are asked for: by a GET without content, where an origin
 * answers in the form that most answers have. That goes without undici, whose work is as much as
 * all of ours (bench/README.md). Where it answers in another form, an origin is left to undici for
 * a while.
 */
export class PlainPools {
  readonly #parts: Omit<PlainPoolParts, 'empty'>;
  readonly #pools = new Map<string, PlainPool>();
  readonly #notPlain = createLruCache<true>(outboundNotPlainOriginsMax, {
    ttl: outboundNotPlainMs,
  });
  #closing: Promise<void> | undefined;
  #whenEmpty: (() => void) | undefined;
  #ticking: NodeJS.Timeout | undefined;

  constructor(parts: Omit<PlainPoolParts, 'empty'>) {
    this.#parts = {
      ...parts,
      handOver: (exchange, request, ...begun) => {
        this.#notPlain.set(String(request.options.origin), true);
        parts.handOver(exchange, request, ...begun);
      },
    };
  }

  /**
   * Sends a request and tells the exchange all that undici would; false for one that is left to
   * undici.
   */
  send(options: Dispatcher.DispatchOptions, exchange: OutboundExchange): boolean {
    const origin = String(options.origin);
    if (this.#closing !== undefined || this.#notPlain.has(origin)) return false;
    return (this.#pools.get(origin) ?? this.#open(origin)).send(options, exchange);
  }

  /** Lets what is under way end, then closes the connections. */
  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#whenEmpty = resolve;
      for (const pool of this.#pools.values()) pool.close();
      if (this.#pools.size === 0) resolve();
    });
    return this.#closing;
  }

  #open(origin: string): PlainPool {
    const pool = new PlainPool(origin, {
      ...this.#parts,
      empty: () => {
        this.#pools.delete(origin);
        if (this.#pools.size > 0) return;
        clearInterval(this.#ticking);
        this.#ticking = undefined;
        this.#whenEmpty?.();
      },
    });
    this.#pools.set(origin, pool);
    this.#ticking ??= setInterval(() => {
      for (const one of this.#pools.values()) one.tick();
    }, outboundCheckMs).unref();
    return pool;
  }
}
