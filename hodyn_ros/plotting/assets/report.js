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
      yaxis: axis(panel.yTitle, panel.yRange),
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

  const draw = (plot, size) => {
    const panel = report.panels[Number(plot.dataset.picture)];
    const isFirst = !drawn.has(plot);
    drawn.set(plot, state);
    if (!size) plot.style.height = '';
    Plotly.react(plot, ...picture(panel, size));
    if (!isFirst) return;
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
