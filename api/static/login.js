// The log-in page: exchanges a key for a session, then leads back to the runs.

import { logIn } from "./api.js";
import { byId, showProblem } from "./dom.js";

byId("login").addEventListener("submit", async (event) => {
  event.preventDefault();
  const field = /** @type {HTMLInputElement} */ (byId("key"));
  try {
    await logIn(field.value.trim());
    location.assign("/");
  } catch (error) {
    showProblem(error);
    field.select();
  }
});
