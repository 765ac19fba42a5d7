"use strict";
// Before anything is drawn: the look that was chosen last, here or in an exported page.
try {
  const chosen = localStorage.getItem("tape-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch { /* without storage it is that of the system */ }
