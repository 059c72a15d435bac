// A value that the whole page shares, and whoever shows it hears of its changes.
import { useLayoutEffect, useState } from "preact/hooks";

export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private held: T) {}

  get value(): T {
    return this.held;
  }

  set(value: T): void {
    if (Object.is(value, this.held)) return;
    this.held = value;
    for (const listener of [...this.listeners]) listener();
  }

  /** From one value to another; nothing happens if it is something else by now. */
  change(from: T, to: T): void {
    if (Object.is(from, this.held)) this.set(to);
  }

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useStore<T>(store: Store<T>): T {
  const [, redraw] = useState(0);
  useLayoutEffect(() => store.subscribe(() => redraw((times) => times + 1)), [store]);
  return store.value;
}
