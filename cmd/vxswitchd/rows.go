package main

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/vxswitch/vxswitch/api"
	"github.com/vxswitch/vxswitch/control"
	"github.com/vxswitch/vxswitch/frame"
)

// maxRows is how many changes of rows wait for a client; beyond, it is told that some are lost.
const maxRows = 4096

// getMonitor sends the events of the switch, and the rows that come and go.
func (s *server) getMonitor(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithCancel(r.Context())
	rows, events := watchRows(s.n.Plane()), s.n.Switch().Events()
	told, ended := make(chan api.Event), make(chan error, 1)
	go func() {
		for {
			e, err := events.Next(ctx)
			if err != nil {
				ended <- err
				return
			}
			select {
			case told <- shownEvent(e):
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
		}
	}()
	var err error // why the events have ended
	each(ctx, newStream(w, "application/x-ndjson", maxEvents), func(ctx context.Context) (api.Event, error) {
		for {
			if e, ok := rows.overflow(); ok {
				return e, nil
			}
			select {
			case e := <-told:
				return e, nil
			case x := <-rows.list:
				return x.shown(), nil
			case <-rows.lost:
			case err = <-ended:
				return api.Event{}, err
			case <-ctx.Done():
				return api.Event{}, ctx.Err()
			}
		}
	}, func(e api.Event) any { return e })
	rows.stop()
	cancel()
	events.Close()
	if err == nil {
		<-ended
	}
	return nil
}

// A rowWatch has the changes of rows for one client.
type rowWatch struct {
	list chan toldRow
	full atomic.Bool   // changes were lost
	lost chan struct{} // look at full
	stop func()
}

// A toldRow is a row of an owner that has come or gone.
type toldRow struct {
	time  time.Time
	event string
	owner string
	row   control.Row
}

// watchRows begins with the next change.
func watchRows(p *control.Plane) *rowWatch {
	w := &rowWatch{list: make(chan toldRow, maxRows), lost: make(chan struct{}, 1)}
	var begun atomic.Bool
	w.stop = p.Watch(func(owner string, add, del []control.Row) {
		if now := time.Now(); begun.Load() {
			_ = w.tell(now, "row-removed", owner, del) && w.tell(now, "row-added", owner, add)
		}
	})
	begun.Store(true)
	return w
}

// tell adds rows to the list, or reports false. The Plane is locked: it does not wait.
func (w *rowWatch) tell(now time.Time, event, owner string, rows []control.Row) bool {
	for _, r := range rows {
		if w.full.Load() {
			return false // until the client has been told
		}
		select {
		case w.list <- toldRow{now, event, owner, r}:
		default:
			w.full.Store(true)
			select {
			case w.lost <- struct{}{}:
			default:
			}
			return false
		}
	}
	return true
}

// overflow returns the event that changes were lost, once those before have been told.
func (w *rowWatch) overflow() (api.Event, bool) {
	if len(w.list) > 0 || !w.full.Swap(false) {
		return api.Event{}, false
	}
	return api.Event{Time: time.Now(), Event: frame.EventOverflow.String()}, true
}

func (x toldRow) shown() api.Event {
	return api.Event{Time: x.time, Event: x.event, Proto: x.owner, Row: x.row.String()}
}
