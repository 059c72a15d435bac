// The frame around every page: the way to the others, how the server is, and what the keys do.
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api/client";
import { span } from "./format";
import { isHeld } from "./live";
import { SEEN_MAX, Seen, useOverview, useSeen } from "./overview";
import { PAGES } from "./pages";
import { ConfirmDialog } from "./parts/confirm";
import { Help } from "./parts/help";
import { Announcements, Away, Trouble } from "./parts/notice";
import { Palette } from "./parts/palette";
import { TokenDialog } from "./parts/token";
import { href, route } from "./route";
import { forgetToken, isTokenWanted, nextTheme, theme, token } from "./session";
import { useStore } from "./store";
import { onKeys, opened, type Opened } from "./keys";

export function App() {
  const seen = useOverview();
  const at = useStore(route);
  const shown = useStore(opened);
  const isAsked = useStore(isTokenWanted);
  const isLater = useRef(false);
  const page = PAGES.find((page) => page.id === at.page) ?? PAGES[0]!;
  useEffect(() => onKeys(PAGES), []);
  useEffect(() => {
    const name = at.names.join(" · ");
    document.title = `${name ? `${name} · ` : ""}${page.title} · Tollgate`;
    scrollTo(0, 0);
    // Who goes on by keyboard, or hears the page, begins with it; the first time nothing was left.
    if (isLater.current && !document.querySelector("dialog[open]"))
      document.getElementById("main")?.focus({ preventScroll: true });
    isLater.current = true;
  }, [page, at.names.join("/")]);
  return (
    <Seen.Provider value={seen}>
      <a class="skip" href="#main" onClick={skip}>
        Skip to the page
      </a>
      <Nav current={page.id} />
      <div class="body">
        <Top />
        <main id="main" tabIndex={-1}>
          {seen.error instanceof Problem ? <Trouble error={seen.error} /> : <Away error={seen.error} />}
          <page.View key={`${at.page}/${at.names.join("/")}`} route={at} />
        </main>
      </div>
      <Announcements />
      <ConfirmDialog />
      {isAsked && <TokenDialog />}
      <Over shown={shown} />
    </Seen.Provider>
  );
}

function Over({ shown }: { shown: Opened }) {
  if (shown === "search") return <Palette />;
  return shown === "help" ? <Help /> : null;
}

/** The address behind `#` is the page's: to skip moves the focus alone. */
function skip(event: Event): void {
  event.preventDefault();
  document.getElementById("main")?.focus();
}

function Nav({ current }: { current: string }) {
  const seen = useSeen().data;
  const [isOpen, setOpen] = useState(false);
  const badges: Record<string, { value: number; most: number; tone: string } | undefined> = {
    limits: seen && { value: seen.limits.length, most: SEEN_MAX, tone: "wait" },
    dead: seen && { value: seen.dead, most: 1_000, tone: "stop" },
  };
  return (
    <header class={isOpen ? "side open" : "side"}>
      <a class="brand" href={href("overview")} aria-label="Tollgate, overview">
        <Logo />
        <span>Tollgate</span>
      </a>
      <button type="button" class="menu" aria-expanded={isOpen} aria-controls="nav" onClick={() => setOpen(!isOpen)}>
        {isOpen ? "Close" : "Menu"}
      </button>
      <nav id="nav" aria-label="Pages" onClick={() => setOpen(false)}>
        {PAGES.map(({ id, title, alias, key }) => {
          const badge = badges[id];
          return (
            <a
              href={href(id)}
              aria-current={id === current ? "page" : undefined}
              title={`${title}: press g, then ${key}`}
            >
              <span>{title}</span>
              {badge && badge.value > 0 ? (
                <span class={`nav-count number ${badge.tone}`}>
                  {badge.value < badge.most ? badge.value : `${badge.most}+`}
                </span>
              ) : (
                alias && <small>{alias}</small>
              )}
            </a>
          );
        })}
      </nav>
      <ServerFoot />
    </header>
  );
}

function ServerFoot() {
  const seen = useSeen().data;
  const holder = useStore(token);
  if (!seen) return <p class="foot" />;
  const { caller } = seen;
  return (
    <p class="foot">
      <span title={`up for ${span(seen.uptime_ms)}`}>
        v{seen.version} · {seen.store}
      </span>
      {caller.name && (
        <span title={`roles: ${caller.roles.join(", ")}`}>
          {caller.name}
          {caller.namespace ? ` in ${caller.namespace}` : ""}
          {caller.roles.includes("admin") ? "" : " · read-only"}
        </span>
      )}
      {holder && (
        <button type="button" class="leave" onClick={forgetToken}>
          Sign out
        </button>
      )}
    </p>
  );
}

function Top() {
  const { data, error } = useSeen();
  const held = useStore(isHeld);
  const paint = useStore(theme);
  const holder = useStore(token);
  const isAsked = useStore(isTokenWanted);
  const state = isAsked
    ? "shut"
    : error instanceof Problem
      ? "refused"
      : error
        ? "away"
        : held
          ? "held"
          : !data
            ? "wait"
            : data.ready
              ? "live"
              : "unready";
  const words = {
    shut: "No token",
    refused: "Refused",
    away: "No answer",
    held: "Held",
    wait: "Connecting",
    live: "Live",
    unready: "Not ready",
  }[state];
  return (
    <div class="top">
      <button type="button" class="search" onClick={() => opened.set("search")}>
        <span>Search limits, queues, calls</span>
        <kbd>/</kbd>
      </button>
      <button
        type="button"
        class={`live ${state}`}
        aria-pressed={held}
        title="Hold the page still, or let it go on (.)"
        onClick={() => isHeld.set(!held)}
      >
        <span class="dot" aria-hidden="true" />
        {words}
      </button>
      <span class="unseen" role="status">
        {words}
      </span>
      <button type="button" class="quiet colours" title="Colours: as the system, dark or light" onClick={nextTheme}>
        {{ system: "Auto", dark: "Dark", light: "Light" }[paint]}
      </button>
      <button
        type="button"
        class="quiet"
        title="Keys and words (?)"
        aria-label="Help"
        onClick={() => opened.set("help")}
      >
        ?
      </button>
      {holder && (
        <button type="button" class="quiet leave" onClick={forgetToken}>
          Sign out
        </button>
      )}
    </div>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
      <rect class="logo-post" x="5" y="7" width="4.5" height="20" rx="1.5" />
      <g transform="rotate(-24 7 15)">
        <rect class="logo-arm" x="7" y="12.5" width="24" height="5.5" rx="1.6" />
        <path class="logo-stripe" d="M12.5 12.5h4l-2.4 5.5h-4zM20.5 12.5h4l-2.4 5.5h-4z" />
      </g>
      <circle class="logo-post" cx="7.25" cy="15.2" r="3.2" />
    </svg>
  );
}
