package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vxswitch/vxswitch/api"
)

// top shows rates: on a terminal in place until q is pressed, otherwise a table per interval.
func (s *session) top(ctx context.Context, w *words) error {
	q, err := w.keys("-interval")
	if err != nil {
		return err
	}
	every, _ := time.ParseDuration(cmp.Or(q["-interval"], "1s")) // keys has checked it
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	screen := isTerminal(s.out)
	if screen {
		restore := keyboard(s.in)
		defer restore()
		go quitOn(s.in, cancel)
		io.WriteString(s.out, "\x1b[?25l") // no cursor
		defer io.WriteString(s.out, "\x1b[?25h")
	}
	old, err := s.look(ctx)
	if err != nil {
		return err
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		now, err := s.look(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		if err := draw(s.out, screen, now.since(old)); err != nil {
			return err
		}
		old = now
	}
}

// quitOn calls end when q is pressed. Its read lasts until the program exits.
func quitOn(in *os.File, end func()) {
	var b [1]byte
	for in != nil {
		if _, err := in.Read(b[:]); err != nil {
			return
		}
		if b[0] == 'q' || b[0] == 'Q' {
			end()
			return
		}
	}
}

// A view is a snapshot of counters.
type view struct {
	at    time.Time
	ports []api.Port
	drops []api.Drop
}

func (s *session) look(ctx context.Context) (v view, err error) {
	if v.ports, err = s.Ports(ctx); err != nil {
		return v, err
	}
	if v.drops, err = s.Drops(ctx); err != nil {
		return v, err
	}
	v.at = time.Now()
	return v, nil
}

// since returns the rates between two views, as a page.
func (v view) since(old view) []byte {
	seconds := v.at.Sub(old.at).Seconds()
	rate := func(now, then uint64) uint64 {
		if now < then { // the port was recreated
			return 0
		}
		return uint64(float64(now-then)/seconds + 0.5)
	}
	rows := [][]string{strings.Fields("PORT TYPE RX/s RX-BIT/s TX/s TX-BIT/s RX-DROPS/s TX-DROPS/s")}
	for _, p := range v.ports {
		was := p
		if i := slices.IndexFunc(old.ports, func(o api.Port) bool { return o.Port == p.Port && o.Name == p.Name }); i >= 0 {
			was = old.ports[i]
		}
		rows = append(rows, row(p.Name, p.Type, rate(p.Rx.Frames, was.Rx.Frames), units(8*rate(p.Rx.Bytes, was.Rx.Bytes)),
			rate(p.Tx.Frames, was.Tx.Frames), units(8*rate(p.Tx.Bytes, was.Tx.Bytes)),
			rate(sum(p.RxDrops), sum(was.RxDrops)), rate(sum(p.TxDrops), sum(was.TxDrops))))
	}
	var page bytes.Buffer
	fmt.Fprintf(&page, "%s\n", v.at.Format("15:04:05"))
	align(&page, rows)
	rows = [][]string{strings.Fields("DROPPED DIRECTION REASON FRAMES/s FRAMES")}
	for _, d := range v.drops {
		n := uint64(0)
		if i := slices.IndexFunc(old.drops, func(o api.Drop) bool { return o.Where == d.Where && o.Direction == d.Direction && o.Reason == d.Reason }); i >= 0 {
			n = old.drops[i].Frames
		}
		rows = append(rows, row(d.Where, d.Direction, d.Reason, rate(d.Frames, n), d.Frames))
	}
	if len(rows) > 1 {
		page.WriteByte('\n')
		align(&page, rows)
	}
	return page.Bytes()
}

// units formats a number with k, M or G.
func units(n uint64) string {
	x, unit := float64(n), ""
	for _, u := range []string{"k", "M", "G", "T"} {
		if x < 1000 {
			break
		}
		x, unit = x/1000, u
	}
	if unit == "" {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.2f%s", x, unit)
}

// draw prints a page, over the previous one on a terminal.
func draw(w io.Writer, screen bool, page []byte) error {
	if !screen {
		_, err := w.Write(append(page, '\n'))
		return err
	}
	page = bytes.ReplaceAll(page, []byte("\n"), []byte("\x1b[K\r\n")) // clear the rest of longer lines
	_, err := fmt.Fprintf(w, "\x1b[H%s\x1b[J", page)
	return err
}
