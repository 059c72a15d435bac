// Looks that stay fresh: asked again and again while someone sees the page.
import { useEffect, useRef, useState } from "preact/hooks";
import { token } from "./session";
import { Store, useStore } from "./store";

/** Everyone holds still, to read in peace. */
export const isHeld = new Store(false);

/** Whether nothing is to change on the page: it is held, or nobody sees it. */
export function isIdle(): boolean {
  return document.hidden || isHeld.value;
}

/** How long after a failure it is asked again. */
const AGAIN_MS = 2_000;

export interface Live<T> {
  /** The last answer, also while the next does not come. */
  data: T | undefined;
  error: Error | undefined;
  refresh(): void;
}

/** Loads now and every so often, but while `isStill`; anew when one of `on` is another, or the token. */
export function useLive<T>(
  load: (signal: AbortSignal) => Promise<T>,
  everyMs: number,
  on: readonly unknown[],
  isStill = () => false,
): Live<T> {
  const [state, setState] = useState<{ data?: T; error?: Error; of: string }>({ of: "" });
  const shown = useStore(token);
  const key = JSON.stringify([on, shown]);
  const loader = useRef(load);
  loader.current = load;
  const still = useRef(isStill);
  still.current = isStill;
  const refresh = useRef(() => {});

  useEffect(() => {
    const ends = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    let asked = 0;
    const look = async () => {
      clearTimeout(timer);
      const mine = ++asked;
      let rest = everyMs;
      try {
        const data = await loader.current(ends.signal);
        if (ends.signal.aborted || mine !== asked) return;
        setState({ data, of: key });
      } catch (error) {
        if (ends.signal.aborted || mine !== asked) return;
        rest = AGAIN_MS;
        setState((before) => ({ ...(before.of === key ? before : {}), error: error as Error, of: key }));
      }
      timer = setTimeout(resume, rest);
    };
    const resume = () => {
      clearTimeout(timer);
      if (!isIdle() && !still.current()) void look();
    };
    refresh.current = () => void look();
    document.addEventListener("visibilitychange", resume);
    const unsubscribe = isHeld.subscribe(resume);
    if (!still.current()) void look();
    return () => {
      ends.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", resume);
      unsubscribe();
    };
  }, [key, everyMs]);

  const isCurrent = state.of === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    refresh: () => refresh.current(),
  };
}
