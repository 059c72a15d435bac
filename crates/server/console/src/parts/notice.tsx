// What is said to the reader: results of actions, and what is wrong.
import { Problem } from "../api/client";
import { Store, useStore } from "../store";

/** How long a result stays. */
const STAYS_MS = 6_000;

interface Said {
  text: string;
  isBad: boolean;
}

const said = new Store<Said | null>(null);
let timer: ReturnType<typeof setTimeout> | undefined;

export function say(text: string, isBad = false): void {
  clearTimeout(timer);
  said.set({ text, isBad });
  timer = setTimeout(() => said.set(null), STAYS_MS);
}

/** Where results appear; a screen reader hears them. */
export function Announcements() {
  const now = useStore(said);
  return (
    <div class="announcements" role="status" aria-live="polite">
      {now && <p class={now.isBad ? "said bad" : "said"}>{now.text}</p>}
    </div>
  );
}

/** A look that the server refused, with the cure that it names, or took too long over. */
export function Trouble({ error }: { error: Error | undefined }) {
  if (error?.name === "TimeoutError")
    return (
      <div class="trouble" role="alert">
        <strong>The server takes too long over this</strong>
        <p>Others may wait for the same; ask for less, or again.</p>
      </div>
    );
  // Who has no token is asked for one.
  if (!(error instanceof Problem) || error.status === 401) return null;
  return (
    <div class="trouble" role="alert">
      <strong>{error.status === 0 ? "The server is not asked" : "The server says no"}</strong>
      <p>{error.message}</p>
    </div>
  );
}

/** The server cannot be reached; said once for the whole page. */
export function Away({ error }: { error: Error | undefined }) {
  if (!error || error instanceof Problem) return null;
  return (
    <div class="trouble" role="alert">
      <strong>The server does not answer</strong>
      <p>It is asked again every two seconds; what you see is the last it said.</p>
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  return (
    <p class="loading" role="status">
      Looking at {what}…
    </p>
  );
}
