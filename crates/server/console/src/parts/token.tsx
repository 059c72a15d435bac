// Asks for the token when the server wants one. It stays in this tab, or in this browser if the reader says so.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isTokenWanted, keepToken, token } from "../session";

export function TokenDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [value, setValue] = useState("");
  const [isKept, setKept] = useState(false);
  const [wasWrong] = useState(token.value !== null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const submit = (event: Event) => {
    event.preventDefault();
    keepToken(value.trim(), isKept);
  };
  // A second Escape closes without asking: without a token there is nothing to see.
  const stay = () => isTokenWanted.value && dialog.current?.showModal();
  return (
    <dialog
      class="dialog"
      ref={dialog}
      onCancel={(event) => event.preventDefault()}
      onClose={stay}
      aria-labelledby="token-title"
    >
      <form method="dialog" onSubmit={submit}>
        <h2 id="token-title">This server wants a token</h2>
        <p>
          {wasWrong ? "It does not know the one it was shown. " : ""}
          Give the value of <code>TOLLGATE_TOKEN</code>, or one that <code>tollgate token new</code> made. With the role{" "}
          <code>read</code> you see everything and change nothing.
        </p>
        <div class="field">
          <label for="token">Token</label>
          <input
            id="token"
            type="password"
            required
            autofocus
            autocomplete="off"
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
        </div>
        <label class="tick">
          <input type="checkbox" checked={isKept} onChange={(event) => setKept(event.currentTarget.checked)} /> Remember
          it in this browser
        </label>
        <div class="buttons">
          <button type="submit" class="primary">
            Look in
          </button>
        </div>
      </form>
    </dialog>
  );
}
