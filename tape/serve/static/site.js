"use strict";
// What every page does with keys, the side and the theme. Works on any page: `.session` and the like
// are `[data-row]` or links in `.rows`, and what is searched in is the input `#find`.
(() => {
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;
  const rows = () => {
    const listed = document.querySelectorAll(".rows > a, [data-rows] a");
    return [...(listed.length ? listed : document.querySelectorAll("main a"))];
  };
  const isTyping = () => /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");

  // --- the side, which is drawn over the page where there is little room ------------------------
  const setSide = (open) => {
    byId("side")?.classList.toggle("open", open);
    byId("menu")?.setAttribute("aria-expanded", String(open));
    if (open) byId("side")?.querySelector("a, button, input")?.focus();
  };
  const isSideOpen = () => byId("side")?.classList.contains("open") ?? false;

  // --- rows -------------------------------------------------------------------------------------
  const move = (step) => {
    const all = rows(), at = all.indexOf(document.activeElement);
    const next = at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1);
    all[next]?.focus();
    all[next]?.scrollIntoView({ block: "nearest" });
  };

  let goes = false;
  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    "/": () => {
      const find = byId("find");
      if (find) { find.focus(); find.select(); } else location.assign("/search");
    },
    "?": () => byId("keys-help")?.showModal(),
    f: () => setSide(!isSideOpen()),
    g: () => { goes = true; },
  };
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("keys-help")?.open) return;
    if (event.key === "Escape") {
      if (isTyping()) { event.preventDefault(); document.activeElement.blur(); }  // what was typed stays
      if (isSideOpen()) { setSide(false); byId("menu")?.focus(); }
      return;
    }
    if (isTyping()) {
      if (event.key === "ArrowDown" && document.activeElement === byId("find")) { event.preventDefault(); move(1); }
      return;
    }
    if (goes) {
      goes = false;
      const link = document.querySelectorAll(".pages a")[Number(event.key) - 1];
      if (link) { event.preventDefault(); link.click(); return; }
    }
    const act = KEYS[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("#menu")) setSide(!isSideOpen());
    else if (event.target.closest("#veil")) setSide(false);
    else if (event.target.closest("#keys")) byId("keys-help").showModal();
    else if (event.target.closest("#theme")) {
      const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = isDark ? "light" : "dark";
      try { localStorage.setItem("tape-theme", root.dataset.theme); } catch { /* it is for this page then */ }
    }
  });

  // A server that was started again: say so while it is away, and try again.
  const say = (text) => {
    let note = byId("away");
    if (!note) {
      note = document.createElement("p");
      note.id = "away";
      note.setAttribute("role", "alert");
      document.body.append(note);
    }
    note.textContent = text;
    note.hidden = !text;
  };
  const AWAY = "The server does not answer.";
  const OUTSIDE = "This page is not let in any more: open the address that the server printed, or log in again.";
  const isOutside = (status) => status === 401 || status === 403;
  document.addEventListener("htmx:sendError", () => say(AWAY));
  document.addEventListener("htmx:responseError", (event) => say(isOutside(event.detail.xhr.status) ? OUTSIDE : "This cannot be shown now."));
  document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) say(""); });
  // A stream that ends does not say why; the same request does.
  const explain = (address) => {
    const control = new AbortController();
    fetch(address, { signal: control.signal }).then((answer) => { control.abort(); say(isOutside(answer.status) ? OUTSIDE : AWAY); }, () => say(AWAY));
  };

  // A page that follows: a stream says that something changed, and the results are asked for again.
  // While nobody looks there is none, as a browser has few connections for all of its tabs.
  let stream = null, timer = 0;
  const listen = () => {
    const followed = document.querySelector("[data-events]");
    if (!followed || stream) return;
    stream = new EventSource(`${followed.dataset.events}?after=${followed.dataset.position}`);
    stream.addEventListener("change", () => {
      htmx.ajax("GET", location.href, { target: "#results", select: "#results", swap: "outerHTML" });
    });
    stream.addEventListener("open", () => say(""));
    stream.addEventListener("error", () => { stop(); explain(followed.dataset.events); timer = setTimeout(listen, 1000); });
  };
  const stop = () => { clearTimeout(timer); stream?.close(); stream = null; };
  document.addEventListener("visibilitychange", () => { clearTimeout(timer); if (document.hidden) timer = setTimeout(stop, 15000); else listen(); });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", listen);
  listen();
  document.querySelector(".pages [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  root.dataset.ready = "true";
})();
