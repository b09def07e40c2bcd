// Fetches the page again when something happened, and swaps what is marked data-live. The page is whole without it.
(() => {
  "use strict";
  const script = document.currentScript;
  const every = 5000;
  let timer = null, busy = false, again = false;

  const typing = (part) => {
    const at = document.activeElement;
    const fields = part.querySelectorAll("input:not([type=hidden]), textarea");
    return (at && part.contains(at) && at.matches("input, textarea, select")) || [...fields].some((f) => f.value !== f.defaultValue);
  };

  const swap = (fresh) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (!next || typing(part) || next.innerHTML === part.innerHTML) continue;
      const open = [...part.querySelectorAll("details")].map((d) => d.open);
      part.replaceChildren(...next.childNodes);
      const found = part.querySelectorAll("details");
      if (found.length >= open.length) open.forEach((was, at) => { found[at].open = was; });
    }
  };

  const refresh = async () => {
    timer = null;
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the server is away; the next event or the next interval tries again */ }
    busy = false;
    if (again) { again = false; soon(); }
  };

  const soon = () => { if (timer === null && !document.hidden) timer = setTimeout(refresh, 250); };
  const news = new EventSource(script.dataset.events);
  news.onmessage = soon;
  setInterval(() => { if (news.readyState !== EventSource.OPEN) soon(); }, every);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) soon(); });
})();
