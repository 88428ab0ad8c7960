// SPDX-License-Identifier: GPL-2.0-or-later
const boxes = [...document.querySelectorAll('.f')], wide = %d, left = %d;
function zoom(x, w) {
  for (const box of boxes) {
    const a = Math.max(0, (box.dataset.x - x) / w), b = Math.min(1, (+box.dataset.x + +box.dataset.w - x) / w);
    const [rect, text] = [box.querySelector('rect'), box.querySelector('text')], room = Math.floor(((b - a) * wide - 6) / %f);
    box.style.display = b - a > 1e-9 ? '' : 'none';
    rect.setAttribute('x', left + a * wide); rect.setAttribute('width', Math.max(0, (b - a) * wide));
    text.setAttribute('x', left + a * wide + 3);
    text.textContent = room < 3 ? '' : box.dataset.t.length > room ? box.dataset.t.slice(0, room - 1) + '\u2026' : box.dataset.t;
  }
}
for (const box of boxes) box.addEventListener('click', () => zoom(+box.dataset.x, +box.dataset.w));
