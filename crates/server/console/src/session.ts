// What this browser keeps: the token, by choice only for this tab, and the colours.
import { Store } from "./store";

const TOKEN = "tollgate.token";
const THEME = "tollgate.theme";

export type Theme = "system" | "dark" | "light";

export const token = new Store<string | null>(sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN));

/** The server refused to answer without a token that it knows. */
export const isTokenWanted = new Store(false);

export const theme = new Store<Theme>(readTheme());

/** Counts what changes the colours, also those of the system. */
export const painted = new Store(0);

export function keepToken(value: string, remember: boolean): void {
  sessionStorage.setItem(TOKEN, value);
  if (remember) localStorage.setItem(TOKEN, value);
  else localStorage.removeItem(TOKEN);
  token.set(value);
  isTokenWanted.set(false);
}

export function forgetToken(): void {
  sessionStorage.removeItem(TOKEN);
  localStorage.removeItem(TOKEN);
  token.set(null);
}

export function nextTheme(): void {
  const after: Record<Theme, Theme> = { system: "dark", dark: "light", light: "system" };
  theme.set(after[theme.value]);
  localStorage.setItem(THEME, theme.value);
  paint();
}

export function paint(): void {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset.theme;
  else root.dataset.theme = theme.value;
  painted.set(painted.value + 1);
}

export function watchSystem(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => painted.set(painted.value + 1));
}

function readTheme(): Theme {
  const kept = localStorage.getItem(THEME);
  return kept === "dark" || kept === "light" ? kept : "system";
}
