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

/** Takes the server's time, so that what is relative does not depend on this browser's clock. */
export function setServerTime(at: string): void {
  aheadMs = new Date(at).getTime() - Date.now();
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
