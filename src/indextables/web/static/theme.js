// Light or dark: as the system says, until the reader chooses.
const system = matchMedia("(prefers-color-scheme: dark)");
const button = document.getElementById("theme");

function apply() {
  const chosen = localStorage.getItem("theme");
  const dark = chosen ? chosen === "dark" : system.matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  button.textContent = dark ? "\u2600" : "\u263E";
}

button.addEventListener("click", () => {
  localStorage.setItem("theme", document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  apply();
});
system.addEventListener("change", apply);
apply();
