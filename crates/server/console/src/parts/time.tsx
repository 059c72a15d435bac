// Instants against the present of the server, which every second redraws.
import { relative, instant } from "../format";
import { Store, useStore } from "../store";

/** How far the server's clock is ahead of this browser's. */
let aheadMs = 0;

const TICK_MS = 1_000;
const present = new Store(Date.now());
setInterval(() => present.set(serverNow()), TICK_MS);

/** The present by the server's clock. */
export function serverNow(): number {
  return Date.now() + aheadMs;
}

/** What the server tells may be so old: it answers from what it saw within the last second. */
const OLD_MAX_MS = 1_000;

/** Takes the server's time, so that what is relative does not depend on this browser's clock. */
export function setServerTime(at: string): void {
  const told = new Date(at).getTime() - Date.now();
  // One that is a little older would set the clock back, and the next forward again.
  if (told > aheadMs || told < aheadMs - OLD_MAX_MS) aheadMs = told;
}

export function useNow(): number {
  return useStore(present);
}

export function When({ at }: { at: string | number }) {
  const now = useNow();
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={`${instant(at)} · ${date.toISOString()}`} class="number">
      {relative(at, now)}
    </time>
  );
}
