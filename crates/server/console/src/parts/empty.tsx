// Nothing there yet: what it is for, and the command that makes the first.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { say } from "./notice";

export function Empty({ title, children, command }: { title: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <h3>{title}</h3>
      {children && <p>{children}</p>}
      {command && <Command text={command} />}
    </div>
  );
}

/** A command to copy. */
export function Command({ text }: { text: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
    } catch {
      say("this browser does not let the page copy: select the text instead", true);
    }
  };
  return (
    <div class="command">
      <pre tabIndex={0}>{text}</pre>
      <button type="button" class="quiet" onClick={copy}>
        {isCopied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
