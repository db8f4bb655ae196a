// SPDX-License-Identifier: Apache-2.0
// Sorting, the colour switch, copying, and the ruler of the overview. The page is complete without it.
'use strict';
(() => {
  const root = document.documentElement;

  // Where the browser keeps nothing for local files, the choice lasts as long as the page.
  const kept = { get: () => { try { return localStorage.getItem('rankscope-theme'); } catch { return null; } },
                 set: (theme) => { try { localStorage.setItem('rankscope-theme', theme); } catch { /* not kept */ } } };
  const isDark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const themeButton = document.getElementById('theme');
  const nameTheme = () => { themeButton.textContent = isDark() ? 'Light' : 'Dark'; };
  if (kept.get() === 'dark' || kept.get() === 'light') root.dataset.theme = kept.get();
  themeButton.addEventListener('click', () => {
    root.dataset.theme = isDark() ? 'light' : 'dark';
    kept.set(root.dataset.theme);
    nameTheme();
  });
  themeButton.hidden = false;
  nameTheme();

  // Cells tell their value in data-v; unknown ones have none and stay last in either direction.
  const compare = (a, b, sign) => {
    if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
    const x = Number(a), y = Number(b);
    if (a !== '' && b !== '' && !Number.isNaN(x) && !Number.isNaN(y)) return sign * (x - y);
    return sign * a.localeCompare(b, 'en', { numeric: true });
  };
  for (const button of document.querySelectorAll('th button')) {
    button.addEventListener('click', () => {
      const head = button.closest('th'), row = head.parentElement, body = head.closest('table').tBodies[0];
      const column = [...row.children].indexOf(head);
      // Numbers are first wanted with the largest on top.
      const first = head.classList.contains('number') ? 'descending' : 'ascending';
      const now = head.getAttribute('aria-sort');
      const next = !now ? first : now === 'ascending' ? 'descending' : 'ascending';
      for (const other of row.children) other.removeAttribute('aria-sort');
      head.setAttribute('aria-sort', next);
      const sign = next === 'ascending' ? 1 : -1;
      const rows = [...body.rows].map((line) => [line.cells[column].dataset.v, line]);
      rows.sort((a, b) => compare(a[0], b[0], sign));
      body.append(...rows.map((pair) => pair[1]));
    });
  }

  const copyText = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand('copy');
      area.remove();
      return done;
    }
  };
  for (const button of document.querySelectorAll('button.copy')) {
    button.hidden = false;
    button.addEventListener('click', async () => {
      const done = await copyText(button.previousElementSibling.textContent);
      button.textContent = done ? 'Copied' : 'Select it by hand';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    });
  }

  for (const lanes of document.querySelectorAll('.lanes')) {
    const ruler = lanes.querySelector('.ruler'), readout = lanes.parentElement.querySelector('.readout');
    const lengthNs = Number(lanes.dataset.lengthNs);
    lanes.addEventListener('mousemove', (event) => {
      const lane = event.target.closest('svg');
      if (!lane) return;
      const box = lane.getBoundingClientRect();
      const share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      ruler.style.display = 'block';
      ruler.style.left = `${event.clientX - lanes.getBoundingClientRect().left}px`;
      readout.textContent = `${lane.getAttribute('aria-label')}, ${(share * lengthNs / 1e6).toFixed(3)} ms into the step`;
    });
    lanes.addEventListener('mouseleave', () => { ruler.style.display = 'none'; readout.textContent = ''; });
  }

  // On paper nothing stays folded.
  addEventListener('beforeprint', () => { for (const details of document.querySelectorAll('details')) details.open = true; });
})();
