// A part of a dashboard on Grafana's grid of 24 columns: draw(request) in the page of page.html.
import { createTheme, dateTime, EventBusSrv } from '@grafana/data';
import { GlobalStyles, Icon, PanelChrome, PanelContextProvider, ThemeContext, useTheme2 } from '@grafana/ui';
import { createRoot } from 'react-dom/client';
import { Drawing, typeOf } from './panels.jsx';
import { framesOf } from './queries.js';

const COLUMNS = 24;
const CELL = 30;
const GAP = 8;
const MARGIN = 16;
const FONTS = ['400 12px Inter', '500 12px Inter'];

/** Draw panels with the data of a time range, and return the height of the page. */
window.draw = async ({ panels, width, theme, from, to, scrapeSeconds, variables }) => {
  const root = createRoot(document.getElementById('page'));
  const themed = (content) => (
    <ThemeContext.Provider value={createTheme({ colors: { mode: theme } })}>
      <GlobalStyles />
      {content}
    </ThemeContext.Provider>
  );
  root.render(themed());
  const times = { from: dateTime(from), to: dateTime(to) };
  const range = { ...times, raw: times };
  const shown = panels.map((panel) => ({ panel, place: placed(panel, panels, width) }));
  for (const item of shown.filter(({ panel }) => panel.type !== 'row')) {
    typeOf(item.panel);
    item.frames = await framesOf(item.panel, item.place.width, { range, scrapeSeconds, variables });
  }
  const height = Math.max(...shown.map(({ place }) => place.top + place.height)) + MARGIN;
  await Promise.all(FONTS.map((font) => document.fonts.load(font))); // Text on canvases does not change later.
  root.render(
    themed(
      <div style={{ height, position: 'relative', width }}>
        {shown.map((item) => (
          <div key={item.panel.id} style={{ position: 'absolute', ...item.place }}>
            {item.panel.type === 'row' ? <Row panel={item.panel} /> : <Panel {...item} range={range} />}
          </div>
        ))}
      </div>
    )
  );
  return height;
};

/** Wait until all icons are loaded, and everything is painted. */
window.drawn = async () => {
  const frame = () => new Promise(requestAnimationFrame);
  do {
    await frame();
    await frame();
  } while (document.querySelector('svg:empty'));
};

/** Return the place of a panel in pixels, below the highest of these panels. */
function placed({ gridPos: { x, y, w, h } }, panels, width) {
  const column = (width - 2 * MARGIN - (COLUMNS - 1) * GAP) / COLUMNS;
  const first = Math.min(...panels.map((panel) => panel.gridPos.y));
  return {
    left: MARGIN + x * (column + GAP),
    top: MARGIN + (y - first) * (CELL + GAP),
    width: w * (column + GAP) - GAP,
    height: h * (CELL + GAP) - GAP,
  };
}

function Row({ panel }) {
  const { typography } = useTheme2();
  const style = { ...typography.h5, alignItems: 'center', display: 'flex', gap: GAP, height: CELL, margin: 0 };
  return (
    <h3 style={style}>
      <Icon name={panel.collapsed ? 'angle-right' : 'angle-down'} />
      {panel.title}
    </h3>
  );
}

function Panel({ panel, place, frames, range }) {
  const context = { eventBus: new EventBusSrv(), eventsScope: 'panel', sync: () => 0 };
  return (
    <PanelContextProvider value={context}>
      <PanelChrome
        description={panel.description}
        height={place.height}
        padding={typeOf(panel).padding}
        title={panel.title}
        width={place.width}
      >
        {(width, height) => <Drawing {...{ panel, frames, range, width, height }} />}
      </PanelChrome>
    </PanelContextProvider>
  );
}
