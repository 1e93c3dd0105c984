// Logs in, and reloads a page that shows figures while it is looked at.
"use strict";
const form = document.getElementById("login");
if (form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const token = document.getElementById("token").value.trim();
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (answer.ok) {
      location.href = "/";
    } else {
      const wait = answer.headers.get("Retry-After");
      document.getElementById("answer").textContent = answer.status === 429
        ? `Too many wrong tokens came from this address: try again in ${wait} s.`
        : "The token is not known.";
    }
  });
} else if (!("still" in document.documentElement.dataset)) {
  // What somebody is filling in stays as it is.
  let isFilledIn = false;
  document.addEventListener("input", () => { isFilledIn = true; });
  const isInForm = () => Boolean(document.activeElement && document.activeElement.form);
  setInterval(() => { if (!document.hidden && !isFilledIn && !isInForm()) location.reload(); }, 5000);
}
