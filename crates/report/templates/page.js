// The pointer's read-out over a plot. Without it the page lacks nothing: every figure has its table.
document.querySelectorAll("svg[data-y]").forEach(function (svg) {
  var numbers = function (text) { return text.split(" ").map(Number); };
  var grow = function (a, v) { return a[0] * Math.pow(a[1] / a[0], (v - a[2]) / (a[3] - a[2])); };
  var counted = svg.closest("[data-unit=instructions]"), names = counted ? ["", "k", "M", "G"] : ["ns", "µs", "ms", "s"];
  var latency = function (ns) {
    var place = ns < 1e3 ? 0 : ns < 1e6 ? 1 : ns < 1e9 ? 2 : 3;
    var text = Number((ns / Math.pow(1e3, place)).toPrecision(3)) + " " + names[place];
    return counted ? text.trim() + " instructions" : text;
  };
  var kind = svg.dataset.y.split(" ")[0], y = numbers(svg.dataset.y.split(" ").slice(1).join(" "));
  var x = numbers(svg.dataset.x || svg.dataset.t), make = function (name, box) {
    return box.appendChild(document.createElementNS("http://www.w3.org/2000/svg", name));
  };
  var mark = make("g", svg), cross = make("path", mark), text = make("text", mark);
  mark.setAttribute("class", "pointer");
  svg.addEventListener("pointermove", function (event) {
    var box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
    var px = (event.clientX - box.left) * view.width / box.width, py = (event.clientY - box.top) * view.height / box.height;
    var left = svg.dataset.t ? x[1] : x[2], right = svg.dataset.t ? x[2] : x[3];
    var inside = px >= left && px <= right && py >= Math.min(y[2], y[3]) && py <= Math.max(y[2], y[3]);
    mark.style.display = inside ? "" : "none";
    if (!inside) return;
    var value = grow(y, py);
    var across = svg.dataset.t ? (x[0] * (px - left) / (right - left)).toFixed(1) + " s" : latency(grow(x, px));
    var up = kind === "latency" ? latency(value) : kind === "count" ? "count " + Math.max(0, Math.round(value)) : "1 in " + Number(value.toPrecision(2));
    cross.setAttribute("d", "M" + left + " " + py + "H" + right + "M" + px + " " + y[2] + "V" + y[3]);
    text.textContent = across + " · " + up;
    text.setAttribute("text-anchor", px > (left + right) / 2 ? "end" : "start");
    text.setAttribute("x", px > (left + right) / 2 ? px - 6 : px + 6);
    text.setAttribute("y", Math.max(py - 6, 14));
  });
  svg.addEventListener("pointerleave", function () { mark.style.display = "none"; });
});
