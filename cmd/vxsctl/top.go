package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// top shows rates: on a terminal in place until q is pressed, otherwise a table per interval.
func (s *session) top(ctx context.Context, w *words) error {
	q, err := w.keys("-interval")
	if err != nil {
		return err
	}
	if s.json {
		return w.wrong("-json: rates are for a screen: take the difference of two vxsctl -json port")
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
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil:
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
		cols, lines := 0, 0 // no limits
		if screen {
			cols, lines = sizeOf(s.out)
		}
		if err := draw(s.out, screen, now.page(old, cols, lines)); err != nil {
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

// draw prints a page, over the previous one on a terminal.
func draw(w io.Writer, screen bool, page []byte) error {
	if !screen {
		_, err := w.Write(append(page, '\n'))
		return err
	}
	page = bytes.ReplaceAll(bytes.TrimSuffix(page, []byte("\n")), []byte("\n"), []byte("\x1b[K\r\n")) // clear the rest of longer lines
	_, err := fmt.Fprintf(w, "\x1b[H%s\x1b[J", page)
	return err
}
