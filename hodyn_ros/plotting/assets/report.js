'use strict';
(() => {
  const report = JSON.parse(document.getElementById('pictures').textContent);
  const root = document.documentElement;
  const touch = matchMedia('(pointer: coarse)').matches; // Dragging is for scrolling there.
  const hovers = matchMedia('(hover: hover)').matches;
  const printed = { one: { width: 318, height: 190 }, wide: { width: 660, height: 260 } };
  const plots = [...document.querySelectorAll('.plot')];
  const visible = new Set();
  const drawn = new Map(); // Which state of the page each picture shows.
  let state = 0;
  let revision = 0; // Ranges that were chosen by hand are kept while it stays the same.
  let times = null; // The range of time that all pictures show, if it was changed.

  // Numbers are little-endian float32, counted from the first of them.
  const decoded = ({ first, offsets }) => {
    const bytes = Uint8Array.from(atob(offsets), (c) => c.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    const value = (_, i) => first + view.getFloat32(4 * i, true);
    return Array.from({ length: bytes.length / 4 }, value);
  };

  const theme = () => {
    const style = getComputedStyle(root);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      page: colour('page'),
      text: colour('text'),
      grid: colour('grid'),
      quiet: colour('quiet'),
      limit: colour('limit'),
      bad: colour('bad'),
      curves: [0, 1, 2].map((i) => colour(`curve-${i}`)),
    };
  };

  const lines = (limits, axis, colour) =>
    limits
      .filter((limit) => limit !== null)
      .map((limit) => ({
        type: 'line',
        [`${axis}0`]: limit,
        [`${axis}1`]: limit,
        [axis === 'x' ? 'y0' : 'x0']: 0,
        [axis === 'x' ? 'y1' : 'x1']: 1,
        xref: axis === 'x' ? 'x' : 'paper',
        yref: axis === 'y' ? 'y' : 'paper',
        line: { color: colour, width: 1.5, dash: 'dash' },
      }));

  // Range of the values within the range of time that is shown; null if there are none.
  const within = (panel) => {
    const [from, to] = times;
    const seen = panel.curves.flatMap(({ values: { x, y } }) =>
      y.filter((value, i) => x[i] >= from && x[i] <= to && !Number.isNaN(value)));
    if (seen.length < 2) return null;
    const [low, high] = [Math.min, Math.max].map((f) => seen.reduce((a, b) => f(a, b)));
    const margin = 0.06 * (high - low) || 0.06 * Math.abs(high) || 1;
    return [low - margin, high + margin];
  };

  const picture = (panel, size) => {
    const look = theme();
    const several = panel.curves.length > 1;
    const traces = panel.curves.map((curve, i) => {
      curve.values = curve.values || { x: decoded(curve.x), y: decoded(curve.y) };
      return {
        ...curve.values,
        type: 'scatter',
        mode: curve.values.x.length > 1 ? 'lines' : 'markers',
        name: curve.name,
        line: {
          color: look.curves[i],
          width: 1.6,
          dash: ['solid', 'dash', 'dot'][i],
          simplify: false,
        },
        hovertemplate: `${several ? `${curve.name}: ` : ''}%{y:.5g} ${panel.yUnit}<br>` +
          `%{x:.6g} ${panel.xUnit}<extra></extra>`,
      };
    });
    // Two standard deviations to either side, behind the curve.
    const edges = panel.band.map((edge, i) => {
      edge.values = edge.values || decoded(edge);
      return {
        x: panel.curves[0].values.x,
        y: edge.values,
        type: 'scatter',
        mode: 'lines',
        line: { color: look.curves[0], width: 0 },
        opacity: 0.25,
        fill: i ? 'tonexty' : 'none',
        hoverinfo: 'skip',
        showlegend: false,
      };
    });
    traces.unshift(...edges);
    const points = (list, name, marker) => ({
      x: list.map((point) => point[0]),
      y: list.map((point) => point[1]),
      type: 'scatter',
      mode: 'markers',
      name,
      marker,
      showlegend: false,
      hovertemplate: `${name}: %{y:.5g} ${panel.yUnit}<br>%{x:.6g} ${panel.xUnit}<extra></extra>`,
    });
    if (panel.portrait) {
      const { x, y } = panel.curves[0].values;
      traces.push(points([[x[0], y[0]]], 'begins', { color: look.curves[0], size: 8 }));
    }
    if (panel.marks.length) {
      traces.push(points(panel.marks, 'exceeds its limit', {
        symbol: 'x-thin', size: 11, line: { color: look.limit, width: 3 },
      }));
    }
    const axis = (title, range) => ({
      title: { text: title, standoff: 6 },
      range: [...range], // Plotly changes it when one zooms.
      gridcolor: look.grid,
      zeroline: false,
      linecolor: look.quiet,
      ticks: 'outside',
      tickcolor: look.quiet,
      ticklen: 3,
      nticks: 7,
      exponentformat: 'power',
      automargin: true,
    });
    const layout = {
      paper_bgcolor: look.page,
      plot_bgcolor: look.page,
      font: { color: look.text, size: 11, family: getComputedStyle(document.body).fontFamily },
      margin: { l: 52, r: 12, t: several || !(hovers || size) ? 28 : 8, b: 40 },
      xaxis: axis(panel.xTitle, (!panel.portrait && times) || panel.xRange),
      yaxis: axis(panel.yTitle, (!panel.portrait && times && within(panel)) || panel.yRange),
      shapes: [
        ...lines(panel.xLimits, 'x', look.limit),
        ...lines(panel.yLimits, 'y', look.limit),
      ],
      showlegend: several,
      legend: { orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom' },
      hovermode: 'closest',
      uirevision: `ranges ${revision}`,
      dragmode: touch ? false : 'zoom',
      ...(size || { autosize: true }),
    };
    const config = {
      displaylogo: false,
      responsive: false,
      doubleClick: false,
      displayModeBar: size ? false : hovers ? 'hover' : true,
      modeBarButtons: [[
        'zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'toImage',
        { name: 'all', title: 'Show all', icon: Plotly.Icons.home, click: showAll },
      ]],
    };
    return [traces, layout, config];
  };

  const follow = (event) => {
    if (event['xaxis.range']) times = event['xaxis.range'];
    else if ('xaxis.range[0]' in event) times = [event['xaxis.range[0]'], event['xaxis.range[1]']];
    else return;
    renew();
  };

  const panelOf = (plot) => report.panels[plots.indexOf(plot)];

  // The time of the robot, as a line in every picture over time.
  const mark = (plot) => {
    const full = plot._fullLayout;
    if (!full || panelOf(plot).portrait) return;
    const { xaxis, yaxis } = full;
    if (!plot.nextElementSibling) plot.after(document.createElement('i'));
    const line = plot.nextElementSibling;
    const x = xaxis.l2p(robot.now);
    line.hidden = !(x >= 0 && x <= xaxis._length);
    line.style.left = `${plot.offsetLeft + xaxis._offset + x}px`;
    line.style.top = `${plot.offsetTop + yaxis._offset}px`;
    line.style.height = `${yaxis._length}px`;
  };

  const robot = (() => {
    const figure = document.querySelector('.robot');
    const [button, slider, output] = figure.querySelectorAll('button, input, output');
    const stage = figure.querySelector('.skeleton');
    const bars = [...figure.querySelectorAll('[data-joint]')];
    const { lines: links } = report.robot;
    const [instants, points, shares] = ['times', 'points', 'shares'].map(
      (name) => decoded(report.robot[name]),
    );
    const count = points.length / instants.length / 3;
    const n = shares.length / instants.length;
    const first = instants[0];
    const last = instants[instants.length - 1];
    const middle = [0, 1, 2].map((axis) => {
      const values = points.filter((_, i) => i % 3 === axis);
      return [Math.min, Math.max].map((f) => 0.5 * values.reduce((x, y) => f(x, y)))
        .reduce((low, high) => low + high);
    });
    const far = points.reduce((largest, _, i) => (i % 3 ? largest : Math.max(
      largest, Math.hypot(...middle.map((value, axis) => points[i + axis] - value)),
    )), 0);
    const lowest = points.reduce((z, value, i) => (i % 3 === 2 ? Math.min(z, value) : z), 0);
    const radius = 1.05 * far || 1;
    const front = { turn: -0.9, tilt: 0.35 };
    let view = { ...front };
    let now = report.worst;
    let playing = 0;

    const svg = (tag, parent) =>
      parent.appendChild(document.createElementNS('http://www.w3.org/2000/svg', tag));
    const drawing = svg('svg', stage);
    drawing.setAttribute('viewBox', [-radius, -radius, 2 * radius, 2 * radius].join(' '));
    const floor = svg('path', drawing);
    floor.setAttribute('class', 'floor');
    const strokes = links.map(() => svg('line', drawing));
    const dots = Array.from({ length: count }, () => svg('circle', drawing));

    // Right, up and towards who looks, from the middle of all positions.
    const seen = (x, y, z) => {
      const [px, py, pz] = [x, y, z].map((value, axis) => value - middle[axis]);
      const [s, c] = [Math.sin(view.turn), Math.cos(view.turn)];
      const [u, v] = [Math.sin(view.tilt), Math.cos(view.tilt)];
      const ahead = c * px + s * py;
      return [c * py - s * px, u * ahead - v * pz, v * ahead + u * pz];
    };
    const mixed = (from, to, part) => {
      const channels = [from, to].map((hex) =>
        [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
      return `rgb(${channels[0].map((a, i) => Math.round(a + part * (channels[1][i] - a)))})`;
    };

    const show = () => {
      const look = theme();
      const after = instants.findIndex((instant) => instant >= now);
      const frame = after < 0 ? instants.length - 1 : after;
      const at = (i) => points.slice(3 * (frame * count + i), 3 * (frame * count + i) + 3);
      const share = (joint) => (joint < 0 ? NaN : shares[frame * n + joint]);
      const places = Array.from({ length: count }, (_, i) => seen(...at(i)));
      const half = 0.6 * radius;
      const grid = [-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1].flatMap((i) => [
        [seen(i * half, -half, lowest), seen(i * half, half, lowest)],
        [seen(-half, i * half, lowest), seen(half, i * half, lowest)],
      ]);
      floor.setAttribute('d', grid.map(
        ([a, b]) => `M${a[0]} ${a[1]}L${b[0]} ${b[1]}`).join(''));
      const depth = (i) => places[links[i][0]][2] + places[links[i][1]][2];
      links.map((_, i) => i).sort((a, b) => depth(a) - depth(b)).forEach((i) => {
        const [from, to, joint] = links[i];
        const part = share(joint);
        const known = Math.min(Number.isNaN(part) ? 0 : part, 1);
        const stroke = strokes[i];
        ['x1', 'y1'].forEach((name, axis) => stroke.setAttribute(name, places[from][axis]));
        ['x2', 'y2'].forEach((name, axis) => stroke.setAttribute(name, places[to][axis]));
        stroke.style.stroke = Number.isNaN(part) ? look.quiet
          : part > 1 ? look.bad : mixed(look.curves[0], look.limit, known);
        stroke.style.strokeWidth = `${5 + 7 * known}px`;
        drawing.append(stroke, dots[from], dots[to]);
      });
      dots.forEach((dot, i) => {
        dot.setAttribute('cx', places[i][0]);
        dot.setAttribute('cy', places[i][1]);
        dot.setAttribute('r', 0.012 * radius);
      });
      bars.forEach((bar) => {
        const part = share(Number(bar.dataset.joint));
        bar.lastElementChild.textContent =
          Number.isNaN(part) ? '–' : `${part > 1 ? '✗ ' : ''}${(100 * part).toFixed(0)} %`;
        bar.style.setProperty('--share', `${Math.min(100 * part, 100) || 0}%`);
        bar.classList.toggle('over', part > 1);
      });
      slider.value = last > first ? (now - first) / (last - first) : 0;
      output.textContent = `${now.toFixed(3)} s`;
      visible.forEach(mark);
    };
    const goTo = (time) => {
      now = Math.min(Math.max(time, first), last);
      show();
    };

    slider.addEventListener('input', () => {
      goTo(first + Number(slider.value) * (last - first));
    });
    const stop = () => {
      cancelAnimationFrame(playing);
      playing = 0;
      button.textContent = 'Play';
    };
    button.addEventListener('click', () => {
      if (playing) {
        stop();
        return;
      }
      button.textContent = 'Pause';
      let before = performance.now();
      if (now >= last) now = first;
      const next = (clock) => {
        goTo(now + 1e-3 * (clock - before));
        before = clock;
        if (now >= last) stop();
        else playing = requestAnimationFrame(next);
      };
      playing = requestAnimationFrame(next);
    });
    stage.addEventListener('pointermove', (event) => {
      if (!event.buttons) return;
      view.turn -= 0.01 * event.movementX;
      view.tilt = Math.min(Math.max(view.tilt + 0.01 * event.movementY, -1.5), 1.5);
      show();
    });
    stage.addEventListener('pointerdown', (event) => stage.setPointerCapture(event.pointerId));
    stage.addEventListener('dblclick', () => {
      view = { ...front };
      show();
    });
    return { show, goTo, get now() { return now; } };
  })();

  const point = (plot, event) => {
    if (!plot._fullLayout || panelOf(plot).portrait) return;
    const { xaxis } = plot._fullLayout;
    const x = event.clientX - plot.getBoundingClientRect().left - xaxis._offset;
    if (x >= 0 && x <= xaxis._length) robot.goTo(xaxis.p2l(x));
  };

  const draw = (plot, size) => {
    const panel = panelOf(plot);
    const isFirst = !drawn.has(plot);
    drawn.set(plot, state);
    if (!size) plot.style.height = '';
    Plotly.react(plot, ...picture(panel, size)).then(() => mark(plot));
    if (!isFirst) return;
    plot.addEventListener('pointermove', (event) => point(plot, event));
    plot.on('plotly_doubleclick', showAll);
    if (!panel.portrait) plot.on('plotly_relayout', follow);
  };

  // Only what is seen is drawn at once; the rest when it comes into view.
  const refresh = () => visible.forEach((plot) => {
    if (drawn.get(plot) !== state) draw(plot);
  });
  const renew = () => {
    state += 1;
    refresh();
    robot.show();
  };

  const showAll = () => {
    times = null;
    revision += 1;
    renew();
  };

  const observer = new IntersectionObserver((entries) => {
    entries.forEach(({ target, isIntersecting }) => {
      if (isIntersecting) visible.add(target);
      else visible.delete(target);
    });
    refresh();
  }, { rootMargin: '300px' });
  plots.forEach((plot) => observer.observe(plot));
  robot.show();

  let waiting = 0;
  let width = innerWidth;
  addEventListener('resize', () => {
    if (innerWidth === width || root.classList.contains('printing')) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(renew, 150);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', renew);

  // Paper has one width and one scheme of colours; everything must be there.
  addEventListener('beforeprint', () => {
    root.classList.add('printing');
    robot.show();
    plots.forEach((plot) => {
      const size = plot.closest('.wide') ? printed.wide : printed.one;
      const height = plot.closest('.portrait') ? 250 : size.height;
      plot.style.height = `${height}px`;
      draw(plot, { ...size, height });
    });
  });
  addEventListener('afterprint', () => {
    root.classList.remove('printing');
    plots.forEach((plot) => { plot.style.height = ''; });
    renew();
  });
})();
