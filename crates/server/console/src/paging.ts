// Lists that come in pages: the first is kept fresh, and more are read as the reader comes near the end.
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "./live";

export interface Piece<T> {
  rows: T[];
  next: string | undefined;
}

type Load<T> = (after: string | undefined, signal: AbortSignal) => Promise<Piece<T>>;

export interface Pages<T> {
  rows: T[] | undefined;
  error: Error | undefined;
  hasMore: boolean;
  more(): void;
  refresh(): void;
}

const EVERY_MS = 2_000;
/** Pages read in a row for want of anything in them: what is filtered may be far between. */
const EMPTY_MAX = 20;

/** Reads pages with `load`; anew when one of `on` is another. Once more than one was read, all stay as they were read. */
export function usePages<T>(load: Load<T>, on: readonly unknown[], everyMs = EVERY_MS): Pages<T> {
  const first = useLive((signal) => readOn(load, undefined, signal), everyMs, on);
  const [read, setRead] = useState<Piece<T> | null>(null);
  const isBusy = useRef(false);
  const key = JSON.stringify(on);
  useEffect(() => setRead(null), [key]);
  const shown = read ?? first.data;

  const more = async () => {
    if (isBusy.current || shown?.next === undefined) return;
    isBusy.current = true;
    try {
      const piece = await readOn(load, shown.next, new AbortController().signal);
      setRead({ rows: [...shown.rows, ...piece.rows], next: piece.next });
    } catch {
      // The first page says what is wrong; the end is come to again.
    } finally {
      isBusy.current = false;
    }
  };
  const refresh = () => {
    setRead(null);
    first.refresh();
  };
  return { rows: shown?.rows, error: first.error, hasMore: shown?.next !== undefined, more, refresh };
}

/** Most rows that are read to be searched here by name. */
const SEARCHED_MAX = 10_000;

/** Whether more may be read on behalf of a search, which comes to the end of what it found again and again. */
export function mayReadOn(rows: readonly unknown[] | undefined): boolean {
  return (rows?.length ?? 0) < SEARCHED_MAX;
}

/** The next page that has something in it. */
async function readOn<T>(load: Load<T>, after: string | undefined, signal: AbortSignal): Promise<Piece<T>> {
  let piece = await load(after, signal);
  for (let read = 1; piece.rows.length === 0 && piece.next !== undefined && read < EMPTY_MAX; read++) {
    piece = await load(piece.next, signal);
  }
  return piece;
}
