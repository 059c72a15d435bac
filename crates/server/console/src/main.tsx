// The console of Tollgate: what waits, on what, until when.
import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/frame.css";
import "./style/figures.css";
import "./style/texts.css";
import "./style/dialogs.css";
import { App } from "./app";
import { paint, watchSystem } from "./session";

paint();
watchSystem();
const root = document.getElementById("console");
if (root) render(<App />, root);
