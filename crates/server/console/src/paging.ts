// Lists that come in pages: the first is kept fresh, and more are read as the reader comes near the end.
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "./live";
import { serverNow } from "./parts/time";
import { token } from "./session";
import { useStore } from "./store";

export interface Piece<T> {
  rows: T[];
  next: string | undefined;
}

type Load<T> = (after: string | undefined, signal: AbortSignal) => Promise<Piece<T>>;

export interface Pages<T> {
  rows: T[] | undefined;
  error: Error | undefined;
  hasMore: boolean;
  /** When they were read, if they stay as they were read. */
  asOf: number | undefined;
  more(): void;
  refresh(): void;
}

const EVERY_MS = 2_000;
/** Pages read in a row for want of anything in them: what is filtered may be far between. */
const EMPTY_MAX = 20;

/** All that was read of a list, in how many pages, and when. */
interface Read<T> extends Piece<T> {
  pages: number;
  at: number;
}

/** Reads pages with `load`; anew when one of `on` is another. Once more than one was read, all stay as they were read. */
export function usePages<T>(load: Load<T>, on: readonly unknown[]): Pages<T> {
  const key = JSON.stringify([on, useStore(token)]);
  const [further, setFurther] = useState<{ of: string; read?: Read<T>; error?: Error }>({ of: key });
  const own = further.of === key ? further : undefined;
  const isStill = useRef(false);
  const first = useLive(
    (signal) => readOn(load, undefined, signal),
    EVERY_MS,
    on,
    () => isStill.current,
  );
  const shown = own?.read ?? first.data;
  isStill.current = shown !== undefined && shown.pages > 1;
  // What is read under way is of this list alone: it is left when the list is another, or is read anew.
  const reading = useRef<AbortController | null>(null);
  const leave = () => {
    reading.current?.abort();
    reading.current = null;
  };
  useEffect(() => leave, [key]);

  const more = async () => {
    if (reading.current || shown?.next === undefined) return;
    const mine = new AbortController();
    reading.current = mine;
    try {
      const { rows, next, pages, at } = await readOn(load, shown.next, mine.signal);
      const read = { rows: [...shown.rows, ...rows], next, pages: shown.pages + pages, at };
      if (!mine.signal.aborted) setFurther({ of: key, read });
    } catch (error) {
      if (!mine.signal.aborted) setFurther({ ...(own ?? { of: key }), error: error as Error });
    }
    if (reading.current === mine) reading.current = null;
  };
  const refresh = () => {
    leave();
    isStill.current = false;
    setFurther({ of: key });
    first.refresh();
  };
  return {
    rows: shown?.rows,
    error: own?.error ?? first.error,
    hasMore: shown?.next !== undefined,
    asOf: isStill.current ? shown?.at : undefined,
    more,
    refresh,
  };
}

/** Most rows that are read to be searched here by name. */
const SEARCHED_MAX = 10_000;

/** What of a list has the text in its name. To know, all of the list is read, or as much as may be. */
export function useFound<T extends { name: string }>(pages: Pages<T>, sought: string): T[] | undefined {
  const { rows, hasMore } = pages;
  const isReading = sought !== "" && hasMore && (rows?.length ?? 0) < SEARCHED_MAX;
  useEffect(() => {
    if (isReading) pages.more();
  }, [isReading, rows]);
  return rows?.filter((row) => row.name.toLowerCase().includes(sought.toLowerCase()));
}

/** The next page that has something in it. */
async function readOn<T>(load: Load<T>, after: string | undefined, signal: AbortSignal): Promise<Read<T>> {
  let [piece, pages] = [await load(after, signal), 1];
  while (piece.rows.length === 0 && piece.next !== undefined && pages < EMPTY_MAX) {
    piece = await load(piece.next, signal);
    pages += 1;
  }
  return { ...piece, pages, at: serverNow() };
}
